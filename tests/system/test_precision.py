"""Blocks are added until every interval is within the target, or the cap is reached."""

import json
from itertools import pairwise

import projects
import pytest


def measured_blocks(folder):
    return sorted({record["block"] for record in projects.records(folder)})


def config(target, most=6, least=2):
    return projects.default(
        repetitions={"min": least, "max": most, "target": target},
        environments={"native": {"layers": ["chroot"]}},
        workloads={"stream": {"elements": 1_000_000, "trials": 30}, "randomaccess": {"log2": 16, "min_seconds": 0.2}},
    )


def states(folder):
    found = [json.loads(path.read_text()) for path in folder.glob("results/precision/*.json")]
    return sorted(found, key=lambda state: state["block"])


def snakemake(folder, *words):
    done = projects.run(folder, "snakemake", "--cores", "1", *words)
    assert done.returncode == 0, done.stderr + done.stdout
    return done


SUMMARIES = ["results/summary/stream.csv", "results/summary/randomaccess.csv"]


@pytest.mark.parametrize(("target", "blocks"), [("1000%", [1, 2]), ("0.0001%", [1, 2, 3])])
def test_the_target_or_the_cap_ends_it(image, tmp_path, machine_stays, target, blocks):
    folder = projects.make(tmp_path / "project", config(target, most=3))
    snakemake(folder, *SUMMARIES)
    assert measured_blocks(folder) == blocks
    found = states(folder)
    last = found[-1]
    assert [state["block"] for state in found] == list(range(2, last["block"] + 1))
    assert [state["enough"] for state in found] == [False] * (len(found) - 1) + [True]
    assert last["block"] == blocks[-1]
    assert last["reason"] == (
        "the target was reached" if target == "1000%" else "the largest number of blocks was reached"
    )
    planned = [record["position"]["planned"] for record in projects.records(folder)]
    assert all(earlier < later for earlier, later in pairwise(planned))
    rows = (folder / "results/summary/randomaccess.csv").read_text().splitlines()
    assert rows[1].split(",")[6] == str(blocks[-1])
    again = projects.run(folder, "snakemake", "--cores", "1", "--dry-run", *SUMMARIES)
    assert "Nothing to be done" in again.stdout + again.stderr


@pytest.mark.long
def test_only_the_state_after_the_last_block_is_enough(image, tmp_path, machine_stays):
    folder = projects.make(tmp_path / "project", config("12%"))
    snakemake(folder, *SUMMARIES)
    found = states(folder)
    assert [state["block"] for state in found] == list(range(2, found[-1]["block"] + 1))
    assert [state["enough"] for state in found] == [False] * (len(found) - 1) + [True]
    assert found[-1]["reached"] == found[-1]["metrics"] or found[-1]["block"] == 6
