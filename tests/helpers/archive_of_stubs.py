"""A signed apt archive of the packages that the image's recipe needs, all of them stubs.

One package is essential: it holds this host's shell, dpkg and tar with their libraries.  The others
hold the programs that the recipe's scripts call, or nothing.  `gcc` makes a program that does
nothing.
"""

import contextlib
import functools
import hashlib
import http.server
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

NOTHING = "#!/bin/sh\nexit 0\n"
COMPILER = """#!/bin/sh
while [ $# != 0 ]; do
    if [ "$1" = -o ]; then printf '#!/bin/sh\\n' >"$2" && chmod 755 "$2"; fi
    shift
done
"""
SCRIPTS = {"gcc": {"gcc": COMPILER}, "systemd-sysv": {"systemctl": NOTHING}}
# Of this host: what busybox has of these does less, or starts its own programs in place of others.
PROGRAMS = (
    "busybox",
    "dash",
    "env",
    "dpkg",
    "dpkg-deb",
    "dpkg-split",
    "dpkg-query",
    "tar",
    "install",
    "find",
)
USERS = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "group": "root:x:0:\n",
    "shadow": "root:*:19000:0:99999:7:::\n",
}
OF_ADMINISTRATION = ("ldconfig", "start-stop-daemon", "update-initramfs")


def _essential(tree: Path) -> None:
    for name in (
        "usr/bin",
        "usr/sbin",
        "usr/lib",
        "usr/lib64",
        "etc",
        "tmp",
        "var/lib/dpkg",
        "dev",
        "proc",
        "sys",
        "root",
    ):
        (tree / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (tree / name).symlink_to(f"usr/{name}")
    for name, text in USERS.items():
        (tree / "etc" / name).write_text(text)
    (tree / "etc/os-release").write_text(
        'ID=ubuntu\nVERSION_CODENAME=noble\nPRETTY_NAME="Ubuntu of stubs"\n'
    )
    for program in PROGRAMS:
        path = shutil.which(program)
        assert path, program
        shutil.copy(path, tree / "usr/bin" / program)
        listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(/\S+)", listed):
            target = (
                tree
                / "usr"
                / os.path.realpath(os.path.dirname(library)).removeprefix("/usr/").lstrip("/")
            )
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
    (tree / "usr/bin/sh").symlink_to("dash")
    for name in subprocess.check_output(["busybox", "--list"], text=True).split():
        if not (tree / "usr/bin" / name).exists():
            (tree / "usr/bin" / name).symlink_to("busybox")
    for name in OF_ADMINISTRATION:
        _script(tree / "usr/sbin" / name, NOTHING)


def _script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def _package(pool: Path, name: str, work: Path) -> str:
    """Build a package; its paragraph for the index."""
    tree = work / name
    (tree / "DEBIAN").mkdir(parents=True)
    essential = name == "base-files"
    if essential:
        _essential(tree)
    for program, text in SCRIPTS.get(name, {}).items():
        _script(tree / "usr/bin" / program, text)
    about = (
        f"Package: {name}\nVersion: 1\nArchitecture: amd64\n"
        "Maintainer: Nobody <nobody@example.org>\n"
    )
    about += "Essential: yes\nPriority: required\n" if essential else ""
    (tree / "DEBIAN/control").write_text(f"{about}Description: a stub\n")
    file = pool / f"{name}.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, file],
        check=True,
        capture_output=True,
    )
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    facts = f"Filename: {pool.name}/{file.name}\nSize: {len(content)}\nSHA256: {digest}\n"
    return f"{about}{facts}Description: a stub\n\n"


def make(folder: Path, release: str, components: dict[str, Iterable[str]]) -> None:
    """Write the archive of a release into `folder`, and its keyring into ``keyrings`` next to it.

    components: the names of the packages of each.
    """
    pool, suite, home = folder / "pool", folder / "dists" / release, folder.parent / "gnupg"
    pool.mkdir(parents=True)
    listed = ""
    for component, names in components.items():
        text = "".join(_package(pool, name, folder.parent / "trees") for name in names).encode()
        index = suite / component / "binary-amd64/Packages"
        index.parent.mkdir(parents=True)
        index.write_bytes(text)
        listed += f" {hashlib.sha256(text).hexdigest()} {len(text)} {index.relative_to(suite)}\n"
    about = f"Origin: Stubs\nSuite: {release}\nCodename: {release}\nArchitectures: amd64\n"
    about += "Date: Fri, 27 Nov 2026 00:00:00 UTC\n"
    (suite / "Release").write_text(f"{about}Components: {' '.join(components)}\nSHA256:\n{listed}")
    home.mkdir(mode=0o700)
    gpg = [
        "gpg",
        "--homedir",
        str(home),
        "--batch",
        "--quiet",
        "--passphrase",
        "",
        "--pinentry-mode",
        "loopback",
    ]
    try:
        subprocess.run(
            [*gpg, "--quick-generate-key", "Stubs <stubs@example.org>", "ed25519", "sign"],
            check=True,
        )
        signed = ["--clearsign", "--output", str(suite / "InRelease"), str(suite / "Release")]
        subprocess.run([*gpg, *signed], check=True)
        keys = subprocess.check_output([*gpg, "--export"])
    finally:
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=True)
    (folder.parent / "keyrings").mkdir()
    (folder.parent / "keyrings/ubuntu-archive-keyring.gpg").write_bytes(keys)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which a folder is served to this machine."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
