"""A Docker image of one's own: Python and a few programs of Debian 13, made without a network."""

import os
import subprocess
from pathlib import Path

NAME = "test-own/python:13"
# What is in it besides the libraries that these programs load.
PROGRAMS = ["bash", "cat", "chmod", "env", "head", "id", "ls", "mkdir", "python3", "python3.13"]
PROGRAMS += ["sh", "dash", "sha256sum", "sleep", "stat", "tail", "true", "find", "sort", "sed"]
PROGRAMS += ["tr", "xargs", "hostname"]
FOLDERS = ["bin", "lib", "lib64", "sbin", "etc/passwd", "etc/group", "var/lib/dpkg/status"]
# Arguments: programs.  Prints the files that they load.
LIBRARIES = (
    'for name; do ldd "/usr/bin/$name" 2>/dev/null; done; ldd /usr/lib/python3.13/lib-dynload/*'
)
# How the image runs its programs, and what has no effect in Strata.
CHANGES = [
    "ENV GREETING=good-day PYTHONDONTWRITEBYTECODE=1",
    "USER 1000:1000",
    "WORKDIR /usr/share/app",
    'ENTRYPOINT ["env", "ENTERED=yes"]',
    'CMD ["true"]',
    "VOLUME /var/kept",
    "EXPOSE 80/tcp",
    "HEALTHCHECK --interval=1s CMD true",
]


def make(
    tree: str, folder: Path, name: str = NAME, changes: list[str] = CHANGES, more: str = "true"
) -> str:
    """Make the image of the files in `tree`, an image of Strata's; return its ID.

    more: commands of a shell in the folder of added files.
    """
    argv = ["chroot", tree, "sh", "-c", LIBRARIES, "ldd", *PROGRAMS]
    printed = subprocess.run(argv, capture_output=True, text=True).stdout
    loaded = {word for line in printed.splitlines() for word in line.split() if word[0] == "/"}
    libraries = {Path(tree + path) for path in loaded if path[-1] != ":"}
    paths = [f"usr/bin/{program}" for program in PROGRAMS]
    paths += [*FOLDERS, "usr/lib/python3.13"]
    for path in sorted(libraries):
        for file in (path.parent.resolve() / path.name, path.resolve()):
            paths.append(str(file.relative_to(Path(tree).resolve())))
    archive = folder / "own.tar"
    pack = ["tar", "-C", tree, "--exclude=__pycache__", "--exclude=test", "--numeric-owner"]
    subprocess.run([*pack, "-cf", archive, *dict.fromkeys(paths)], check=True, capture_output=True)
    app = folder / "add/usr/share/app"
    app.mkdir(parents=True)
    (app / "where.txt").write_text("here\n")
    (folder / "add/var/kept").mkdir(parents=True)
    (folder / "add/var/kept/first").write_text("kept\n")
    (folder / "add/var/kept").chmod(0o777)
    subprocess.run(["sh", "-euc", more], cwd=folder / "add", check=True)
    add = ["tar", "-C", folder / "add", "--numeric-owner", "--owner=0", "--group=0"]
    subprocess.run([*add, "-rf", archive, *sorted(os.listdir(folder / "add"))], check=True)
    options = [word for change in changes for word in ("--change", change)]
    done = subprocess.run(
        ["docker", "import", *options, archive, name], check=True, capture_output=True, text=True
    )
    archive.unlink()
    return done.stdout.strip()


def remove(*names: str) -> None:
    """Remove images from Docker."""
    subprocess.run(["docker", "image", "rm", "--force", *names], capture_output=True)
