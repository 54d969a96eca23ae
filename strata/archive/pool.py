"""Put the sessions of several archives side by side, and nest them in machines."""

import contextlib
import os
from collections.abc import Iterator, Sequence

from strata.archive import check, compare, light, output
from strata.util import paths, programs, progress
from strata.util.errors import UserError
from strata.util.files import write_json


def pool(archives: list[str], out: str, environments: Sequence[str] = ()) -> None:
    """Write the sessions of archives side by side into a folder, with what holds for machines.

    archives: paths of light archives, whole archives, projects or folders of results.
    out: the folder to write index.html and the tables into.
    environments: the names of those that have a column in table.md; none: all.
    Raises UserError for an archive with faults, and for archives that cannot be pooled.  `out` is
    then as it was before.
    """
    with contextlib.ExitStack() as stack:
        sources = [
            {
                "name": os.path.basename(os.path.abspath(path)),
                "results": os.path.abspath(stack.enter_context(_open_results(path))),
            }
            for path in archives
        ]
        folder = stack.enter_context(programs.temporary_folder("pool"))
        listing = os.path.join(folder, "sources.json")
        write_json(listing, sources)
        target = stack.enter_context(output.whole_folder(out))
        programs.run_r(
            os.path.join(paths.PROJECT, "analysis/pool.R"), listing, target, *environments
        )
    names = "index.html, table.md, pool.csv, verdicts.csv and sessions.csv"
    progress.print_message(f"pool: {out} has {names}")


@contextlib.contextmanager
def _open_results(path: str) -> Iterator[str]:
    """Yield the folder of results of a light archive, or of whatever ``compare`` takes.

    Raises UserError if the archive has faults, and MachineError if it cannot be read here.
    """
    with contextlib.ExitStack() as stack:
        faults = None
        if os.path.isfile(path) or light.is_light(path):
            with check.report_machine_failures(path):
                folder = stack.enter_context(check.open_archive(path))
                if light.is_light(folder):
                    faults = light.find_faults(folder)
        if faults is None:
            yield stack.enter_context(compare.open_results(path))
        elif faults:
            raise UserError(f"{path}: does not verify, and is not pooled:", *faults)
        else:
            yield os.path.join(folder, "results")
