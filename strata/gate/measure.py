"""Measure one session of a gate: blocks of some environments, in its own folder."""

import glob
import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from strata.archive.checksums import hash_file
from strata.archive.compare import list_starts
from strata.experiment import measuring, precision
from strata.experiment.folder import prepare_experiment_folder
from strata.util import paths, programs
from strata.util.data_types import Fields

# (environment, workload)
Pair = tuple[str, str]


def build_session_config(content: Fields, pairs: Iterable[Pair], max_blocks: int) -> Fields:
    """Return the content of config.yaml for a session, which measures only some pairs.

    content: the content of the project's config.yaml with the caller's overrides; not changed.
    pairs: the environments and workloads that are measured; all others are left out.
    max_blocks: the largest number of blocks.  Snakemake measures only the requested blocks.
    The keys `measure` and `partial`, which are for archives and tables, are left out.
    """
    needed_pairs = set(pairs)
    environments = sorted({environment for environment, _ in needed_pairs})
    workloads = sorted({workload for _, workload in needed_pairs})
    leave_out: dict[str, list[str]] = {}
    for environment in environments:
        omitted_workloads = [
            workload for workload in workloads if (environment, workload) not in needed_pairs
        ]
        if omitted_workloads:
            leave_out[environment] = omitted_workloads
    return {
        **{key: value for key, value in content.items() if key not in ("measure", "partial")},
        "repetitions": max_blocks,
        "only": {"environments": environments, "workloads": workloads},
        "leave_out": leave_out,
        "order": "blocks",
        "emulation": False,
        # Blocks that are measured again would change the planned numbers of blocks.
        "interference": {**(content.get("interference") or {}), "action": "flag"},
    }


class Session:
    """The results of one session, which grow block by block.

    folder: its folder, with config.yaml, links to the project's files, and results.
    results: the folder of results in it.
    """

    def __init__(self, folder: str, content: Fields) -> None:
        """Create the folder, or update the folder of an interrupted session and keep its results.

        folder: the path of the session's folder.
        content: the content of config.yaml, as :func:`build_session_config` returns it.
        """
        self.folder = folder
        self.results = os.path.join(folder, "results")
        prepare_experiment_folder(folder, content)

    def measure_pairs(self, pairs: Iterable[Pair], block_counts: Mapping[str, int]) -> None:
        """Measure the missing cells of some pairs, and write the tidy tables.

        pairs: (environment, workload) of each pair.
        block_counts: workload → the number of its blocks, measured ones included; workloads
        without one are not measured.
        Cells that are measured already are not measured again.
        Raises MachineError with the end of Snakemake's output if a cell was not measured.
        """
        targets = [
            _build_log_path(environment, workload, repetition)
            for environment, workload in pairs
            for repetition in range(1, block_counts.get(workload, 0) + 1)
        ]
        measuring.make_targets(self.folder, targets, "--keep-going")
        programs.run_python(self.folder, "tidy", "--partial")

    def count_blocks(self, pairs: Iterable[Pair]) -> dict[str, int]:
        """Return for each workload how many blocks are measured in all of its environments.

        pairs: (environment, workload) of each pair in the blocks.
        Blocks are counted from the first up to the first missing cell: later blocks do not count.
        """
        counts: dict[str, int] = {}
        for environment, workload in pairs:
            count = 0
            while os.path.exists(
                os.path.join(self.folder, _build_log_path(environment, workload, count + 1))
            ):
                count += 1
            counts[workload] = min(count, counts.get(workload, count))
        return counts

    def compute_block_seconds(self) -> dict[str, float]:
        """Return ``{workload: seconds}``, the expected duration of a block of each workload.

        The duration is the sum over environments of the median seconds of a cell.
        """
        records = {
            (record["environment"], record["workload"], record["repetition"]): record
            for record in measuring.read_records(self.results)
        }
        seconds: dict[str, float] = {}
        for (_, workload), median in precision.compute_median_cell_seconds(records).items():
            seconds[workload] = seconds.get(workload, 0.0) + median
        return seconds

    def describe(self) -> Fields:
        """Return ``{start, subject, layers, logs}`` of the session, for gate.json and the history.

        start: identifies the start of the kernel and of Docker; all runs after the same start are
        one session.
        subject: a hash of the tested versions (kernels, engines, layers and image).  Stored
        sessions contain it; sessions with the same versions are found by it.
        layers: environment → its layers, with the digests of programs.
        logs: a hash of all logs.
        Without a measured cell, `start` is "".  A session has one start; of several, the first in
        alphabetical order is kept.
        """
        records = measuring.read_records(self.results)
        starts = sorted(list_starts(self.results))
        subjects = {str(_list_versions(record)) for record in records}
        pattern = os.path.join(glob.escape(self.results), "raw/*/*/*.log")
        logs = [
            f"{os.path.relpath(log, self.folder)} {hash_file(log)}" for log in glob.glob(pattern)
        ]
        return {
            "start": starts[0] if starts else "",
            "subject": _hash_lines(subjects),
            "layers": {record["environment"]: record["system"]["layers"] for record in records},
            "logs": _hash_lines(logs),
        }


def _build_log_path(environment: str, workload: str, repetition: int) -> str:
    """Return the path of a cell's raw log, relative to the folder of its session."""
    return paths.get_cell_path("raw", environment, workload, repetition, "log")


def _hash_lines(lines: Iterable[str]) -> str:
    """Return the SHA-256 of lines, which are sorted first, in hexadecimal digits.

    The computation must stay, since gate.json of stored sessions contains such hashes.
    """
    return sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _list_versions(record: Fields) -> Any:
    """Return the versions that a record names: kernels, layers, Docker and the image's recipe.

    record: a cell's record (schemas/record.schema.json); a missing version is None.
    Their order and form must stay: the gate finds stored sessions with the same versions by a hash
    of the string that `str` makes of the list.
    """
    observations = record["observed"]
    docker_facts = record["system"].get("docker") or {}
    versions = {key: docker_facts.get(key) for key in ("engine", "containerd", "runc", "sandbox")}
    return [
        record["environment"],
        observations["inside"].get("kernel"),
        observations["host"]["static"].get("kernel"),
        record["system"]["layers"],
        versions,
        (record.get("image") or {}).get("recipe"),
    ]
