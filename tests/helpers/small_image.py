"""An image of this installation, as `docker save` writes one, with busybox and nothing else."""

import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path

from strata.environments.common import engine
from strata.util import paths

RECIPE = "0" * 64
APPLETS = [
    *("cat", "chmod", "cut", "echo", "env", "id", "ls"),
    *("readlink", "setsid", "sh", "sleep", "tail", "wc"),
]


def packed(files):
    """Return a tar archive of files: path → content, or as text the target of a link."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                archive.addfile(entry)
            else:
                entry.size, entry.mode = len(content), 0o755
                archive.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def make(folder: Path) -> dict:
    """Write the image into a folder; return the object of its image.json."""
    files = {
        "bin/busybox": open(shutil.which("busybox"), "rb").read(),
        "data/.keep": b"",
        "tmp/.keep": b"",
    }
    layer = packed({**files, **{f"bin/{name}": "busybox" for name in APPLETS}})
    told = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Labels": {"strata.image": paths.compute_home_mark()}},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    configuration = json.dumps(told).encode()
    id = hashlib.sha256(configuration).hexdigest()
    manifest = [
        {
            "Config": f"{id}.json",
            "RepoTags": [engine.format_image_name({"recipe": RECIPE})],
            "Layers": ["layer.tar"],
        }
    ]
    whole = {
        "layer.tar": layer,
        f"{id}.json": configuration,
        "manifest.json": json.dumps(manifest).encode(),
    }
    folder.mkdir()
    (folder / "image.tar").write_bytes(packed(whole))
    return {"recipe": RECIPE, "id": f"sha256:{id}", "folder": str(folder)}
