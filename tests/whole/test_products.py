"""What is made of the cells: that it is all in one list, and that it follows what it was made of."""

import json
import os
import shutil
import sys

import projects
import pytest

from strata.base.errors import UserError
from strata.experiment import workload
from strata.results import made, products

COLUMNS = "id,publication,place,statement,workload,measured_workload,metric,verdict,reason,logs"
# In the place of R: writes what a command is to make, with all that the file of the command says.
RSCRIPT = f"""#!{sys.executable}
import json, pathlib, sys
command, arguments = pathlib.Path(sys.argv[1]), sys.argv[2:]
out = pathlib.Path(arguments[arguments.index("--out") + 1])
files = [out] if out.suffix else [out.with_suffix(ending) for ending in (".pdf", ".png", ".svg", ".csv")]
for file in files:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = f"{{arguments}} {{command.read_text()}}"
    if command.stem == "claims":
        text = "{COLUMNS}"
    elif command.stem == "accept":
        text = '{{"refused": {{}}}}'
    elif command.stem == "precision":
        enough = out.stem == "3"
        noop = {{"again": [], "more": 0 if enough else 1}}
        text = json.dumps({{"block": int(out.stem), "enough": enough, "workloads": {{"noop": noop}}}})
    file.write_text(text)
"""
PARSER = "parse_noop <- function(lines, parameters) NULL\n"


