"""The commands that compare testbeds, from archives, projects and folders, to their exit status."""

import json
import shutil

import measured
import projects
import pytest

from strata.archive import checksums, zip_file
from strata.experiment import workload


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    """Three projects with tidy tables: as it was, the same again, and one whose Docker is
    slower."""
    root = tmp_path_factory.mktemp("sides")
    changes = {"before": (1, 1.02), "again": (2, 1.02), "after": (3, 1.2)}
    with pytest.MonkeyPatch.context() as patch:
        for name, (seed, slower) in changes.items():
            folder = measured.project(
                root / name,
                patch,
                measured.page(repetitions=6),
                {"native": 1.0, "docker": slower},
                seed=seed,
                noise=0.003,
            )
            projects.good(folder, "strata", "tidy")
    workload.read_declaration.cache_clear()
    return root


def compare(folder, *words):
    done = projects.run(folder, "strata", "compare", *map(str, words))
    assert "Traceback" not in done.stderr
    return done


def rows(folder):
    return projects.table(folder / "comparison.csv")


def test_the_same_again_ends_with_zero(sides, tmp_path):
    done = compare(tmp_path, sides / "before", sides / "again/results", "--effect", "5%")
    assert done.returncode == 0, done.stderr
    table = rows(tmp_path / "comparison")
    judged = [row for row in table if row["environment"] == "docker" and row["headline"] == "TRUE"]
    assert {(row["outcome"], row["basis"]) for row in judged} == {("equivalent", "ratio to native")}
    outcome = json.loads((tmp_path / "comparison/outcome.json").read_text())
    assert (outcome["outcome"], outcome["compared"]) == ("equivalent", len(judged))
    assert f"of {len(judged)} series" in done.stdout or f"all {len(judged)} series" in done.stdout


def test_a_slower_machine_is_native_s_and_no_environment_s(sides, tmp_path, monkeypatch):
    slow = {"native": 1.1, "docker": 1.122}
    project = measured.project(
        tmp_path / "slow", monkeypatch, measured.page(repetitions=6), slow, seed=4, noise=0.003
    )
    projects.good(project, "strata", "tidy")
    done = compare(tmp_path, sides / "before", project, "--effect", "5%")
    assert done.returncode == 0, done.stdout
    native = {
        row["outcome"] for row in rows(tmp_path / "comparison") if row["environment"] == "native"
    }
    assert "slower" in native
    assert "Native's own values" in done.stdout


def test_a_side_may_be_a_folder_of_three_sessions(sides, tmp_path, monkeypatch):
    for number in range(6):
        slower = {"native": 1.0, "docker": 1.02 if number < 3 else 1.2}
        name = f"{'old' if number < 3 else 'new'}/{number}"
        page = measured.page(repetitions=3)
        project = measured.project(
            tmp_path / name, monkeypatch, page, slower, seed=number, noise=0.003
        )
        projects.good(project, "strata", "tidy")
    done = compare(tmp_path, "old", "new")
    assert done.returncode == 1, done.stdout + done.stderr
    assert {row["n_to"] for row in rows(tmp_path / "comparison")} == {"9"}
    # The folders of results count as their projects do.
    for number in range(3):
        shutil.copytree(tmp_path / f"new/{3 + number}/results", tmp_path / f"copies/{number}")
    done = compare(tmp_path, "old", "copies")
    assert done.returncode == 1, done.stdout + done.stderr
    for other, says in (
        (sides / "before", "holds 1 of at least 3"),
        ("old", "the same values"),
    ):
        done = compare(tmp_path, "old", other)
        assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    for record in (tmp_path / "new").glob("[34]/results/raw/*/*/*.json"):
        node = {"name": "node-000000", "boot": "0a" * 16}
        measured.edit(record, lambda value, node=node: value.update(node=node))
    done = compare(tmp_path, "old", "new")
    assert (done.returncode, "without a restart" in done.stderr) == (2, True), done.stderr
    shutil.rmtree(tmp_path / "new/3")
    done = compare(tmp_path, "old", "new")
    assert (done.returncode, "new: holds 2" in done.stderr) == (2, True), done.stderr


