"""Measure one session of a gate: blocks of some environments, in a folder of its own."""

import glob
import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from strata.archive.checksums import hash_file
from strata.archive.compare import read_starts
from strata.experiment import measuring
from strata.experiment.folder import make_folder
from strata.util import paths, programs
from strata.util.data_types import Fields
from strata.util.files import read_json

Pair = tuple[str, str]


def session_config(content: Fields, pairs: Iterable[Pair], most: int) -> Fields:
    """Return the configuration of a session, which holds nothing but some pairs.

    content: config.yaml with the caller's overrides.
    pairs: the environments and workloads that are measured.
    most: the largest number of blocks.
    """
    measured = set(pairs)
    environments = sorted({name for name, _ in measured})
    workloads = sorted({name for _, name in measured})
    leave_out = {
        name: [workload for workload in workloads if (name, workload) not in measured]
        for name in environments
    }
    return {
        **{key: value for key, value in content.items() if key not in ("measure", "partial")},
        "repetitions": most,
        "only": {"environments": environments, "workloads": workloads},
        "leave_out": {
            name: workload_names for name, workload_names in leave_out.items() if workload_names
        },
        "order": "blocks",
        "emulation": False,
        # A block that is measured again would be a look too many.
        "interference": {**(content.get("interference") or {}), "action": "flag"},
    }


class Session:
    """The results of one session, which grow block by block.

    folder: holds config.yaml, links to the project's files, and results.
    """

    def __init__(self, folder: str, content: Fields) -> None:
        """Make the folder, unless a call of the same session was interrupted in it.

        folder: its path.  content: of config.yaml, as :func:`session_config` returns it.
        """
        self.folder = folder
        make_folder(folder, content)

    def measure(self, pairs: Iterable[Pair], numbers: Mapping[str, int]) -> None:
        """Measure the missing cells of some pairs, and write the tidy tables.

        pairs: environments and workloads.  numbers: how many blocks of each workload there shall be
        in all.
        Raises MachineError with the end of Snakemake's output if something was not measured.
        """
        targets = [
            paths.cell_path("raw", environment, workload, repetition, "log")
            for environment, workload in pairs
            for repetition in range(1, numbers.get(workload, 0) + 1)
        ]
        measuring.make_targets(self.folder, targets, "--keep-going")
        programs.run_python(self.folder, "tidy", "--partial")

    def records(self) -> list[Fields]:
        """Return the records of all measured cells."""
        pattern = os.path.join(glob.escape(self.folder), "results/raw/*/*/*.json")
        return [record for path in sorted(glob.glob(pattern)) if (record := read_json(path))]

    def block_seconds(self) -> dict[str, float]:
        """Return for each workload the mean seconds of a block."""
        spent: dict[str, float] = {}
        measured: dict[str, int] = {}
        for record in self.records():
            name = record["workload"]
            spent[name] = spent.get(name, 0.0) + record["seconds"]
            measured[name] = max(measured.get(name, 0), record["repetition"])
        return {name: seconds / measured[name] for name, seconds in spent.items()}

    def describe(self) -> Fields:
        """Return ``{start, subject, layers, logs}`` of the session.

        start: identifies the start of the kernel and of Docker; sessions with the same are one.
        subject: a hash of what is tested: kernels, engines, layers and image; it is the same for
        sessions of the same versions.
        layers: those of each environment, with the digests of programs.
        logs: a hash of all logs.
        """
        records = self.records()
        starts = sorted(read_starts(os.path.join(self.folder, "results")))
        subject = sorted({str(_subject_of(record)) for record in records})
        pattern = os.path.join(glob.escape(self.folder), "results/raw/*/*/*.log")
        logs = [
            f"{os.path.relpath(log, self.folder)} {hash_file(log)}" for log in glob.glob(pattern)
        ]
        return {
            "start": starts[0] if starts else "",
            "subject": _hash("\n".join(subject)),
            "layers": {record["environment"]: record["system"]["layers"] for record in records},
            "logs": _hash("\n".join(sorted(logs))),
        }


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _subject_of(record: Fields) -> Any:
    """Return what a record says of the kernel, the engines, the layers and the image."""
    observed = record["observed"]
    facts = record["system"].get("docker") or {}
    versions = {key: facts.get(key) for key in ("engine", "containerd", "runc", "sandbox")}
    return [
        record["environment"],
        observed["inside"].get("kernel"),
        observed["host"]["static"].get("kernel"),
        record["system"]["layers"],
        versions,
        (record.get("image") or {}).get("recipe"),
    ]
