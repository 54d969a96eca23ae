#!/usr/bin/python3 -B
"""A session of an agent on many small files: it unpacks, lists, reads, runs a script, deletes.

Usage: session.py make ARCHIVE FILES SEED         makes the archive of a tree
       session.py warmup ARCHIVE FOLDER SCRIPTS   does a session with the tree in FOLDER
       session.py run ARCHIVE FOLDER SCRIPTS      the same, as the last one of a log
"""

import hashlib
import io
import json
import os
import random
import subprocess
import sys
import tarfile
import time
from pathlib import Path

# Some twenty small commands on the tree, each a process, as the script of a build has them.
SCRIPT = """
set -eu; cd "$0"; mkdir made; uname -s; basename "$0"; dirname a/b; expr 6 '*' 7
find . -maxdepth 1 -name 'package-*' | sort >made/packages; wc -l <made/packages
head -n 1 made/packages; tail -n 1 made/packages; grep -c package made/packages
sed -n 1p made/packages; cut -c 3-9 made/packages | uniq; tr a-z A-Z <made/packages >made/upper
cp made/upper made/copy; mv made/copy made/moved; cmp made/upper made/moved; ln -s moved made/link
touch made/touched; chmod 600 made/touched; rm -r made
"""


def make_archive(path: str, files: int, seed: int) -> None:
    """Write a tar archive of small files, always the same for a seed, and print its description.

    A file such as ``package-0000/part-0/file-00000`` has 128 bytes to 16 KiB.
    """
    chance = random.Random(seed)
    digest = hashlib.sha256()
    total = 0
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for number in range(files):
            # Ten files are a part, and five parts are a package.
            package, part = divmod(number // 10, 5)
            member = tarfile.TarInfo(f"package-{package:04}/part-{part}/file-{number:05}")
            # Sizes are equally frequent in each power of two.
            member.size = round(128 * 128 ** chance.random())
            content = chance.randbytes(member.size)
            archive.addfile(member, io.BytesIO(content))
            digest.update(content)
            total += member.size
    description = {"archive": path, "files": files, "bytes": total, "sha256": digest.hexdigest()}
    print(json.dumps(description))


def run_session(archive: str, folder: str, scripts: int) -> None:
    """Do a session in a new folder; print its results, and then the time of each step in seconds.

    scripts: how many times the script runs.
    Raises CalledProcessError if a command fails.
    """
    version = subprocess.check_output(["tar", "--version"], text=True)
    os.mkdir(folder)
    moments = [time.perf_counter()]
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
    moments.append(time.perf_counter())
    paths = [os.path.join(top, name) for top, _, names in os.walk(folder) for name in names]
    total = sum(os.lstat(path).st_size for path in paths)
    moments.append(time.perf_counter())
    contents = {path: Path(path).read_bytes() for path in paths}
    moments.append(time.perf_counter())
    command = ["sh", "-c", SCRIPT, folder]
    printed = {subprocess.check_output(command, text=True) for _ in range(scripts)}
    moments.append(time.perf_counter())
    subprocess.run(["rm", "-r", folder], check=True)
    moments.append(time.perf_counter())
    digest = hashlib.sha256(b"".join(contents[path] for path in sorted(paths))).hexdigest()
    session = {
        "session": scripts,
        "tool": version.splitlines()[0],
        "files": len(paths),
        "bytes": total,
        "sha256": digest,
        "printed": sorted(printed),
        "seconds": round(moments[-1] - moments[0], 9),
        "left": os.path.exists(folder),
    }
    print(json.dumps(session))
    # A step lasts from one moment to the next.
    for number, step in enumerate(("unpack", "stat", "read", "run", "delete")):
        seconds = round(moments[number + 1] - moments[number], 9)
        print(json.dumps({"step": step, "seconds": seconds}))


if __name__ == "__main__":
    action, archive, *arguments = sys.argv[1:]
    if action == "make":
        make_archive(archive, files=int(arguments[0]), seed=int(arguments[1]))
    else:
        run_session(archive, folder=arguments[0], scripts=int(arguments[1]))
    if action == "run":
        print(json.dumps({"done": True}))
