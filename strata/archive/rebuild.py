"""The paper made again from archived logs: nothing is measured, and no Docker or QEMU is needed."""

import os
import shutil
import subprocess
import sys

from strata.archive import check, sums
from strata.base import places
from strata.base.errors import UserError
from strata.results import judge, made, products

INPUTS = ("plan.json", "plan.csv", "image.json", "image-manifest.json", "raw", "failed")


def prepare(folder: str, work: str) -> None:
    """Lay out a project in `work`: the archived source, plan, logs and records of the archive in `folder`."""
    shutil.copytree(os.path.join(folder, "source"), work, dirs_exist_ok=True)
    for name in INPUTS:
        path, target = (os.path.join(root, "results", name) for root in (folder, work))
        if os.path.isdir(path):
            shutil.copytree(path, target)
        elif os.path.exists(path):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(path, target)


def remake(work: str, partial: bool) -> None:
    """Make tables, figures and papers in a prepared project, by its own code.

    Raises UserError with what the workflow said last, where it fails.
    """
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--config", "rebuild=true"]
    command += ["partial=true"] if partial else []
    variables = {key: value for key, value in os.environ.items() if key not in ("STRATA_OWNER", "SNAKEMAKE_PROFILE")}
    done = subprocess.run(
        [*command, "--", *products.PAPERS],
        cwd=work,
        env={**variables, "PYTHONPATH": os.path.abspath(work)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        last = "\n".join(done.stdout.strip().splitlines()[-25:])
        raise UserError(f"the paper could not be made again in {work}:\n{last}")
    for name in (".snakemake", "results/tmp"):
        shutil.rmtree(os.path.join(work, name), ignore_errors=True)


def made_in(folder: str) -> list[products.Product]:
    """The products of an archive or of a project made from one."""
    experiment = judge.load(folder, places.PLAN)
    return list(made.State(experiment, folder, os.path.join(folder, "source")).products().values())


def compare(folder: str, work: str) -> list[tuple[str, str]]:
    """(name, state) of every product of the archive in `folder`; identical, different or missing in `work`."""
    found = []
    for name in (name for product in made_in(folder) for name in product.files):
        again = os.path.join(work, name)
        if not os.path.isfile(again):
            state = "missing"
        else:
            same = sums.digest(os.path.join(folder, name)) == sums.digest(again)
            state = "identical" if same else "different"
        found.append((name, state))
    return found


def rebuild(path: str, target: str | None) -> int:
    """Verify an archive, make its paper again in `target`, and print of each product whether it is the same.

    Gives the exit status: 0 where every table is byte-identical, else 1.  Raises UserError where the archive does
    not verify, where `target` is there already, or where the paper cannot be made.
    """
    work = target or f"{os.path.basename(os.path.abspath(path)).removesuffix('.zip')}-rebuilt"
    if os.path.exists(work) and (not os.path.isdir(work) or os.listdir(work)):
        raise UserError(f"{work}: is there already; remove it, or name another folder with --to")
    with check.unpacked(path) as (folder, found):
        found = found + check.findings(folder)
        if found:
            raise UserError("\n".join([f"{path}: does not verify, and is not rebuilt:", *found]))
        os.makedirs(work, exist_ok=True)
        prepare(folder, work)
        print(f"rebuild: making the paper again in {work}", file=sys.stderr, flush=True)
        remake(work, judge.load(folder, "archive.json")["partial"])
        states = compare(folder, work)
    for name, state in states:
        print(f"{state:9}  {name}")
    tables = [state for name, state in states if products.is_table(name)]
    others = [state for name, state in states if not products.is_table(name)]
    print(f"rebuild: {tables.count('identical')} of {len(tables)} tables are byte-identical", file=sys.stderr)
    print(
        f"rebuild: {others.count('identical')} of {len(others)} figures and papers are (their bytes depend on the "
        f"versions of R, pandoc and LaTeX too); the paper is {os.path.join(work, products.PAPERS[0])}",
        file=sys.stderr,
    )
    return 0 if set(tables) <= {"identical"} and "missing" not in others else 1
