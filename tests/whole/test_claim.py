"""Run ``strata claim``, from a claim to its exit status and page.

Snakemake and R are real; the program is a stub.
"""

import json

import projects
import pytest
import yaml

OWN = {
    "statement": "Both are equally fast.",
    "source": "a test",
    "environments": ["docker", "native"],
    "workload": "noop",
    "metric": "rate",
    "low": 0.9,
    "high": 1.1,
}
# Prints a number from 1000 to 1009 by the clock, after more time than Snakemake takes between two
# cells: runs form a pair if the time between them is at most that of their block.
NOISY = "sleep 0.5; echo $((1000 + $(date +%s%N | cut -c 16)))"


@pytest.fixture
def folder(tmp_path):
    """Make a project whose two environments are the bare host."""
    config = projects.on_host(
        scale="standard",
        interference={"action": "flag"},
        environments={name: {"layers": ["host"]} for name in ("native", "docker")},
        workloads={"noop": None},
    )
    noop = {**projects.NOOP, "run": [{"argv": ["/bin/bash", "-c", NOISY], "timeout": 20}]}
    return projects.make(tmp_path / "project", config, {"noop": noop})


def claim(folder, name, *options, **changes):
    """Run the command for a claim of one's own; return its exit status and what it printed."""
    projects.write_yaml(folder / f"{name}.yaml", {**OWN, **changes})
    done = projects.run(folder, "strata", "claim", f"{name}.yaml", *options)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def read_yaml(path):
    """Return the content of a file in YAML."""
    return yaml.safe_load(path.read_text())


def row_of(folder, name):
    """Return the row of the claim in the tables of its folder."""
    [row] = projects.table(folder / f"claim/{name}/results/claims.csv")
    return row


def test_a_claim_gets_its_verdict_its_status_and_a_page(folder):
    status, printed = claim(folder, "equal")
    assert (status, row_of(folder, "equal")["verdict"]) == (0, "reproduced"), printed
    assert "10 of 10 cells are due" in printed
    page = (folder / "claim/equal/claim.html").read_text()
    assert OWN["statement"] in page
    assert "data:image/svg" in page
    logs = list((folder / "claim/equal/results/raw").rglob("*.log"))
    # A claim with such a tolerance takes little more than the first stage.
    assert 2 * 5 <= len(logs) <= 2 * 20
    # The same command measures nothing again; the claim is judged by the file as it is now.
    before = {log: log.stat().st_mtime_ns for log in logs}
    status, printed = claim(folder, "equal", low=1.5, high=2, value=1.6)
    assert (status, row_of(folder, "equal")["verdict"]) == (1, "contradicted"), printed
    assert {log: log.stat().st_mtime_ns for log in logs} == before
    status, printed = claim(folder, "equal", "--budget", "1s", low=0.99999, high=1.00001)
    assert status == 2, printed
    # By chance the ratio lies so near to a limit that no number of blocks would decide.
    assert "more blocks" in printed or "will not be decided" in printed
    assert not (folder / "results").exists()


