"""Blocks on the nodes of a real Slurm, from the config to the paper; one node dies in between."""

import hashlib
import json
import os
import re
import sys
import time

import cluster
import projects
import pytest

# On n2 everything is a fifth faster: what is found of the nodes is known beforehand.
COMMAND = (
    'v=$((1000 + 1$(date +%N) / 1000 % 10)); if [ "$(hostname)" = n2 ]; then v=$((v * 6 / 5)); fi'
)
COMMAND += "; sleep 1; echo $v"
LOAD = {**projects.NOOP, "run": [{"argv": ["/bin/sh", "-c", COMMAND], "timeout": 60}]}
PROFILE = ["--workflow-profile", "profiles/slurm", "--slurm-status-command", "squeue"]
PROFILE += ["--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "10"]


def page(blocks):
    stacks = {name: {"layers": ["host"], "label": name.title()} for name in ("native", "again")}
    return projects.on_host(
        environments=stacks, repetitions=blocks, interference={"action": "flag"}
    )


def test_a_part_of_a_run_measures_by_the_plan_that_is_there(project):
    """As Snakemake's executor starts some cells on a node."""
    folder = project(projects.on_host(repetitions=3, spread=True))
    planned = projects.plan(folder)
    assert planned["spread"] is True
    # The plan says it, though the page says something else by now.
    projects.write_yaml(folder / "config.yaml", projects.on_host(repetitions=9, seed=2))
    cells = [f"cell:environment=bare,workload=noop,repetition={number}" for number in (1, 2)]
    words = [
        "--force",
        "--nolock",
        "--no-hooks",
        "--ignore-incomplete",
        "--mode",
        "remote",
        "--scheduler",
        "greedy",
    ]
    words = [
        "snakemake",
        "--cores",
        "1",
        "--target-jobs",
        *cells,
        "--allowed-rules",
        "cell",
        *words,
    ]
    # The run that it belongs to is on another machine.
    more = {"SLURMD_NODENAME": "n7", "SLURM_JOB_ID": "5", "STRATA_OWNER": f"{os.getpid()}:1"}
    projects.good(folder, *words, **more)
    assert [node_of(one) for one in projects.records(folder)] == ["n7", "n7"]
    assert json.loads((folder / "results/plan.json").read_text()) == planned


@pytest.fixture
def nodes(tmp_path, monkeypatch):
    """A project, and a cluster of two nodes on which it can be measured."""
    assert not cluster.missing(), "install what scripts/packages.txt names"
    # In an environment of its own: every start of Snakemake would take longer with it.
    python = projects.beside(tmp_path / "venv", projects.ROOT / "requirements-slurm.txt")
    monkeypatch.setattr(sys, "executable", str(python))
    home, lock = tmp_path / "home", tmp_path / "lock"
    monkeypatch.setenv("STRATA_HOME", str(home))
    # Each node has its own lock, as machines have.  With it only the bare host is brought up.
    monkeypatch.setenv("STRATA_TEST_LOCK", str(lock))
    folder = projects.make(tmp_path / "project", page(10), {"noop": LOAD}, copy=True)
    with cluster.Cluster(tmp_path / "slurm", ["n1", "n2"], [home, lock]) as both:
        yield folder, both


def begun(folder, both, *targets):
    """Start a run of these targets on the nodes of a cluster."""
    return projects.start(
        folder, "snakemake", *PROFILE, "--jobs", "4", "--", *targets, **both.variables
    )


def node_of(record):
    """The node that a record means by its mark."""
    marks = {
        f"node-{hashlib.sha256(name.encode()).hexdigest()[:6]}": name for name in ("n1", "n2", "n7")
    }
    return marks[record["node"]["name"]]


def by_block(folder):
    """The nodes of the cells of each block."""
    found = {}
    for record in projects.records(folder):
        found.setdefault(record["repetition"], []).append(node_of(record))
    return found


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_paper_is_measured_on_two_nodes_one_of_which_dies(nodes):
    folder, both = nodes
    run = begun(folder, both, "paper/report.pdf", "paper/report.html")
    try:
        # Two blocks of n2 are whole, and a third is not.
        deadline = time.monotonic() + 900
        while sorted(names for names in by_block(folder).values() if "n2" in names) != [
            ["n2"],
            *[["n2", "n2"]] * 2,
        ]:
            assert run.poll() is None, run.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.1)
        both.kill("n2")
        assert len(by_block(folder)) < 10
        printed, _ = run.communicate(timeout=1800)
    finally:
        run.kill()
    assert run.returncode == 0, printed[-6000:]
    found = by_block(folder)
    assert sorted(found) == list(range(1, 11))
    # No block lies on two nodes, also that of which n2 took a part with it.
    assert all(len(names) == 2 and len(set(names)) == 1 for names in found.values())
    assert {names[0] for names in found.values()} == {"n1", "n2"}
    # One machine, and the paper says so.
    assert len({record["node"]["boot"] for record in projects.records(folder)}) == 1
    assert json.loads((folder / "results/plan.json").read_text())["spread"] is True
    text = re.sub(r"<[^>]*>", "", (folder / "paper/report.html").read_text())
    text = " ".join(text.replace("\u00a0", " ").replace("\u202f", " ").split())
    assert "The blocks were shared out among 2 nodes" in text
    assert "Some of these names are of one machine" in text
    # What is there is not measured again, here or there, and a dry run says so.
    done = projects.run(folder, "snakemake", "--dry-run", "--", "cells")
    assert "Nothing to be done" in done.stdout + done.stderr
    # One cell that is gone is measured, and only that one.  If it is then on another node, its
    # block is not compared.
    kept = next(number for number, names in found.items() if names[0] == "n1")
    others = {path: path.read_bytes() for path in folder.glob("results/raw/*/*/*.log")}
    gone = folder / f"results/raw/again/noop/{kept}.log"
    gone.unlink()
    again = begun(folder, both, "results/SHA256SUMS")
    printed, _ = again.communicate(timeout=900)
    assert again.returncode == 0, printed
    assert [
        path for path, content in others.items() if path.read_bytes() != content and path != gone
    ] == []
    torn = len(set(by_block(folder)[kept])) > 1
    rows = [line.split(",") for line in (folder / "results/tidy/noop.csv").read_text().splitlines()]
    counts = {
        row[rows[0].index("counts")]
        for row in rows
        if row[rows[0].index("repetition")] == str(kept)
    }
    assert counts == {"no" if torn else "yes"}