def built(home, config):
    """A function that runs Snakemake in a new project with this config; `folder` is the project."""
    (home / "bin").mkdir()
    (home / "bin/Rscript").write_text(RSCRIPT)
    (home / "bin/Rscript").chmod(0o755)
    folder = projects.make(home / "project", config, {"noop": projects.NOOP}, copy=True)
    (folder / "workloads/noop/parse.R").write_text(PARSER)
    variables = {"PATH": f"{home / 'bin'}:{os.environ['PATH']}", "STRATA_HOME": str(home / "home")}
    variables["STRATA_TEST_LOCK"] = str(home / "lock")

    def command(*words):
        return projects.run(folder, "snakemake", *words, **variables)

    command.folder = folder
    return command


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Snakemake in a project of two measured cells, of which all is made."""
    workload.load.cache_clear()
    command = built(tmp_path_factory.mktemp("made"), projects.on_host())
    done = command("--cores", "2")
    assert done.returncode == 0, done.stderr
    yield command
    workload.load.cache_clear()


def planned(run, *targets):
    """Which rules would run, by how often."""
    dry = run("--dry-run", "--quiet=rules", "--", *(targets or ["all"]))
    assert dry.returncode == 0, dry.stderr + dry.stdout
    pairs = [line.split() for line in dry.stdout.splitlines()]
    found = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
    return {rule for rule in found if rule not in ("all", "total")}


def state_of(folder):
    return made.State(json.loads((folder / "results/plan.json").read_text()), str(folder), str(folder))


def made_files(folder):
    """All files in the folders where products lie, and the papers."""
    there = {str(path.relative_to(folder)) for path in folder.glob("results/**/*") if path.is_file()}
    ours = {
        name
        for name in there
        if not name.startswith(("results/raw/", "results/logs/", "results/tmp/", "results/plan."))
    }
    return ours | {name for name in products.PAPERS if (folder / name).exists()}


def test_the_list_holds_every_file_that_the_rules_make(run):
    listed = state_of(run.folder).products().values()
    assert made_files(run.folder) == {name for product in listed for name in (*product.files, product.note)}
    assert state_of(run.folder).findings() == []
    assert planned(run) == set()


FIGURES = {f"figures/{name}" for name in ("noop", "answers", "order", "drift", "ratios", "claims", "footprint")}
OF_NUMBERS = {f"figures/{name}" for name in ("answers", "order", "drift", "footprint")}
PAPERS = {"paper/report.pdf", "paper/report.html"}
ALL = {"tidy/noop", "summary/noop", "comparisons", "claims", "footprint", "sets", "choices", *FIGURES, *PAPERS}


@pytest.mark.parametrize(
    ("name", "products"),
    [
        ("workloads/noop/parse.R", {"tidy/noop"}),
        ("analysis/load.R", ALL),
        ("analysis/read/cells.R", ALL),
        ("analysis/draw/figures.R", {*FIGURES, *PAPERS}),
        ("analysis/claims.R", {"claims"}),
        ("published/claims.json", {"claims", *FIGURES, *PAPERS} - OF_NUMBERS),
        ("paper/report.Rmd", PAPERS),
        ("paper/references.bib", PAPERS),
        ("paper/template.tex", {"paper/report.pdf"}),
        ("paper/template.html", {"paper/report.html"}),
        ("paper/report.css", {"paper/report.html"}),
        ("analysis/compare/page.R", set()),
        ("strata/cell/measure.py", set()),
    ],
)
def test_what_reads_a_changed_file_is_another(run, name, products):
    def made_by():
        state = state_of(run.folder)
        return {product.name: state.made_by(product) for product in state.products().values()}

    before = made_by()
    assert set(before) == ALL
    text = projects.rewrite(run.folder / name, lambda text: text + "\n# A comment.\n")
    after = made_by()
    projects.rewrite(run.folder / name, lambda _: text)
    assert {product for product in ALL if after[product] != before[product]} == products
    assert made_by() == before


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        (
            "workloads/noop/parse.R",
            {"tidy", "summary", "comparisons", "claims", "footprint", "sets", "choices", "figure", "shared_figure",
             "report", "web_page"},
        ),
        ("paper/template.tex", {"report"}),
        ("strata/cell/measure.py", set()),
    ],
)  # fmt: skip
def test_a_changed_parser_or_template_makes_again_what_follows_and_measures_nothing(run, name, rules):
    text = projects.rewrite(run.folder / name, lambda text: text + "\n# A comment.\n")
    try:
        assert planned(run) == rules
    finally:
        projects.rewrite(run.folder / name, lambda _: text)


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_table_that_was_edited_is_made_again_though_its_times_say_nothing(run, times):
    table = run.folder / "results/tidy/noop.csv"
    text = table.read_text()
    # What was made again can be damaged again.
    for _ in range(times):
        projects.rewrite(table, lambda text: text.replace("tidy", "tody", 1))
        done = run("--cores", "2")
        assert done.returncode == 0, done.stderr
        assert table.read_text() == text
    assert planned(run) == set()


def test_a_note_that_is_gone_or_broken_is_no_reason_to_trust_a_table(run):
    gone, broken = (run.folder / f"results/made/{name}.json" for name in ("summary/noop", "footprint"))
    kept = gone.read_bytes()
    gone.unlink()
    assert state_of(run.folder).findings() != []
    gone.write_bytes(kept)
    assert state_of(run.folder).findings() == []
    broken.write_text("{")
    assert state_of(run.folder).findings() != []
    gone.unlink()
    done = run("--cores", "2")
    assert done.returncode == 0, done.stderr
    assert state_of(run.folder).findings() == []


@pytest.mark.parametrize("kind", ["log", "json"])
def test_tables_of_a_log_or_record_that_was_changed_do_not_stand(run, kind):
    path = run.folder / f"results/raw/bare/noop/2.{kind}"
    old, new = {"log": ("7", "8"), "json": ('"sha256": "', '"sha256": "0')}[kind]
    text = projects.rewrite(path, lambda text: text.replace(old, new, 1))
    try:
        found = state_of(run.folder).findings()
        assert found == ["results/tidy/noop.csv: it was not made of the results/raw/*/noop that is there"]
        rules = planned(run)
        assert "tidy" in rules
        assert "cell" not in rules
        done = run("--cores", "1", "--", "results/tidy/noop.csv")
        assert done.returncode != 0
        assert "results/raw/bare/noop/2.log: it is not the log that results/raw/bare/noop/2.json records" in done.stdout
    finally:
        projects.rewrite(path, lambda _: text)
    done = run("--cores", "2")
    assert done.returncode == 0, done.stderr
    assert state_of(run.folder).findings() == []


def test_what_is_decided_follows_the_logs_too(tmp_path):
    run = built(tmp_path, projects.on_host(repetitions={"min": 2, "max": 4, "target": "5%"}, quiet={"action": "flag"}))
    done = run("--cores", "1", "results/summary/noop.csv")
    assert done.returncode == 0, done.stderr + done.stdout
    assert len(list(run.folder.glob("results/raw/*/*/*.log"))) == 3
    assert planned(run, "results/summary/noop.csv") == set()
    text = projects.rewrite(run.folder / "results/raw/bare/noop/1.log", lambda text: text.replace("7", "8"))
    assert "precision" in planned(run, "results/summary/noop.csv")
    projects.rewrite(run.folder / "results/raw/bare/noop/1.log", lambda _: text)
    assert planned(run, "results/summary/noop.csv") == set()


def test_nothing_is_made_of_what_is_not_as_it_was_made(run, monkeypatch):
    monkeypatch.chdir(run.folder)
    table = run.folder / "results/summary/noop.csv"
    text = projects.rewrite(table, lambda text: text + "1\n")
    try:
        with pytest.raises(UserError, match=r"results/summary/noop.csv: it is not as it was made; remove .*noop.csv"):
            made.make("comparisons", 0, ["true"])
    finally:
        projects.rewrite(table, lambda _: text)
    assert state_of(run.folder).findings() == []


def test_what_could_not_be_made_has_no_note(run, monkeypatch):
    monkeypatch.chdir(run.folder)
    note = run.folder / "results/made/comparisons.json"
    kept = note.read_bytes()
    assert made.make("comparisons", 0, ["false"]) == 1
    assert not note.exists()
    note.write_bytes(kept)


def test_all_that_is_listed_is_archived_and_rebuilt(run, tmp_path, monkeypatch):
    from strata.archive import check, container, make, rebuild

    monkeypatch.chdir(run.folder)
    for name in ("LICENSE", "CITATION.cff"):
        shutil.copy(projects.ROOT / name, name)
    make.make(str(tmp_path / "archive.zip"), False)
    folder = tmp_path / "unpacked"
    folder.mkdir()
    assert container.unpack(str(tmp_path / "archive.zip"), str(folder)) == []
    assert check.verify(str(folder)) == []
    assert made_files(folder) == made_files(run.folder)
    compared = {name for product in rebuild.made_in(str(folder)) for name in product.files}
    assert compared == {name for name in made_files(run.folder) if not name.startswith("results/made/")}
    assert "results/footprint.csv" in compared
