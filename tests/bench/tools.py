"""The same cells for every tool: a program that prints a number and ends, one cell after another."""

import re
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import projects

SNAKEMAKE = [sys.executable, "-m", "snakemake", "--cores", "1"]


class Tool(ABC):
    """What runs cells.  A folder of its own holds each run."""

    name: ClassVar[str]

    @abstractmethod
    def prepare(self, folder: Path, cells: int, last: str | None = None) -> list[str]:
        """Write a project of so many cells into a new folder, and then one that runs `last`; the command to run."""

    def done(self, folder: Path, printed: str) -> int:
        """How many cells the folder holds after a run."""
        return sum(1 for _ in (folder / "out").iterdir())


class Strata(Tool):
    """This pipeline on the bare host: everything but what an environment itself takes."""

    name = "Strata"
    target = "cells"

    def prepare(self, folder: Path, cells: int, last: str | None = None) -> list[str]:
        several = 10 if cells % 10 == 0 and last is None else 1
        names = [f"noop{number}" for number in range(cells if last else several)]
        workloads = dict.fromkeys(names, projects.NOOP)
        if last:
            workloads["last"] = {**projects.NOOP, "run": [*projects.NOOP["run"], {"argv": last.split(), "timeout": 60}]}
        config = projects.on_host(
            order="sequential" if last else "blocks",
            repetitions=1 if last else cells // several,
            workloads=dict.fromkeys(workloads),
        )
        projects.make(folder, config, workloads)
        return [*SNAKEMAKE, "--", self.target]

    def done(self, folder: Path, printed: str) -> int:
        return sum(1 for _ in folder.glob("results/raw/*/*/*.log"))


class Snakemake(Tool):
    """Snakemake alone, of the same version and with the same scheduler."""

    name = "Snakemake"
    target = "all"
    FILE = """\
rule all:
    input: {last}

rule last:
    input: expand("out/{{i}}", i=range({cells}))
    output: "last"
    shell: "{command} >{{output}}"

rule cell:
    output: "out/{{i}}"
    shell: "/bin/echo 7 >{{output}}"
"""

    def prepare(self, folder: Path, cells: int, last: str | None = None) -> list[str]:
        folder.mkdir(parents=True)
        wanted = '"last"' if last else f'expand("out/{{i}}", i=range({cells}))'
        (folder / "Snakefile").write_text(self.FILE.format(cells=cells, last=wanted, command=last or ""))
        return [*SNAKEMAKE, "--scheduler", "greedy", "--quiet"]


class Make(Tool):
    """GNU make."""

    name = "make"
    FILE = """\
cells := $(addprefix out/,$(shell seq {cells}))
all: {wanted}
last: $(cells)
	@{command} >$@
out/%:
	@mkdir -p out; /bin/echo 7 >$@
"""

    def prepare(self, folder: Path, cells: int, last: str | None = None) -> list[str]:
        folder.mkdir(parents=True)
        wanted = "last" if last else "$(cells)"
        (folder / "Makefile").write_text(self.FILE.format(cells=cells, wanted=wanted, command=last or ""))
        return ["make", "-s"]


class Loop(Tool):
    """A loop of the shell: what the cells' own programs take."""

    name = "shell loop"

    def prepare(self, folder: Path, cells: int, last: str | None = None) -> list[str]:
        folder.mkdir(parents=True)
        loop = f"mkdir out; for i in $(seq {cells}); do /bin/echo 7 >out/$i; done; {last or ''}"
        return ["sh", "-euc", loop]


class ReFrame(Tool):
    """ReFrame with its settings as they come, test after test; `command` is its program."""

    name = "ReFrame"
    FILE = """\
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class Cell(rfm.RunOnlyRegressionTest):
    number = parameter(range({numbers}))
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "/bin/echo"
    executable_opts = ["7"]

    @run_before("run")
    def choose(self):
        if self.number == {cells}:
            self.executable, *self.executable_opts = "{command}; echo 7".split()

    @sanity_function
    def printed(self):
        return sn.assert_found(r"^\\d+$", self.stdout)

    @performance_function("1/s")
    def rate(self):
        return sn.extractsingle(r"^(\\d+)$", self.stdout, 1, float)
"""

    def __init__(self, command: str) -> None:
        self.command = command

    def prepare(self, folder: Path, cells: int, last: str | None = None) -> list[str]:
        folder.mkdir(parents=True)
        numbers = cells + (last is not None)
        (folder / "cells.py").write_text(self.FILE.format(numbers=numbers, cells=cells, command=last or ""))
        return [self.command, "--nocolor", "-c", "cells.py", "-r", "--exec-policy=serial"]

    def done(self, folder: Path, printed: str) -> int:
        found = re.search(r"Ran (\d+)/\1 test case\(s\).*\(0 failure", printed)
        return int(found[1]) if found else 0
