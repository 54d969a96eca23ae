"""Sessions, from records to light archives and to what is pooled of them, and what is refused."""

import csv
import json
import runpy
import shutil
import types

import measured
import projects
import pytest
from archives import change, unpack

from strata.archive import checksums, light, make, remake, zip_file
from strata.experiment import workload
from strata.util.errors import UserError

MACHINES = ("a" * 12, "b" * 12)
# The machine and day of each session, and how much slower Docker is in it.
SESSIONS = [
    (MACHINES[0], "2026-01-02", 1.00),
    (MACHINES[0], "2026-01-03", 1.03),
    (MACHINES[0], "2026-01-05", 1.05),
    (MACHINES[1], "2026-01-05", 1.04),
]


def move(folder, machine, day, repetitions=range(1, 7)):
    """Let records of a project say that they are of another machine and day."""

    def change_record(record):
        record["node"]["machine"] = machine
        for key in ("started", "ended"):
            record[key] = day + record[key][10:]

    for path in folder.glob("results/raw/*/*/*.json"):
        if int(path.stem) in repetitions:
            measured.edit(path, change_record)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder of four projects, 0 to 3, and of a light archive of each."""
    root = tmp_path_factory.mktemp("sessions")
    with pytest.MonkeyPatch.context() as patch:
        for number, (machine, day, slower) in enumerate(SESSIONS):
            folder = measured.project(
                root / str(number),
                patch,
                measured.page(repetitions=6),
                {"native": 1.0, "docker": slower},
                seed=number,
                noise=0.003,
            )
            move(folder, machine, day)
            remake.write_tables(False, "results")
            make.write_light(str(root / f"{number}.zip"))
    workload.read_declaration.cache_clear()
    return root


def run(folder, *words):
    done = projects.run(folder, "strata", *map(str, words))
    assert "Traceback" not in done.stderr
    return done


def rows(path, **wanted):
    found = projects.table(path)
    return [row for row in found if all(row[key] == text for key, text in wanted.items())]


def test_a_light_archive_holds_the_tables_in_a_few_kilobytes_and_names_its_logs(root, tmp_path):
    assert (root / "0.zip").stat().st_size < 10_000
    folder = unpack(root / "0.zip", tmp_path / "light")
    assert set(zip_file.list_files(str(folder))) == {light.FACTS, checksums.NAME, *light.FILES}
    for name in light.FILES:
        assert (folder / name).read_bytes() == (root / "0" / name).read_bytes()
    # The digest is of the lines of a whole archive's checksums.
    checksums.write_checksums(str(root / "0"))
    lines = (root / "0" / checksums.NAME).read_text().splitlines(keepends=True)
    (root / "0" / checksums.NAME).unlink()
    raw = [line for line in lines if "  results/raw/" in line]
    (tmp_path / "raw").write_text("".join(raw))
    facts = json.loads((folder / light.FACTS).read_text())
    assert facts["raw"] == {
        "files": len(raw),
        "sha256": checksums.hash_file(str(tmp_path / "raw")),
    }
    done = run(root / "0", "verify", root / "0.zip")
    assert (done.returncode, done.stdout) == (0, "")
    done = run(tmp_path, "compare", root / "0.zip", root / "1.zip")
    assert done.returncode == 2
    assert "strata pool" in done.stderr


def test_sessions_of_one_machine_give_its_interval_and_others_stand_beside_it(root, tmp_path):
    files = [root / f"{number}.zip" for number in range(4)]
    # A project counts as its light archive does.
    done = run(tmp_path, "pool", *files[:3], root / "3")
    assert done.returncode == 0, done.stderr
    table = tmp_path / "pool/verdicts.csv"
    triad = {"environment": "docker", "workload": "stream"}
    scopes = [(row["scope"], row["mark"], row["widest"]) for row in rows(table, **triad)]
    assert sorted(scopes) == [
        ("machine", "A", "TRUE"),
        ("session", "A", "FALSE"),
        ("session", "A", "FALSE"),
        ("session", "A", "FALSE"),
        ("session", "B", "TRUE"),
    ]
    [machine] = rows(table, **triad, scope="machine")
    assert (machine["holds"], machine["sessions"], machine["n"]) == ("machine", "3", "18")
    [own] = rows(table, **triad, scope="session", began="2026-01-02 00:00")
    paper = rows(root / "0/results/verdicts.csv", **triad, margin="0.02")
    assert [float(own[key]) for key in ("low", "high")] == pytest.approx(
        [float(paper[0][key]) for key in ("low", "high")], rel=1e-6
    )
    # Sessions that differ by per cents make the machine's interval wider than each one's.
    assert float(machine["high"]) - float(machine["low"]) > 0.05
    lines = (tmp_path / "pool/table.md").read_text().splitlines()
    assert len([line for line in lines if line.startswith("| STREAM")]) == 2
    assert (tmp_path / "pool/index.html").stat().st_size > 10_000


def test_five_machines_give_an_interval_for_machines(root, tmp_path):
    folders = []
    for number in range(5):
        folder = unpack(root / f"{number % 4}.zip", tmp_path / f"light{number}")
        for name in (light.RATIOS, light.SESSIONS):
            text = (folder / name).read_text()
            for machine in MACHINES:
                text = text.replace(machine, f"{number}" * 12)
            (folder / name).write_text(text)
        checksums.write_checksums(str(folder))
        folders.append(folder)
    done = run(tmp_path, "pool", *folders)
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path / "pool/pool.csv", environment="docker", scope="machines")
    assert {(row["holds"], row["machines"], row["n"]) for row in found} == {("machines", "5", "30")}
    for row in found:
        ends = [float(row[key]) for key in ("next_low", "low", "ratio", "high", "next_high")]
        assert ends == sorted(ends)
    assert {row["mark"] for row in rows(tmp_path / "pool/verdicts.csv", scope="session")} == {
        *"ABCDE"
    }


@pytest.mark.parametrize(
    ("begin", "boot", "docker_start", "sessions"),
    [
        ("00:30:00", "x", "100", 1),
        ("00:30:00", "x", "", 1),
        ("00:30:00", "", "", 1),
        ("00:30:00", "x", "200", 2),
        ("00:30:00", "y", "100", 2),
        ("02:30:00", "x", "100", 2),
    ],
)
def test_archives_of_one_sitting_are_one_session(
    root, tmp_path, begin, boot, docker_start, sessions
):
    folders = [unpack(root / "0.zip", tmp_path / name) for name in ("first", "second")]
    for folder, start in zip(folders, (("x", "100"), (boot, docker_start)), strict=True):
        for column, text in zip(("boot", "docker_start"), start, strict=True):
            edit_row(light.SESSIONS, column, text)(folder)
        if folder == folders[1]:
            [session] = projects.table(folder / light.SESSIONS)
            name = f"{session['machine']}-2026-01-02T{begin}Z"
            text = (folder / light.RATIOS).read_text().replace(session["session"], name)
            (folder / light.RATIOS).write_text(text)
            edit_row(light.SESSIONS, "session", name)(folder)
            for column in ("from", "to"):
                edit_row(light.SESSIONS, column, f"2026-01-02T{begin}.000Z")(folder)
        checksums.write_checksums(str(folder))
    # The order of the arguments does not matter.
    done = run(tmp_path, "pool", *reversed(folders))
    assert done.returncode == 0, done.stderr
    table = projects.table(tmp_path / "pool/sessions.csv")
    assert len(table) == sessions
    assert sum(int(row["cells"]) for row in table) == 2 * len(
        [*(root / "0/results/raw").glob("*/*/*.json")]
    )
    found = rows(tmp_path / "pool/pool.csv", environment="docker", metric="triad")
    assert {row["n"] for row in found} == {str(12 // sessions)}
    assert len(found) == sessions


def test_the_readmes_table_is_what_its_sessions_give(root):
    path = projects.ROOT / "scripts/readme_table.py"
    script = types.SimpleNamespace(**runpy.run_path(str(path)))
    text = (projects.ROOT / "README.md").read_text()
    made = script.replace_table(text, script.make_table([str(root / "0.zip")]))
    assert "| STREAM | machine A, session of 2026-01-02" in made
    before, after = (text.split(mark) for mark in (script.BEGIN, script.END))
    assert made.startswith(before[0] + script.BEGIN)
    assert made.endswith(script.END + after[1])
    assert script.replace_table(made, "") == script.replace_table(text, "")
    if archives := script.list_archives():
        assert text == script.replace_table(text, script.make_table(archives))


def test_runs_of_other_days_are_other_sessions_of_the_same_results(root, tmp_path, monkeypatch):
    shutil.copytree(root / "0", tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    move(tmp_path / "project", MACHINES[0], "2026-02-02", (3, 4))
    move(tmp_path / "project", MACHINES[0], "2026-02-03", (5, 6))
    remake.write_tables(False, "results")
    sessions = projects.table(tmp_path / "project/results/sessions.csv")
    assert [row["from"][:10] for row in sessions] == ["2026-01-02", "2026-02-02", "2026-02-03"]
    # Two blocks are too few for a session of its own.
    found = rows(tmp_path / "project/results/verdicts.csv", environment="docker")
    assert {(row["holds"], row["sessions"], row["n"]) for row in found} == {("sessions", "3", "6")}


def edit_row(name, column, text):
    """A change of a light archive: another text in a column of a table's first row."""

    def change_folder(folder):
        found = projects.table(folder / name)
        found[0][column] = text
        with open(folder / name, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, found[0], restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)

    return change_folder


