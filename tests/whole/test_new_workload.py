"""Make the workloads of docs/adding-a-workload.md from the page's own text.

One is a tool, the other a server with a client.
"""

import json
import subprocess

import guides
import projects
import pytest
import yaml

KINDS = ("sorting", "page")


@pytest.fixture
def clone(tmp_path):
    """A clone with both workloads of the guide, typed into it."""
    folder = guides.clone_project(tmp_path / "strata")
    # A workload with a client is not measured on the bare host.
    config = projects.on_host(
        environments={"bare": {"layers": ["host"]}, "native": {"layers": ["chroot"]}},
        workloads=dict.fromkeys(KINDS),
        leave_out={"bare": ["page"]},
    )
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    projects.track(folder, commit=True)
    for step in guides.parse_steps((guides.DOCS / "adding-a-workload.md").read_text())[:2]:
        files = step.commands[: step.commands.rindex("\nEND\n") + 5]
        subprocess.run(["bash", "-euo", "pipefail", "-c", files], cwd=folder, check=True)
    return folder


def test_a_workload_of_each_kind_is_a_folder_and_no_other_file_changes(clone):
    projects.good(clone, "strata", "check", PYTHONPATH=str(clone))
    planned = projects.plan(clone)["workloads"]
    assert [server["name"] for server in planned["page"]["cell"]["servers"]] == ["web"]
    table = "results/summary.csv"
    only = "only={workloads: [sorting], environments: [bare]}"
    projects.good(
        clone, "snakemake", "--cores", "1", "--config", only, "--", table, PYTHONPATH=str(clone)
    )
    [row] = projects.table(clone / table)
    assert float(row["mean"]) > 0
    record = json.loads((clone / "results/raw/bare/sorting/1.json").read_text())
    assert record["parameters"] == {}
    assert guides.list_changes(clone) == ["?? workloads/page/", "?? workloads/sorting/"]
