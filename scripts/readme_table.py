"""Write the first table of README.md from the light archives in docs/sessions.

Usage: .venv/bin/python scripts/readme_table.py
"""

import glob
import os
import re
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from strata.archive import pool  # noqa: E402
from strata.util import progress  # noqa: E402
from strata.util.errors import UserError  # noqa: E402

README = os.path.join(ROOT, "README.md")
BEGIN, END = "<!-- of docs/sessions, by `make readme-table` -->", "<!-- end of docs/sessions -->"
ENVIRONMENTS = ("docker", "docker-gvisor")


def list_archives() -> list[str]:
    """Return the paths of the light archives in docs/sessions, sorted by name."""
    return sorted(glob.glob(os.path.join(ROOT, "docs/sessions/*.zip")))


def make_table(archives: list[str]) -> str:
    """Return the Markdown table that `strata pool` makes of archives, with a line break at its end.

    archives: paths of light archives.
    The table has a column for each of ENVIRONMENTS.  Raises UserError if an archive is refused.
    """
    with tempfile.TemporaryDirectory() as folder:
        pool.pool_sessions(archives, folder, ENVIRONMENTS)
        with open(os.path.join(folder, "table.md"), encoding="utf-8") as file:
            return file.read()


def replace_table(text: str, table: str) -> str:
    """Return the text of README.md with another table between its marks BEGIN and END.

    text: the present text; without the marks it is returned unchanged.
    table: Markdown that ends with a line break.
    """
    block = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    return block.sub(lambda _: f"{BEGIN}\n{table}{END}", text)


def main() -> int:
    """Write the table into README.md, and return the exit status.

    The status is 1 if there is no archive, or if one is refused; README.md is then not changed.
    """
    archives = list_archives()
    if not archives:
        print("docs/sessions has no light archive: `make light` writes one", file=sys.stderr)
        return 1
    with open(README, encoding="utf-8") as file:
        text = file.read()
    try:
        text = replace_table(text, make_table(archives))
    except UserError as error:
        progress.print_error(error)
        return 1
    with open(README, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