HOSTILE = [
    (edit_row(light.RATIOS, "ratio", "-1"), "ratio"),
    (edit_row(light.RATIOS, "ratio", "1e99"), "1e9"),
    (edit_row(light.RATIOS, "ratio", "NA"), "ratio"),
    (edit_row(light.RATIOS, "environment", "elsewhere"), "no environment 'elsewhere'"),
    (edit_row(light.RATIOS, "repetition", "2"), "there twice"),
    (edit_row(light.RATIOS, "session", f"{'c' * 12}-2026-01-02T03:04:05Z"), "session"),
    (edit_row(light.RATIOS, "label", "a\x1b[31mb"), "label"),
    (edit_row(light.RATIOS, "more", "x"), "columns"),
    (
        lambda folder: change(
            folder / light.RATIOS,
            "",
            lambda content: content.replace(b'"unit"', b'"unit","factor_a","factor_a"'),
        ),
        "columns",
    ),
    (edit_row(light.SESSIONS, "machine", MACHINES[1]), "contradict"),
    (edit_row(light.SESSIONS, "to", "2025-01-01T00:00:00.000Z"), "contradict"),
    (edit_row(light.SESSIONS, "cells", "0"), "cells"),
    (lambda folder: change(folder / light.RATIOS, "", b"\xff"), "not a table"),
    (lambda folder: change(folder / light.RATIOS, "", b""), "columns"),
    (lambda folder: change(folder / light.FACTS, "format", 9), "format is 9"),
    (lambda folder: change(folder / light.FACTS, "raw.sha256", "x"), "raw.sha256"),
    (lambda folder: change(folder / light.FACTS, "scale", "large"), "scale"),
    (lambda folder: change(folder / light.FACTS, "environments", {"a\x1b": []}), "environments"),
    (lambda folder: change(folder / light.FACTS, "environments.docker", {}), "environments.docker"),
    (lambda folder: change(folder / light.FACTS, "", b"[" * 100_000), "not JSON"),
    (lambda folder: (folder / light.RATIOS).unlink(), "missing"),
    (lambda folder: change(folder / "results/run.R", "", b"stop()"), "no light archive holds it"),
]


