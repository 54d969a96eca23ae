"""The SWHID of source code: the name by which Software Heritage knows a folder or a file, computed from its bytes.

It is the hash that git gives the folder's tree, so that a source without changes has that of its revision.  Of a file
that is not there its own SWHID is enough.
"""

import os
import re
import tempfile

from strata.base.process import capture

# What a user or a machine sets for git changes nothing.
_ALONE = ["-u", "GIT_INDEX_FILE", "-u", "GIT_OBJECT_DIRECTORY", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"]


def of_file(path: str) -> str:
    """The SWHID of a file."""
    return f"swh:1:cnt:{capture(['git', 'hash-object', '--no-filters', path]).stdout.strip()}"


def of_folder(folder: str, apart: dict[str, str] | None = None) -> str:
    """The SWHID of a folder with all that is in it, but for folders without files, which git does not know.

    apart: files that belong to it and are not there: the path of each below the folder, and its SWHID.  Raises
    ValueError for what is none, UserError where there is no git.
    """
    with tempfile.TemporaryDirectory(prefix="strata-tree-") as room:
        tree = ["env", "-C", folder, *_ALONE, "git", f"--git-dir={room}", f"--work-tree={os.path.abspath(folder)}"]
        capture([*tree, "init", "--quiet", "--object-format=sha1"])
        os.makedirs(os.path.join(room, "info"), exist_ok=True)
        with open(os.path.join(room, "info/attributes"), "w") as file:
            # Over any .gitattributes of the folder: bytes count as they are.
            file.write("* -text -filter -ident -working-tree-encoding\n")
        capture([*tree, "-c", "core.looseCompression=0", "add", "--all", "--force", "."])
        for name, told in (apart or {}).items():
            if not re.fullmatch("swh:1:cnt:[0-9a-f]{40}", told):
                raise ValueError(f"{told} is the SWHID of no file")
            capture([*tree, "update-index", "--add", "--cacheinfo", f"100644,{told[10:]},{name}"])
        return f"swh:1:dir:{capture([*tree, 'write-tree', '--missing-ok']).stdout.strip()}"