def test_a_difference_ends_with_one_and_is_where_it_was_made(sides, tmp_path):
    done = compare(
        tmp_path, sides / "before", sides / "after", "--to", "made", "--names", "old", "new"
    )
    assert done.returncode == 1, done.stderr
    assert "new is slower in" in done.stdout
    outcomes = {(row["environment"], row["outcome"]) for row in rows(tmp_path / "made")}
    assert ("docker", "slower") in outcomes
    assert not {("docker", "equivalent"), ("native", "slower"), ("native", "faster")} & outcomes
    for name in ("index.html", "provenance.csv"):
        assert (tmp_path / "made" / name).stat().st_size > 0
    done = compare(tmp_path, sides / "before", sides / "after", "--effect", "50%")
    assert done.returncode == 0


def test_an_archive_is_a_side_and_is_verified_first(sides, tmp_path, monkeypatch):
    from strata.archive import make

    project = tmp_path / "project"
    shutil.copytree(sides / "before", project)
    monkeypatch.chdir(project)
    measured.pretend(project)
    make.write_archive(str(tmp_path / "before.zip"), False)
    done = compare(tmp_path, "before.zip", sides / "after")
    assert done.returncode == 1, done.stderr
    names = ("--names", "May", "June", "Ju/ly: 3")
    done = compare(tmp_path, "before.zip", sides / "again", sides / "after", *names)
    assert done.returncode == 1, done.stderr
    assert "June is not found to differ" in done.stdout or "June is equivalent" in done.stdout
    assert "Ju/ly: 3 is slower in" in done.stdout
    pairs = rows(tmp_path / "comparison")
    assert {(row["from"], row["to"]) for row in pairs} == {
        ("May", "June"),
        ("June", "Ju/ly: 3"),
        ("May", "Ju/ly: 3"),
    }
    assert {row["environment"] for row in pairs if row["outcome"] == "slower"} == {"docker"}
    page = (tmp_path / "comparison/index.html").read_text()
    # The archive is named with its digest.
    assert checksums.hash_file(str(tmp_path / "before.zip")) in page
    folder = tmp_path / "unpacked"
    folder.mkdir()
    zip_file.unpack_archive(str(tmp_path / "before.zip"), str(folder))
    (folder / "results/tidy/stream.csv").write_text("forged\n")
    done = compare(tmp_path, sides / "after", folder)
    assert done.returncode == 2
    assert "results/tidy/stream.csv: changed" in done.stderr


def one_repetition(results, to):
    """A copy of a folder of results that holds the first repetition alone."""
    shutil.copytree(results, to)
    for table in to.glob("tidy/*.csv"):
        first, *lines = table.read_text().splitlines(keepends=True)
        kept = [line for line in lines if line.split(",")[2] == "1"]
        table.write_text("".join([first, *kept]))
    return to