@pytest.mark.parametrize(("change_folder", "says"), HOSTILE)
def test_a_light_archive_that_somebody_changed_knowingly_is_refused(
    root, tmp_path, change_folder, says
):
    folder = unpack(root / "0.zip", tmp_path / "light")
    change_folder(folder)
    assert checksums.find_checksum_faults(str(folder))
    checksums.write_checksums(str(folder))
    faults = light.find_light_archive_faults(str(folder))
    assert says in "; ".join(faults)


def test_what_cannot_be_pooled_is_refused_by_name(root, tmp_path):
    (tmp_path / "no.zip").write_text("no archive")
    shutil.copy(root / "0.zip", tmp_path / "copy.zip")
    other = unpack(root / "3.zip", tmp_path / "other")
    change(other / light.FACTS, "environments.docker", [{"docker": {"cpus": 1}}])
    checksums.write_checksums(str(other))
    # A clone of the first machine's disk, which began a second later.
    clone = unpack(root / "0.zip", tmp_path / "clone")
    for name in (light.RATIOS, light.SESSIONS):
        text = (clone / name).read_text().replace("00:00:10", "00:00:11")
        (clone / name).write_text(text)
    checksums.write_checksums(str(clone))
    shutil.copytree(root / "3/results", tmp_path / "untidy")
    (tmp_path / "untidy/sessions.csv").unlink()
    for words, says in [
        ([root / "0.zip", tmp_path / "untidy"], "untidy/sessions.csv: is missing"),
        ([root / "0.zip", root / "0.zip"], "same session"),
        ([tmp_path / "no.zip"], "no.zip"),
        ([tmp_path / "none.zip"], "none.zip"),
        ([root / "0.zip", tmp_path / "copy.zip"], "same session"),
        ([root / "0.zip", other], "options of docker"),
        ([root / "0.zip", clone], "at the same time"),
    ]:
        done = run(tmp_path, "pool", *words, "--to", "made")
        assert done.returncode == 2
        assert says in done.stderr
        assert not (tmp_path / "made").exists()


