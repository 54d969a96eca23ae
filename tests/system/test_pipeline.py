"""The whole way from a config to a paper, on real Docker, twice over."""

import itertools
import json
import math
import re
import statistics
import zipfile

import projects
import pytest
import yaml

ENVIRONMENTS = ["native", "docker", "docker-hostnet", "docker-layered"]


LAPS = 2


def config(**more):
    small = {"stream": {"elements": 2_000_000}, "pxz": {"bytes": 4_000_000, "min_seconds": 0.1}}
    small = {name: {**parameters, "laps": LAPS} for name, parameters in small.items()}
    return projects.default(**{"repetitions": 2, "workloads": small, **more})


def turns(log):
    """The turns of each lap of a log, as (thawed, freeze requested, frozen).

    Times are in microseconds since the epoch.
    """
    return [
        json.loads(line)["slices"]
        for line in log.read_text().splitlines()
        if line.startswith('{"slices"')
    ]


def spans(folder):
    """(start, end) of every measured command of a project, or of its turns, in order.

    Times are in seconds of the day.
    """
    found = []
    for record in projects.records(folder):
        cell = "{}/{}/{}.log".format(*projects.cell_of(record))
        cut = [
            tuple(moment / 1e6 % 86400 for moment in (thawed, frozen))
            for lap in turns(folder / "results/raw" / cell)
            for thawed, _, frozen in lap
        ]
        found += cut
        for command in record["commands"]:
            if cut and command["step"] == "run":
                continue
            clock = command["started"][11:-1].split(":")
            begun = int(clock[0]) * 3600 + int(clock[1]) * 60 + float(clock[2])
            found.append((begun, begun + command["seconds"]))
    return sorted(found)


@pytest.fixture(scope="module")
def made(image, tmp_path_factory):
    """A project whose paper was made with four cores on offer."""
    folder = projects.make(tmp_path_factory.mktemp("made") / "project", config(), copy=True)
    projects.good(
        folder, "snakemake", "--cores", "4", "paper/report.pdf", "paper/report.html", timeout=1200
    )
    return folder


def needed(folder, *words):
    """How many jobs of each rule a run would do."""
    done = projects.good(folder, "snakemake", "--dry-run", "--quiet=rules", *words)
    counts = re.findall(r"^(\w+)\s+(\d+)$", done.stdout + done.stderr, re.MULTILINE)
    return {name: int(count) for name, count in counts if name not in ("total",)}


def test_the_paper_is_made_and_nothing_is_left_to_do(made):
    assert (made / "paper/report.pdf").read_bytes().startswith(b"%PDF")
    assert (made / "paper/report.html").read_text().startswith("<!DOCTYPE html>")
    assert needed(made, "paper/report.pdf", "paper/report.html") == {}


def test_cells_were_measured_one_by_one_in_the_planned_order_each_in_a_fresh_system(made):
    records = projects.records(made)
    assert [projects.cell_of(record) for record in records] == projects.planned(made)
    assert len({record["system"]["id"] for record in records}) == len(records) == 16
    # Four cores were on offer.
    found = spans(made)
    assert len(found) >= 16
    assert all(earlier[1] <= later[0] + 0.002 for earlier, later in itertools.pairwise(found))


def test_every_environment_was_observed_to_run_the_same_image(made):
    records = projects.records(made)
    assert len({record["image"]["id"] for record in records}) == 1
    assert len({json.dumps(record["observed"]["inside"]["versions"]) for record in records}) == 1
    assert {record["observed"]["inside"]["os"] for record in records} == {
        "Debian GNU/Linux 13 (trixie)"
    }


def laps_that_count(log, values):
    """Of the values of all laps, in order, those of the laps that a neighbour did not disturb."""
    assert len(values) == LAPS
    laps = json.loads(log.with_suffix(".json").read_text())["laps"]
    return [value for value, lap in zip(values, laps, strict=True) if lap["counts"]]


def stream_values(log):
    """Metric → value, read from a raw log by other means than the analysis."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    found = {}
    for line in lines:
        if "kernel" in line:
            found.setdefault(line["kernel"], []).append(line["gbps"])
            found.setdefault(f"best {line['kernel']}", []).append(line["best_gbps"])
    # Laps of equal work: all work over all time.
    return {
        series: statistics.harmonic_mean(laps_that_count(log, values))
        for series, values in found.items()
    }


def series_of(row):
    """Name the series of a row of STREAM or xz as `stream_values` and `pxz_values` do."""
    kernel = row.get("factor_kernel")
    return f"best {kernel}" if kernel else row["metric"]


def pxz_values(log):
    """Metric → value of the whole runs of a log, or of its runs in slices if it has no others."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    seconds = {"whole": [], "slices": []}
    for line in lines:
        if "lap" in line:
            how = line["how"]
        elif "pass" in line:
            last = line
            if how == "whole":
                seconds[how].append(line["microseconds"])
        elif "slices" in line:
            begun, ended = last["ended"] - last["microseconds"], last["ended"]
            counted = [
                max(0, min(to, ended) - max(since, begun)) for since, to, _ in line["slices"]
            ]
            seconds["slices"].append(sum(counted))
    of_laps = laps_that_count(log, seconds["whole"] or seconds["slices"])
    return {"throughput": statistics.harmonic_mean([4_000_000 / each for each in of_laps])}