def test_results_that_cannot_be_compared_end_with_two_and_leave_nothing(sides, tmp_path):
    before = sides / "before"
    other = tmp_path / "paper-scale"
    shutil.copytree(before / "results", other)
    plan = json.loads((other / "plan.json").read_text())
    (other / "plan.json").write_text(json.dumps({**plan, "scale": "paper"}))
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("no archive")
    single = one_repetition(before / "results", tmp_path / "single")
    untidy = tmp_path / "untidy"
    shutil.copytree(before / "results", untidy)
    (untidy / "tidy/stream.csv").unlink()
    emptied, renamed, broken, cut, worded, unmeasured = (
        tmp_path / name for name in ("emptied", "renamed", "broken", "cut", "worded", "unmeasured")
    )
    for folder in (emptied, renamed, broken, cut, worded, unmeasured):
        shutil.copytree(before / "results", folder)
    (emptied / "tidy/stream.csv").write_text("")
    text = (renamed / "tidy/stream.csv").read_text()
    (renamed / "tidy/stream.csv").write_text(text.replace("metric", "name", 1))
    (broken / "plan.json").write_text("{")
    (cut / "tidy/stream.csv").write_text(text.rstrip().rsplit(",", 2)[0])
    header = text.splitlines()[0].split(",")
    row = text.splitlines()[1].split(",")
    row[header.index("value")] = "abc"
    (worded / "tidy/stream.csv").write_text(f"{','.join(header)}\n{','.join(row)}\n")
    shutil.rmtree(unmeasured / "raw")
    files = sorted(tmp_path.rglob("*"))
    for words, says in (
        (("nowhere",), "nowhere: there is no such file"),
        (("empty",), "holds no results/plan.json"),
        (("file.txt",), "cannot be read as an archive"),
        ((other,), "only runs of one scale can be compared"),
        ((untidy,), "untidy/tidy/stream.csv: is missing"),
        ((emptied,), "emptied/tidy/stream.csv: lacks the column environment"),
        ((renamed,), "renamed/tidy/stream.csv: lacks the column metric"),
        ((cut,), "cells in place of"),
        ((worded,), "worded/tidy/stream.csv, line 2: the value 'abc' is no number"),
        ((unmeasured,), "unmeasured/raw: holds no log"),
        ((single, "--to", before / "results/comparison"), "is a folder of results"),
        ((broken,), "broken/plan.json: is not JSON"),
        ((), "at least two sides"),
        ((before / "results",), "hold the same values"),
        ((single, "--names", "a"), "there are 1 for 2 sides"),
        ((single, "--names", "a", "a"), "each side needs its own"),
        ((single, "--effect", "much"), "must be a percentage such as 2%"),
        ((single, "--effect", "0.02"), "must be a percentage such as 2%"),
        *(
            ((single, "--to", to), f"{to}: cannot be written: ")
            for to in ("file.txt", "file.txt/below", "new/" + "a" * 300, "/proc/nobody")
        ),
    ):
        done = compare(tmp_path, before, *words)
        assert done.returncode == 2, (words, done.stderr)
        assert says in done.stderr, words
        assert sorted(tmp_path.rglob("*")) == files, words
    again = one_repetition(sides / "again/results", tmp_path / "again")
    done = compare(tmp_path, single, again)
    outcome = json.loads((tmp_path / "comparison/outcome.json").read_text())
    assert (done.returncode, outcome["outcome"]) == (2, "nothing to compare")


def test_what_is_undecided_altogether_ends_with_three_and_says_so(sides, tmp_path, monkeypatch):
    noisy = [
        measured.project(tmp_path / name, monkeypatch, measured.page(), seed=seed, noise=0.3)
        for name, seed in (("one", 1), ("two", 2))
    ]
    for folder in noisy:
        projects.good(folder, "strata", "tidy")
    done = compare(tmp_path, *noisy)
    outcome = json.loads((tmp_path / "comparison/outcome.json").read_text())
    assert (done.returncode, outcome["outcome"]) == (3, "undecided"), done.stdout
    judged = [
        row
        for row in rows(tmp_path / "comparison")
        if row["outcome"] and row["environment"] != "native"
    ]
    assert outcome["compared"] == outcome["undecided"] == len(judged) > 1
    assert "more blocks on each side would tell" in done.stdout
    assert f"{outcome['undecided']} of {outcome['compared']}" in done.stdout


@pytest.mark.parametrize(
    ("program", "says"),
    [("exit 0", "outcome.json"), ("echo no room >&2; exit 7", "no room"), ("kill -KILL $$", "-9")],
)
def test_trouble_of_the_analysis_is_no_difference(sides, tmp_path, program, says):
    path = tmp_path / "bin/Rscript"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    words = ("strata", "compare", str(sides / "before"), str(sides / "after"))
    done = projects.run(tmp_path, *words, PATH=f"{path.parent}:/usr/bin:/bin")
    assert (done.returncode, done.stdout, says in done.stderr) == (2, "", True), done.stderr
    assert "Traceback" not in done.stderr
