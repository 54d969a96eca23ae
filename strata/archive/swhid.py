"""The SWHID of a folder of source code: the name by which Software Heritage knows it, computed from its bytes.

It is the hash that git gives the folder's tree, so that a source without changes has that of its revision.
"""

import os
import tempfile

from strata.base.process import capture

# What a user or a machine sets for git changes nothing.
_ALONE = ["-u", "GIT_INDEX_FILE", "-u", "GIT_OBJECT_DIRECTORY", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"]


def of_folder(folder: str) -> str:
    """The SWHID of a folder with all that is in it, but for folders without files, which git does not know.

    Raises UserError where there is no git.
    """
    with tempfile.TemporaryDirectory(prefix="strata-tree-") as room:
        tree = ["env", "-C", folder, *_ALONE, "git", f"--git-dir={room}", f"--work-tree={os.path.abspath(folder)}"]
        capture([*tree, "init", "--quiet", "--object-format=sha1"])
        os.makedirs(os.path.join(room, "info"), exist_ok=True)
        with open(os.path.join(room, "info/attributes"), "w") as file:
            # Over any .gitattributes of the folder: bytes count as they are.
            file.write("* -text -filter -ident -working-tree-encoding\n")
        capture([*tree, "-c", "core.looseCompression=0", "add", "--all", "--force", "."])
        return f"swh:1:dir:{capture([*tree, 'write-tree']).stdout.strip()}"