def test_a_light_archive_is_not_written_of_what_was_edited_or_is_private(
    root, tmp_path, monkeypatch
):
    shutil.copytree(root / "0", tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    measured.edit(
        tmp_path / "project/results/plan.json",
        lambda plan: plan["environments"]["docker"]["layers"].append({"somebody@example.org": {}}),
    )
    with pytest.raises(UserError, match=r"light\.json:.*e-mail"):
        make.write_light("light.zip")
    shutil.copy(root / "0/results/plan.json", tmp_path / "project/results/plan.json")
    with open("results/ratios.csv", "a") as file:
        file.write("\n")
    with pytest.raises(UserError, match=r"ratios\.csv: .*edited"):
        make.write_light("light.zip")


def test_snakemake_packs_a_light_archive_of_what_it_measured(tmp_path):
    environments = {"native": {"layers": ["host"]}, "other": {"layers": ["host"]}}
    page = projects.on_host(environments=environments, repetitions=3)
    made = projects.make(tmp_path / "project", page, {"noop": projects.NOOP}, copy=True)
    folder = projects.track(made)
    done = projects.run(folder, "snakemake", "--cores", "1", "--", "light")
    assert done.returncode == 1
    assert "6 of 6 cells are not measured" in done.stderr
    projects.good(folder, "snakemake", "--cores", "1", "--config", "measure=true", "--", "light")
    assert "good" in projects.good(folder, "strata", "verify", "light.zip").stderr
    assert not (folder / "paper/report.pdf").exists()
    [session] = projects.table(folder / "results/sessions.csv")
    machines = {record["node"]["machine"] for record in projects.records(folder)}
    assert (session["cells"], {session["machine"]}) == ("6", machines)
