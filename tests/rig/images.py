"""The rig's disk of images: those of this machine's cache, as files and in the rig's Docker.

All of it is made natively, since an emulated host would need half an hour for it.  The disk of
virtual machines is the one that was made here for emulated machines.  It differs from the one for
KVM in kernel arguments that do no harm.
"""

import json
import os
import sys
from hashlib import sha256
from pathlib import Path

from rig import root
from strata.experiment import recipe
from strata.image import cache
from strata.util import paths
from strata.util.files import read_json, remove_tree
from strata.util.locks import hold_lock
from strata.util.process import capture_output
from strata.util.progress import report_step
from strata.vm import vagrant_box as disks

SIZE = "40G"
LABEL = "strata-images"
# Where the disk is in the rig.
HOME = "/var/cache/strata"

# A mount namespace shows the cache's files in the tree, so they are copied only into the disk.
_FORMAT = """
tree=$1 disk=$2 size=$3 label=$4
shift 4
while [ $# -gt 0 ]; do mount --bind -o ro "$1" "$tree/$2"; shift 2; done
mke2fs -q -F -t ext4 -m 0 -L "$label" -E lazy_itable_init=1,root_owner=0:0 -d "$tree" \
"$disk" "$size"
"""
# Docker of the rig's own root gets the image.
_FINISH = """
disk=$1 host=$2 work=$3 archive=$4
mkdir "$work/images" "$work/up"
mount -o loop "$disk" "$work/images"
[ -e "$work/images/$archive" ] || exit 0
mount -t tmpfs tmpfs "$work/up"
cd "$work/up"
mkdir below above work root
mount -o loop,ro,noload "$host" below
mount -t overlay overlay -o lowerdir=below,upperdir=above,workdir=work root
for name in dev sys; do mount --rbind "/$name" "root/$name"; mount --make-rslave "root/$name"; done
mount -t proc proc root/proc
mount -t tmpfs tmpfs root/run
mkdir -p "$work/images/docker" root/var/lib/docker
mount --bind "$work/images/docker" root/var/lib/docker
chroot root dockerd --bridge=none --iptables=false --ip6tables=false \
--host=unix:///run/docker.sock >docker.log 2>&1 &
for _ in $(seq 300); do
    chroot root docker version >/dev/null 2>&1 && break
    sleep 0.2
done
chroot root docker load --quiet <"$work/images/$archive" || { tail -n 5 docker.log >&2; exit 1; }
kill $! && wait $! || true
"""


def disk(host: Path, image: dict | None = None) -> Path:
    """The disk with this checkout's image from this machine's cache, or an empty disk without one.

    It is made if it is not kept.

    host: of :func:`rig.root.host_disk`.  image: the key of config.yaml; an image other than the
    usual one is built first.
    """
    if image:
        page = f"image={json.dumps(image)}"
        capture_output([sys.executable, "-m", "strata", "image", "--config", page], timeout=3600)
    kind = "others" if image else "images"
    described = recipe.describe_image(image or {})
    folder = Path(paths.get_home_folder()) / "images" / described["recipe"]
    image = read_json(str(folder / "image.json")) or {}
    box = Path(disks.get_box_folder(described["recipe"]))
    there = disks.has_box(described["recipe"])
    decides = [described["recipe"], image.get("built"), there, host.name]
    name = sha256(json.dumps(decides).encode()).hexdigest()[:12]
    kept = root.place() / f"{kind}-{name}.img"
    with (
        hold_lock(str(root.place() / "images.lock"), "rig: another process copies the images"),
        cache.lock_cache(),
    ):
        if not kept.exists():
            work = root.place() / "copying"
            remove_tree(str(work))
            (work / "root/images").mkdir(parents=True)
            (work / "root/images").chmod(0o700)
            try:
                with report_step("rig", "copying the images of this machine's cache"):
                    _make(folder if image else None, box if there else None, work)
                    _finish(work, host, folder.name)
                os.rename(work / "disk", kept)
            finally:
                remove_tree(str(work))
            root.forget(kind, name)
    return kept


def _make(folder: Path | None, box: Path | None, work: Path) -> None:
    """The disk ``work/disk`` of all that is there."""
    shown: list[tuple[Path, str]] = []
    if folder:
        for part in ("image.json", "image.tar", "manifest.json", "tree"):
            shown.append((folder / part, f"images/{folder.name}/{part}"))
        if box:
            shown.append((box, os.path.relpath(box, paths.get_home_folder())))
    for source, target in shown:
        point = work / "root" / target
        point.parent.mkdir(parents=True, exist_ok=True)
        point.mkdir() if source.is_dir() else point.touch()
    given = [word for source, target in shown for word in (str(source), target)]
    script = ["unshare", "--mount", "sh", "-uec", _FORMAT, "rig"]
    capture_output(
        [*script, str(work / "root"), str(work / "disk"), SIZE, LABEL, *given], timeout=1800
    )


def _finish(work: Path, host: Path, name: str) -> None:
    """Give the image to Docker of the rig."""
    script = [
        "unshare",
        "--mount",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "bash",
        "-uec",
        _FINISH,
        "rig",
    ]
    given = [str(work / "disk"), str(host), str(work), f"images/{name}/image.tar"]
    capture_output([*script, *given], timeout=1800)