def test_a_published_claim_is_tested_by_the_results_that_are_there(folder):
    published = json.loads((projects.ROOT / "published/claims.json").read_text())
    entry = next(entry for entry in published["claims"] if entry["id"] == "ibm-pxz-docker-similar")
    entry |= {"workload": "noop", "published": {"value": 1, "unit": "ratio"}}
    untestable = next(entry for entry in published["claims"] if "untestable" in entry)
    foreign = {**untestable, "id": "of-another-workload"}
    untestable["workload"] = "noop"
    published["claims"] = [entry, untestable, foreign]
    published["workload_groups"] = {}
    (folder / "published").unlink()
    (folder / "published").mkdir()
    (folder / "published/claims.json").write_text(json.dumps(published))
    config = ["--config", "repetitions=8"]
    projects.good(folder, "snakemake", "--cores", "1", "results/claims.csv", *config)
    [row] = [
        row for row in projects.table(folder / "results/claims.csv") if row["id"] == entry["id"]
    ]
    assert row["verdict"] == "reproduced"
    done = projects.run(folder, "strata", "claim", entry["id"])
    assert done.returncode == 0, done.stderr
    assert "results of this project" in done.stdout
    assert not (folder / "claim" / entry["id"] / "results").exists()
    assert (folder / "claim" / entry["id"] / "claim.html").exists()
    done = projects.run(folder, "strata", "claim", untestable["id"])
    assert (done.returncode, untestable["untestable"]["because"] in done.stdout) == (3, True)
    done = projects.run(folder, "strata", "claim", entry["id"], "--config", "scale=tiny")
    assert (done.returncode, "tiny" in done.stdout) == (3, True)
    # By the same results: what the ratio and the claims take.
    done = projects.good(folder, "strata", "plan", "--decide", *config)
    assert f"{entry['id']}: reproduced" in done.stdout
    assert (
        f"not decided here ({untestable['untestable']['reason']}): {untestable['id']}"
        in done.stdout
    )
    assert foreign["id"] not in done.stdout
    assert "other workloads: 1" in done.stdout
    assert "docker · No operation Rate" in done.stdout
    for options in (["--width", "4%"], ["--decide", "--seal"], ["--decide", "--width", "0.04"]):
        done = projects.run(folder, "strata", "plan", *options)
        assert (done.returncode, options[-2] in done.stderr) == (1, True), done.stderr
    assert not (folder / "results/sealed.json").exists()
    # The ratio has an interval, so that its width is known.
    done = projects.good(folder, "strata", "plan", "--decide", "--width", "1e-9%", *config)
    assert "not here: over" in done.stdout
    assert "not known yet" not in done.stdout
    status, printed = claim(folder, "equal", "--width", "1.5")
    assert (status, "--width: is '1.5'; must be a percentage" in printed) == (4, True), printed


def test_a_program_that_fails_gives_no_verdict(folder):
    status, printed = claim(folder, "equal", "--budget", "2x")
    assert (status, "--budget" in printed) == (4, True)
    broken = {**projects.NOOP, "run": [{"argv": ["/bin/false"], "timeout": 20}]}
    projects.write_yaml(folder / "workloads/noop/workload.yaml", broken)
    status, printed = claim(folder, "equal")
    assert (status, "did not end well" in printed) == (4, True)
    assert not (folder / "claim/equal/claim.html").exists()


def test_a_claim_takes_the_configuration_of_a_try(folder):
    own = {**read_yaml(folder / "config.yaml"), "repetitions": {"min": 5, "max": 9, "claims": True}}
    projects.write_yaml(folder / "config.yaml", own)
    schema = {"type": ["string", "null"]}
    data = {"about": "None", "schema": schema, "file": "number", "value": None}
    noop = read_yaml(folder / "workloads/noop/workload.yaml")
    noop["parameters"]["data"] = data
    noop["parameters"]["number"] |= {"schema": {"type": "string"}, "value": ""}
    projects.write_yaml(folder / "workloads/noop/workload.yaml", noop)
    (folder / "data.tar").write_text("data")
    tried = {"repetitions": {"min": 3, "margin": "2%"}, "workloads": {"noop": {"data": "data.tar"}}}
    projects.write_yaml(folder / "tried.yaml", tried)
    options = ("--dry-run", "--width", "3%", "--configfile", "tried.yaml")
    status, printed = claim(folder, "equal", *options)
    assert (status, "10 of 10 cells are due" in printed) == (2, True), printed
    assert "± 3 % is reached" in printed
    own = read_yaml(folder / "claim/equal/config.yaml")
    assert "margin" not in own["repetitions"]
    named = folder / "claim/equal" / own["workloads"]["noop"]["data"]
    assert named.samefile(folder / "data.tar")
    projects.write_yaml(folder / "workloads/command/workload.yaml", projects.NOOP)
    status, printed = claim(folder, "command", "--dry-run", workload="command")
    assert (status, "try/NAME" in printed) == (4, True), printed