@pytest.mark.parametrize(("workload", "reader"), [("stream", stream_values), ("pxz", pxz_values)])
def test_every_number_of_the_summary_is_traced_to_its_raw_logs(made, workload, reader):
    rows = [
        row for row in projects.table(made / "results/summary.csv") if row["workload"] == workload
    ]
    rows = [row for row in rows if row["metric"] != "first"]
    assert {row["environment"] for row in rows} == set(ENVIRONMENTS)
    runs = [row for row in projects.table(made / "results/runs.csv") if row["workload"] == workload]
    for row in rows:
        logs = [run["log"] for run in runs if run["environment"] == row["environment"]]
        assert len(logs) == int(row["n"]) == 2
        values = [reader(made / log)[series_of(row)] for log in logs]
        mean, sd = statistics.mean(values), statistics.stdev(values)
        half = 12.706204736 * sd / math.sqrt(2)  # Student's t, one degree of freedom
        for column, expected in {
            "mean": mean,
            "sd": sd,
            "mean_low": mean - half,
            "mean_high": mean + half,
            "median": statistics.median(values),
            "min": min(values),
            "max": max(values),
        }.items():
            assert math.isclose(float(row[column]), expected, rel_tol=1e-6, abs_tol=1e-9), (
                row,
                column,
            )
        assert row["median_low"] == row["median_high"] == ""


def test_every_row_of_tidy_names_the_log_that_holds_its_value(made):
    rows = [
        row for row in projects.table(made / "results/tidy/stream.csv") if row["metric"] != "first"
    ]
    assert len(rows) == 4 * 2 * 8
    for row in rows:
        assert math.isclose(stream_values(made / row["log"])[series_of(row)], float(row["value"]))


def test_the_page_is_one_file_that_needs_no_network(made):
    text = (made / "paper/report.html").read_text()
    sources = re.findall(r'\ssrc="([^"]*)"', text)
    assert sources
    assert all(source.startswith("data:") for source in sources)
    assert not re.search(
        r'<link[^>]*href="(?!data:)|@import|url\((?!#|data:)|<script src|fetch\(|XMLHttpRequest',
        text,
    )


def test_a_plan_that_grows_keeps_what_was_measured(made, machine_stays):
    before = {path: path.read_bytes() for path in made.glob("results/raw/*/*/*.json")}
    page = yaml.safe_load((made / "config.yaml").read_text())
    small = page["environments"]["docker-hostnet"]["layers"][0]["docker"]
    page["environments"]["docker-both"] = {"layers": [{"docker": {**small, "data": "layered"}}]}
    over = made / "grown.yaml"
    projects.write_yaml(over, page)
    grown = ["--configfile", str(over), "--", "results/tidy/stream.csv", "results/tidy/pxz.csv"]
    projects.good(made, "snakemake", "--cores", "4", *grown)
    after = {path: path.read_bytes() for path in made.glob("results/raw/*/*/*.json")}
    # The new cells are apart from their blocks, each of which gets another of all environments.
    assert len(after) == len(before) + 4 + 4 * 5
    assert all(after[path] == content for path, content in before.items())
    assert {row["environment"] for row in projects.table(made / "results/tidy/pxz.csv")} == {
        *ENVIRONMENTS,
        "docker-both",
    }
    projects.good(made, "snakemake", "--cores", "4", "results/tidy/pxz.csv")
    assert {row["environment"] for row in projects.table(made / "results/tidy/pxz.csv")} == set(
        ENVIRONMENTS
    )


def test_two_runs_at_once_in_two_folders_never_overlap(image, tmp_path, machine_stays):
    folders = [projects.make(tmp_path / name, config()) for name in ("one", "other")]
    targets = [f"results/raw/{name}/stream/1.log" for name in ("native", "docker")]
    runs = [projects.start(folder, "snakemake", "--cores", "1", *targets) for folder in folders]
    for run in runs:
        said, _ = run.communicate(timeout=300)
        assert run.returncode == 0, said
    found = sorted(spans(folders[0]) + spans(folders[1]))
    assert len(found) == 4 * LAPS
    assert all(earlier[1] <= later[0] + 0.002 for earlier, later in itertools.pairwise(found))


@pytest.mark.long
def test_what_was_really_measured_is_archived_verified_and_rebuilt(image, tmp_path, machine_stays):
    page = projects.default(
        repetitions=2, workloads={"stream": {"elements": 2_000_000, "laps": LAPS}}
    )
    page["environments"] = {"native": page["environments"]["native"]}
    folder = projects.track(projects.make(tmp_path / "project", page, copy=True))
    for target in ("all", "archive"):
        projects.good(folder, "snakemake", "--cores", "1", target)
    # An archive follows the source that git knows, and no other file.
    (folder / "docs.md").write_text("A note.\n")
    assert needed(folder, "archive") == {}
    projects.git(folder, "add", "docs.md")
    assert needed(folder, "archive") == {"archive": 1}
    for command in ("verify", "rebuild"):
        projects.good(tmp_path, "strata", command, str(folder / "archive.zip"))
    with zipfile.ZipFile(folder / "archive.zip") as archive:
        for log in folder.glob("results/raw/native/stream/*"):
            assert archive.read(str(log.relative_to(folder))) == log.read_bytes()
