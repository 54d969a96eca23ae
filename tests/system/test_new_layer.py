"""A new layer is one file and a new workload one folder, as the guides have them."""

import json

import projects
import pytest

GUIDE = (projects.ROOT / "docs/adding-an-environment.md").read_text()
LAYER = GUIDE.split("```python\n")[1].split("```")[0]
PARSER = """import json

from kit.logs import build_value


def parse(lines, parameters):
    return [build_value("priority", "1", json.loads(lines[0])["nice"] + parameters["more"])]
"""
POLITENESS = {
    **projects.NOOP,
    "title": "Politeness",
    "about": "Tells its priority.",
    "metrics": {"priority": {"label": "Priority", "unit": "1", "better": "lower"}},
    "parameters": {"more": {"about": "Added", "schema": {"type": "integer"}, "value": 10}},
    "run": [{"argv": ["/bin/sh", "-c", 'echo "{\\"nice\\": $(nice)}"'], "timeout": 20}],
}


@pytest.fixture(scope="module")
def made(image, tmp_path_factory):
    """A copy of the project with a new layer and workload, measured up to the web page."""
    folder = tmp_path_factory.mktemp("new") / "p"
    environments = {
        "native": {"label": "Native", "layers": ["chroot"]},
        "toy": {"label": "Toy", "layers": ["chroot", {"toy": {"nice": 5}}]},
    }
    config = projects.on_host(
        repetitions=3, environments=environments, workloads={"politeness": None}
    )
    projects.make(folder, config, copy=True)
    projects.write_yaml(folder / "workloads/politeness/workload.yaml", POLITENESS)
    (folder / "workloads/politeness/parse.py").write_text(PARSER)
    (folder / "strata/environments/toy.py").write_text(LAYER)
    projects.good(folder, "snakemake", "--cores", "1", "paper/report.html", PYTHONPATH=str(folder))
    return folder


def test_its_cells_are_measured_in_it(made):
    rows = projects.table(made / "results/tidy/politeness.csv")
    values = {(row["environment"], float(row["value"])) for row in rows}
    native = next(value for environment, value in values if environment == "native")
    assert values == {("native", native), ("toy", min(native + 5, 29.0))}


def test_what_its_file_says_stands_in_plan_and_paper(made):
    entry = json.loads((made / "results/plan.json").read_text())["environments"]["toy"]
    assert entry["daemons"] == ["toyd"]
    page = (made / "paper/report.html").read_text()
    for text in ("toy box", "the playroom’s", "the toy chest", "Politeness"):
        assert text in page


def test_its_options_are_checked_like_those_of_any_layer(made):
    over = 'environments={"toy": {"layers": ["chroot", {"toy": {"nice": 30}}]}}'
    done = projects.run(made, "strata", "check", "--config", over, PYTHONPATH=str(made))
    assert done.returncode == 1
    assert "environments.toy.layers.1.toy.nice" in done.stderr
