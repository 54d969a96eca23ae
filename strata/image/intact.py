"""Whether the image in the cache is still what was built: before it is run, and without reading it all each time.

What the kernel keeps of every file (size, times, inode, owner, rights) is compared with what was noted after the
build.  Only where that differs all files are read, and compared with the manifest.
"""

import os
import time
from hashlib import sha256

from strata.base.errors import UserError
from strata.base.files import SEEN, read_json, write_json
from strata.base.process import as_root, capture
from strata.base.progress import say
from strata.image.cache import manifest_of

REBUILD = "run `python -m strata image --rebuild`"
# Of these every cell asks again: the tools of all workloads and the programs of its own.
OURS = "opt/strata"


def verify(image: dict) -> None:
    """Raise UserError, with the name of a file, where the tree is not what was built."""
    tree, noted = _tree(image), _noted(image)
    now = _look(tree)
    if noted is None or noted["tree"] != now:
        programs = _programs(tree, OURS)
        _read_all(image, tree)
        write_json(_path(image), {"tree": now, "programs": programs})


def note(image: dict) -> None:
    """Note what the kernel keeps of every file of an image that was built just now."""
    tree = _tree(image)
    write_json(_path(image), {"tree": _look(tree), "programs": _programs(tree, OURS)})


def verify_programs(image: dict, workload: str) -> None:
    """Like :func:`verify`, but of what a cell of this workload itself starts: a few files, asked in no time."""
    tree, noted = _tree(image), _noted(image)
    for folder in (f"{OURS}/bin", f"{OURS}/workloads/{workload}"):
        known = (noted or {}).get("programs", {})
        expected = {path: facts for path, facts in known.items() if os.path.dirname(path) == folder}
        if _programs(tree, folder) != expected:
            return verify(image)
    return None


def _tree(image: dict) -> str:
    return os.path.join(image["folder"], "tree")


def _path(image: dict) -> str:
    return os.path.join(image["folder"], "stamp.json")


def _noted(image: dict) -> dict | None:
    return read_json(_path(image))


def _look(tree: str) -> str:
    """A hash of what the kernel keeps of every file."""
    listed = capture(as_root(["find", tree, "-xdev", *SEEN])).stdout.splitlines()
    return sha256("\n".join(sorted(listed)).encode()).hexdigest()


def _programs(tree: str, folder: str) -> dict[str, list[int]]:
    """``{path: [size, modified, changed, inode]}`` of the files below a folder of a tree."""
    found = {}
    for parent, _, names in os.walk(os.path.join(tree, folder)):
        for name in names:
            path = os.path.join(parent, name)
            facts = os.lstat(path)
            found[os.path.relpath(path, tree)] = [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino]
    return found


def _read_all(image: dict, tree: str) -> None:
    """Compare every file with the manifest.  Raises UserError."""
    from strata.image import manifest

    begun = time.monotonic()
    say("image", "reading all its files again, since they are not as was noted after the build …")
    expected, found = manifest_of(image)["files"], manifest.hash_tree(tree)
    wrong = sorted(path for path in {*expected, *found} if expected.get(path) != found.get(path))
    if wrong:
        path = wrong[0]
        how = "is gone" if path not in found else "was added" if path not in expected else "is not what was built"
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise UserError(f"{os.path.join(tree, path)} {how}{more}: nothing is measured with it; {REBUILD}")
    say("image", f"all {len(found)} files are as they were built: {time.monotonic() - begun:.0f} s")
