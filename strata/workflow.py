"""What the Snakefile asks of the package: the experiment, its cells, their order and their inputs."""

import fcntl
import functools
import hashlib
import json
import logging
import os
import sys
from typing import Any

from strata import config, image, layers, machine, places, plan, progress, published, testbed
from strata.errors import UserError
from strata.files import read_json
from strata.workload import check_files


def is_news(record: logging.LogRecord) -> bool:
    """Whether a message of Snakemake's tells a person something that the cells' own lines do not."""
    noise = ("Select jobs to execute", "Execute ", "Using shell: ", "Conda environments: ignored")
    return not record.getMessage().startswith(noise)


class Workflow:
    """The experiment as the rules see it.

    settings: the checked config.  plan: the object of results/plan.json.
    """

    def __init__(self, over: dict, project: str) -> None:
        # The rules' commands find this interpreter and this package, and know whose end to outlive.
        os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
        os.environ["PYTHONPATH"] = project
        os.environ.setdefault(testbed.OWNER, str(os.getpid()))
        self.project = project
        self.settings = config.read(config.typed(over))
        self.plan = config.experiment(self.settings, machine.facts())
        self.partial = self.settings["partial"]
        self.workloads = sorted(self.plan["workloads"])
        self.environments = sorted(plan.available(self.plan))
        self.digest = hashlib.sha256(json.dumps(self.plan, sort_keys=True).encode()).hexdigest()
        fingerprint = functools.cache(lambda *cell: plan.fingerprint(self.plan, *cell))
        order = enumerate(plan.rows(self.plan))
        position = {(name, workload, block): place for place, (_, block, name, workload, _) in order}
        self._lock: int | None = None
        # Snakemake looks at the signature of these for every job: plain functions have it cheaper than methods.
        self.fingerprint = lambda wildcards: fingerprint(wildcards.environment, wildcards.workload)
        self.priority = lambda wildcards: (
            self.plan["cells"] - position[wildcards.environment, wildcards.workload, int(wildcards.repetition)]
        )

    def cells(self, workload: str, checkpoints: Any = None) -> list[str]:
        """Logs of a workload's cells: all that are planned, or in a partial run those that are there.

        Where repetitions are added until the target is reached, `checkpoints` (Snakemake's) tells how many.
        """
        logs = self.logs(workload, self.plan["repetitions"] if self.partial else self.blocks(checkpoints))
        return [log for log in logs if os.path.exists(log)] if self.partial else logs

    def logs(self, workload: str, blocks: int) -> list[str]:
        """Logs of a workload's cells in the first blocks of the plan."""
        return [
            places.cell_path("raw", environment, workload, repetition, "log")
            for environment in self.environments
            for repetition in range(1, blocks + 1)
        ]

    def all_logs(self, blocks: int) -> list[str]:
        """Logs of every workload's cells in the first blocks of the plan."""
        return [log for workload in self.workloads for log in self.logs(workload, blocks)]

    @property
    def adaptive(self) -> bool:
        """Whether blocks are added until the target is reached."""
        return "precision" in self.plan and not self.partial

    def blocks(self, checkpoints: Any) -> int:
        """How many blocks are to be measured; raises Snakemake's own exception while that is open."""
        if not self.adaptive:
            return self.plan["repetitions"]
        for block in range(self.plan["precision"]["min"], self.plan["precision"]["max"] + 1):
            found = read_json(checkpoints.precision.get(block=block).output[0])
            if found and found["enough"]:
                return block
        return self.plan["repetitions"]

    def folders(self, workload: str) -> list[str]:
        """Those folders of a workload's logs that are there."""
        logs = [places.cell_path("raw", environment, workload, 1, "log") for environment in self.environments]
        return [os.path.dirname(log) for log in logs if os.path.isdir(os.path.dirname(log))]

    def needs_image(self) -> bool:
        """Whether a configured environment runs anything of the image (the bare host does not)."""
        kinds = {
            kind for name in self.environments for entry in self.plan["environments"][name]["layers"] for kind in entry
        }
        return any(layers.layer_class(kind).needs_image for kind in kinds)

    def measured(self) -> list[str]:
        """Workloads that have a cell to show."""
        return [workload for workload in self.workloads if not self.partial or self.cells(workload)]

    def published_raw(self) -> str:
        """Where the published raw results are.  Raises UserError where the config does not say."""
        return published.named(self.settings)

    def published_state(self) -> str:
        """What changes when the published raw results do."""
        return published.state(self.published_raw())

    def begin(self, cells: int, measuring: bool = True) -> None:
        """Take this folder for the run that starts now, write the plan, and see that the image is there.

        The kernel frees the folder when the run ends, however it does.  Where nothing of the experiment is wanted
        (`measuring` is false), neither plan nor image is needed.
        """
        os.makedirs("results/tmp", exist_ok=True)
        self._lock = os.open("results/tmp/run.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                "another run is at work in this folder; wait for it to end (nothing needs to be unlocked)"
            ) from None
        if not measuring:
            return
        for workload in self.workloads:
            check_files(workload, self.plan["workloads"][workload]["parameters"])
        plan.write({**self.plan, "source": plan.source(self.project)})
        if self.needs_image() and (cells or not os.path.exists(places.IMAGE)):
            image.publish(image.ensure(self.settings["image"]))
        progress.begin(os.getpid(), cells)

    def end(self) -> None:
        """Remove the system that the run left up, at once rather than by the keeper."""
        with testbed.exclusive():
            system = testbed.read_state()["system"]
            if system and system["owner"]["pid"] == os.getpid():
                testbed.take_down()
