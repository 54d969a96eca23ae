"""Put the sessions of several archives side by side, and nest them in machines."""

import contextlib
import os
from collections.abc import Sequence

from strata.archive import compare, light, output
from strata.util import paths, programs, progress
from strata.util.files import write_json


def pool_sessions(archives: list[str], out: str, environments: Sequence[str] = ()) -> None:
    """Write tables of the sessions of archives, and of the machines they ran on, into a folder.

    This is the command ``pool``: strata/options.py passes its options by these names.
    archives: the paths of light archives, whole archives, projects or folders of results.
    out: the folder to write index.html and the tables into.
    environments: the environments that get a column in table.md; empty for all.
    Raises UserError for an archive with faults, and for archives that cannot be pooled; `out` is
    then unchanged.
    """
    with contextlib.ExitStack() as stack:
        # analysis/pool.R reads these keys.
        sources = []
        for path in archives:
            results = stack.enter_context(compare.open_results(path, takes_light=True))
            name = os.path.basename(os.path.abspath(path))
            results = os.path.abspath(results)
            sources.append({"name": name, "results": results, **light.read_settings(results)})
        compare.check_output_folder(out, [source["results"] for source in sources])
        work = stack.enter_context(programs.create_temporary_folder("pool"))
        listing = os.path.join(work, "sources.json")
        write_json(listing, sources)
        folder = stack.enter_context(output.write_whole_folder(out))
        script = os.path.join(paths.PROJECT, "analysis/pool.R")
        programs.run_r(script, listing, folder, *environments)
    names = "index.html, table.md, pool.csv, verdicts.csv and sessions.csv"
    progress.print_message(f"pool: {out} has {names}")
