"""The environments of conda and the set-up name what the rules import and call."""

import ast
import importlib.metadata
import re
import subprocess
import sys

import conda
import projects
import pytest

ROOT = projects.ROOT
# Programs that are in a package of another name.  LaTeX and fonts are always the distribution's.
OF_CONDA = {"Rscript": "r-base"}
LOADED = re.compile(r"\b(?:library|require)\((\w[\w.]*)\)|\b([A-Za-z][\w.]*):::?[A-Za-z]")
RULE = re.compile(r"^(?:rule|checkpoint) \w+:\n(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)


def commands():
    """The file of each environment → the commands of Strata that rules start in it."""
    found = {}
    for file in (ROOT / "rules").glob("*.smk"):
        for rule in RULE.findall(file.read_text()):
            if environment := re.search(r"\.\./envs/([\w.]+)", rule):
                found.setdefault(environment[1], set()).update(re.findall(r"-m strata (\w+)", rule))
    return found


def code_of(command):
    """Text of each module of Strata that a command imports → the names of what else it imports."""
    functions = dict(
        re.findall(r'"(\w+)",\s+"(strata[\w.]+):\w+"', (ROOT / "strata/commands.py").read_text())
    )
    waiting = (
        ["strata.measure.block"]
        if command == "cell"
        else ["strata.command_line", functions.get(command, "strata")]
    )
    seen, found = set(), {}
    while waiting:
        name = waiting.pop()
        path = ROOT.joinpath(*name.split("."))
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name in seen or not file.exists():
            continue
        seen.add(name)
        text, others = file.read_text(), set()
        for node in ast.walk(ast.parse(text)):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
            waiting += [one for one in names if one.startswith("strata")]
            others |= {one.split(".")[0] for one in names} - {"strata", "kit"}
        found[text] = others - sys.stdlib_module_names
    return found


def r_packages():
    """The packages that the analysis and the papers load, without those of R itself."""
    texts = [*ROOT.glob("analysis/*.R"), *ROOT.glob("paper/**/*.Rmd"), ROOT / "paper/_output.yml"]
    used = {
        name for file in texts for pair in LOADED.findall(file.read_text()) for name in pair if name
    }
    script = 'cat(rownames(installed.packages(priority = "base")))'
    return used - set(
        subprocess.check_output(["Rscript", "--vanilla", "-e", script], text=True).split()
    )


def installed(purpose):
    """What the set-up looks for, for a purpose → the distribution's package."""
    lines = [line.split() for line in (ROOT / "scripts/packages.txt").read_text().splitlines()]
    return {line[1]: line[2] for line in lines if line[0] == purpose}


@pytest.fixture(params=sorted(commands()))
def environment(request):
    """The commands of an environment, and the names of its packages."""
    named = conda.entries((ROOT / "envs" / request.param).read_text())
    return commands()[request.param], {re.split("[ =<>]", entry)[0] for entry in named}


def test_every_environment_is_a_rules():
    assert {file.name for file in (ROOT / "envs").glob("*.yaml")} == set(commands())


def test_an_environment_names_what_its_rules_import_and_call(environment):
    started, named = environment
    code = {text: others for command in started for text, others in code_of(command).items()}
    packages = importlib.metadata.packages_distributions()
    imported = {packages[name][0].lower() for others in code.values() for name in others}
    assert {"python", *imported} <= named
    if any("programs.run_r(" in text for text in code):
        # No rule makes a paper again in a sandbox.
        ours = {name for name, of in installed("paper").items() if "tex" not in of} - {"bwrap"}
        programs = {name for name in ours if re.fullmatch(r"\w+", name)}
        assert {OF_CONDA.get(name, name) for name in programs} <= named
        assert {f"r-{name.lower()}" for name in r_packages()} <= named


def test_the_set_up_installs_the_packages_of_r_that_are_used():
    assert {f"r:{name}" for name in r_packages()} <= set(installed("paper"))
