"""Files with mistakes are refused with file, key (or line) and reason, and nothing is written.

The mistakes are generated: at every key of config.yaml and of every workload's declaration, and by
names that would leave their folder.
"""

import contextlib
import copy
import io
import os
import shutil

import projects
import pytest
import yaml

from strata import __main__
from strata.experiment import config, planning, workload
from strata.util import yaml_files
from strata.util.errors import UserError

CONFIG = yaml.safe_load((projects.ROOT / "config.yaml").read_text())
TEXT = (projects.ROOT / "config.yaml").read_bytes()
FILES = sorted(projects.ROOT.glob("workloads/*/workload.yaml"))
WORKLOADS = {path.parent.name: yaml.safe_load(path.read_text()) for path in FILES}
MACHINE = {"cpus": 4, "mask": None, "memory_bytes": 16 * 2**30, "cache_bytes": 32 * 2**20}
NEVER_RIGHT = [[["unexpected"]], {"unexpected": 1}, float("nan"), float("-inf")]
# The long tests try every mistake, the others one of five.
EVERY_KEY = pytest.mark.parametrize(
    "every", [5, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"]
)


def run_strata(folder, *words):
    """Run `python -m strata WORDS` in a project; return its exit status and standard error."""
    errors = io.StringIO()
    with (
        contextlib.redirect_stderr(errors),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.chdir(folder),
    ):
        status = __main__.main([*words])
    return status, errors.getvalue()


def find_fault(message, file, key):
    """Return what is wrong with a message about a key of a file; None if it is as it must be.

    Each line must have file, key and reason, and one must name the key or a part of it.
    """
    lines = [line.removeprefix("strata: ").split(": ", 2) for line in message.splitlines()]
    if not lines or any(
        len(line) < 3 or line[0] != file or not 6 < len(line[2]) < 700 for line in lines
    ):
        return f"not file, key and reason: {message[:900]}"
    places = [place.removesuffix("…") for _, place, _ in lines]
    if any(
        place.startswith(("line ", key)) or key.startswith(place) or place == "the whole"
        for place in places
    ):
        return None
    return f"{key} is not named: {message}"


def try_config(data, key):
    """Return what is wrong with the refusal of a config.yaml with a mistake at a key; or None."""
    with open("config.yaml", "w") as file:
        yaml.dump(data, file, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))
    try:
        planning.build_plan(config.read_config(), MACHINE)
    except UserError as error:
        return find_fault(str(error), "config.yaml", key)
    return f"{key} was accepted"


def try_workload(name, data, key):
    """Return what is wrong with the refusal of a declaration with a mistake at a key; or None."""
    projects.write_yaml(projects.Path(f"workloads/{name}/workload.yaml"), data)
    workload.read_declaration.cache_clear()
    try:
        workload.read_declaration(name)
    except UserError as error:
        return find_fault(str(error), f"workloads/{name}/workload.yaml", key)
    return f"{key} was accepted"


def list_paths(data, key=()):
    """Yield the path of every key in nested data, as a tuple.

    Of a list of plain values only the first two are yielded.
    """
    if isinstance(data, list):
        scalars = not any(isinstance(value, dict | list) for value in data)
        data = dict(enumerate(data[:2] if scalars else data))
    for name, value in data.items() if isinstance(data, dict) else []:
        yield (*key, name)
        yield from list_paths(value, (*key, name))


def value_at(data, path):
    """Return the value at a path in nested data."""
    for key in path:
        data = data[key]
    return data


def changed(data, path, value):
    """Return a copy of nested data with another value at a path."""
    data = copy.deepcopy(data)
    value_at(data, path[:-1])[path[-1]] = value
    return data


def name_of(path):
    """Return a path as messages write it."""
    return ".".join(map(str, path))


def wrong_values(data, path):
    """Return values that are wrong at this path of valid data."""
    present = value_at(data, path)
    is_number = isinstance(present, int | float) and not isinstance(present, bool)
    kinds = [
        (-7.5, is_number),
        ("a word", not isinstance(present, int | float)),
        (True, isinstance(present, bool)),
    ]
    return [value for value, fits in kinds if not fits] + NEVER_RIGHT


def is_free(path):
    """Return whether a key accepts any value: in a parameter's schema, or a choice of factors."""
    return (path[0] == "parameters" and "schema" in path[2:-1]) or "where" in path or "enum" in path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a project with all workloads, in which the test runs; nothing may be written."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(projects.make(tmp_path / "p", projects.default()))
    workload.read_declaration.cache_clear()
    yield tmp_path / "p"
    assert not (tmp_path / "p/results").exists()
    workload.read_declaration.cache_clear()


@EVERY_KEY
def test_mistakes_at_every_key_of_the_configuration_are_refused(folder, every):
    data = CONFIG | {
        "image": {
            "distribution": "host",
            "release": "trixie",
            "mirror": "https://example.org/debian",
        }
    }
    data |= {"partial": False, "archive_image": False, "order": "blocks"}
    data |= {
        "interference": {"action": "flag", "steal": "2%", "busy": "5%", "swap": "1MiB", "load": 4}
    }
    data["workloads"] = {"stream": {"elements": 5_000_000}, "linpack": {"sizes": [600, 700]}}
    cases = [(path, value) for path in list_paths(data) for value in wrong_values(data, path)]
    mappings = [path for path in [(), *list_paths(data)] if isinstance(value_at(data, path), dict)]
    cases += [((*path, "unexpcted"), 1) for path in mappings]
    assert len(cases) > 300
    faults = [
        try_config(changed(data, path, value), name_of(path)) for path, value in cases[::every]
    ]
    assert list(filter(None, faults)) == []


REQUIRED = {"run", "label", "unit", "better", "schema"}
REQUIRED |= {"about", "timeout", "name", "tiny", "standard", "paper", "value", "rule"}


def spoil_declaration(data):
    """Yield (path, copy of a declaration with a mistake there).

    A mistake is a wrong value, a missing key or an unknown one.
    """
    for path in [(), *list_paths(data)]:
        if path and not is_free(path):
            yield from (
                (path, changed(data, path, value)) for value in wrong_values(data, path)[:2]
            )
        if isinstance(value_at(data, path), dict) and path[-1:] != ("where",):
            yield path, changed(data, (*path, "unexpcted"), 1)
        if path and path[-1] in REQUIRED and not is_free(path):
            less = copy.deepcopy(data)
            del value_at(less, path[:-1])[path[-1]]
            yield path, less


@EVERY_KEY
@pytest.mark.parametrize("name", WORKLOADS)
def test_mistakes_at_every_key_of_a_workload_are_refused(project, name, every):
    project(workloads={})
    cases = [*spoil_declaration(WORKLOADS[name])]
    assert len(cases) > 60
    faults = [try_workload(name, data, name_of(path)) for path, data in cases[:: 2 * every]]
    assert list(filter(None, faults)) == []


# (a rule for the size of a parameter from 1 to 1000, the key that the message names)
RULES = [
    ({"rule": "by-cache", "most": 1.5, "mib": 64}, "parameters.number.value"),
    ({"rule": "by-cache", "most": 10**15, "mib": 10**15}, "parameters.number.value"),
    ({"rule": "smallest", "at_least": 10**15, "multiple": 1}, "parameters.number.value"),
    ({"rule": "smallest", "at_least": 10, "multiple": 1.5}, "parameters.number.value"),
    ({"rule": "memory-power", "fraction": 0.5, "element_bytes": 1e15}, "parameters.number.value"),
    ({"rule": "smallest", "at_least": 10}, "parameters.number.value.multiple"),
    ({"most": 3}, "parameters.number.value.rule"),
    ({}, "parameters.number.value.rule"),
]


@pytest.mark.parametrize(("rule", "key"), RULES)
def test_a_rule_that_gives_no_valid_size_is_refused(project, rule, key):
    schema = {"type": "integer", "minimum": 1, "maximum": 1000}
    number = {**projects.NOOP["parameters"]["number"], "schema": schema, "value": rule}
    project(workloads={"noop": {**projects.NOOP, "parameters": {"number": number}}})
    workload.read_declaration.cache_clear()
    with pytest.raises(UserError) as caught:
        planning.build_plan(config.read_config(), MACHINE)
    assert find_fault(str(caught.value), "workloads/noop/workload.yaml", key) is None
    assert len(str(caught.value).splitlines()) == 1


KINDS = ["missing", "empty file", "binary", "empty folder", "link to nowhere", "link to itself"]
# (which part of a workload's folder is spoiled, what lies there instead)
SPOILED = [(place, kind) for place in ("", "/workload.yaml", "/parse.py") for kind in KINDS]
SPOILED += [("/workload.yaml", "pipe")]


@pytest.mark.parametrize(("place", "kind"), SPOILED)
def test_a_spoiled_workload_is_refused_with_its_file(project, place, kind):
    made = project(projects.on_host(), workloads={"noop": projects.NOOP})
    path = made / f"workloads/noop{place}"
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    match kind:
        case "empty file" | "binary":
            path.write_bytes(b"\xff\xfe\0(" if kind == "binary" else b"")
        case "empty folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "link to nowhere" | "link to itself":
            path.symlink_to("nowhere" if kind == "link to nowhere" else path.name)
    workload.read_declaration.cache_clear()
    status, message = run_strata(made, "plan")
    assert status == 1
    place = place or ("" if kind == "missing" else "/workload.yaml")
    assert f"noop{place}: " in message
    assert len(message) < 400
    assert "Traceback" not in message


# fmt: off
HOSTILE_NAMES = [
    "../x", "..", ".", "a/b", "/etc", "a\\b", "x/../../y", "~root", "C:", "", " ", "two words",
    "a'b", 'a"b', "a\nb",
    "a\tb", "\x1b[2J", "a\0b", "-x", "--config", "a;b", "$(id)", "`id`", "a|b", "*", "{a}", "%s",
    "#a", "Größe",
    "native\u200b", "Native", "a.b", "a,b", "a:b", "9a", "a" * 41, "a" * 5000, 5, None, True,
]
# fmt: on


@pytest.mark.parametrize("kind", ["environments", "workloads", "vm.profiles"])
def test_names_that_could_leave_their_folder_are_refused(folder, kind):
    entry = {"layers": ["chroot"]} if kind == "environments" else {}
    faults = [
        try_config(changed(CONFIG, (*kind.split("."), name), entry), kind) for name in HOSTILE_NAMES
    ]
    assert list(filter(None, faults)) == []


@pytest.mark.parametrize("kind", ["parameters", "metrics"])
def test_hostile_names_in_a_workload_are_refused(project, kind):
    project()
    faults = []
    for name in [
        *HOSTILE_NAMES,
        "Upper",
        "a-b",
        *(["seed", "address", "part"] if kind == "parameters" else []),
    ]:
        data = changed(projects.NOOP, (kind, name), next(iter(projects.NOOP[kind].values())))
        faults.append(try_workload("noop", data, kind))
    assert list(filter(None, faults)) == []


# fmt: off
TEXTS = [
    b"\tscale: tiny\n", b"scale: sm\xff\xfeoke\n", b"\xff\xfes\x00c\x00", b"seed: \x00\n",
    b"seed: \x1b[31m\n",
    b"scale: tiny\nscale: tiny\n", b"environments:\n  a: {layers: [host]}\n  a: {layers: [host]}\n",
    b"a: &x\n  b: *x\n", b"a: &x [1, [2, *x]]\n",
    b"a: *no\n", b"{a: " * 300, b"seed: !!python/object/apply:os.system [id]\n",
    b"seed: !custom 5\n",
    b"seed: !!int five\n", b"seed: !!bool maybe\n", b"seed: !!int ''\n",
    b"seed: " + b"9" * 5000, b"5: 5\n", b"no: 5\n", b"~: 5\n", b"[a, b]: 5\n",
    b"? {a: b}\n: 5\n", b"a: =\n",
    b"a: 1\n---\nb: 1\n", b"scale: 'tiny\n", b"scale: tiny: paper\n", b"scale: @tiny\n",
    b"%YAML 3.0\n---\nscale: tiny\n", b"", b"# a comment alone\n", b"just text\n", b"- a\n", b"5\n",
]
# fmt: on


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_texts_that_are_no_configuration_are_refused(folder, number):
    (folder / "config.yaml").write_bytes(TEXTS[number])
    status, message = run_strata(folder, "plan")
    assert status == 1
    assert message.startswith("strata: config.yaml: ")
    assert 30 < len(message) < 600


def test_the_line_of_a_mistake_is_named():
    for text, line in [("a: 1\nb: 2\na: 3\n", 3), ("a:\n  on: 1\n", 2), ("a: [1\n", 2)]:
        with pytest.raises(UserError, match=rf"^file: line {line}: "):
            yaml_files.parse_yaml("file", text)
    assert yaml_files.parse_yaml("file", "a: [no, 2014-07-01, 'no']\n") == {
        "a": [False, "2014-07-01", "no"]
    }


def test_a_configuration_that_is_no_file_is_refused(folder):
    for name, words in [
        ("config.yaml", ["plan"]),
        ("other.yaml", ["plan", "--configfile", "other.yaml"]),
    ]:
        (folder / name).unlink(missing_ok=True)
        assert run_strata(folder, *words)[1].startswith(f"strata: {name}: ")
        (folder / name).mkdir()
        assert run_strata(folder, *words)[1].startswith(f"strata: {name}: ")
        (folder / name).rmdir()
        (folder / name).write_bytes(TEXT)


# fmt: off
WORDS = [
    "{", "[1]", "5", "seed", '{"seed": NaN}', '{"seed": 1e999}', '{"seed": ' + "9" * 5000 + "}",
    "seed=.nan",
    "seed=5.0", '{"seed": 1, "seed": 2}', '{"a": ' + "[" * 60 + "]" * 60 + "}",
    '{"workloads": {"../x": {}}}', "seed=", "seed=five", "scale=[tiny", "scale={tiny: {}}",
    "moon=5", "=5", "5=5",
    "workloads={stream: {5: 3}}", "vm=&x [*x]", "repetitions={min: 3, max: x, target: 5%}",
    "workloads={stream: {trials: [1, {a: b}]}}", "workloads.stream.trials=5",
    "environments={a b: {layers: [host]}}",
    "environments=&x {a: *x}",
]
# fmt: on


@pytest.mark.parametrize("number", range(len(WORDS)))
def test_wrong_values_on_the_command_line_are_refused(folder, number):
    for command in ("check", "plan"):
        status, message = run_strata(folder, command, "--config", WORDS[number])
        assert status == 1
        assert message.startswith(("strata: --config", "strata: config.yaml: "))
        assert len(message) < 600


SMALL = str(projects.ROOT / "docs/small.zip")
[LIGHT, *_] = map(str, sorted((projects.ROOT / "docs/sessions").glob("*.zip")))


@pytest.mark.parametrize(
    ("status", "words", "named"),
    [
        (1, ["plan", "--config", "image.docker=x"], "image={docker: x}"),
        (1, ["plan", "--config", "seed=1", "scale=tiny", "seed=2"], "seed"),
        (1, ["plan", "--config", "seed=1", "--config", "seed=2"], "seed"),
        (1, ["plan", "--config", "moon=1", "--config", "seed=2"], "moon"),
        (4, ["claim", "ibm-pxz-docker-similar", "--config", "repetitions=3"], "--budget"),
        (2, ["reproduce", SMALL, "--dry-run", "--json", "-"], "--dry-run"),
        (1, ["archive", "--out", "nosuch/x.zip"], "nosuch"),
        (1, ["archive", "--light", "--out", "nosuch/x.zip"], "nosuch"),
        (1, ["verify", "nosuch.zip"], "nosuch.zip"),
        (1, ["verify", "config.yaml"], "config.yaml"),
        (1, ["rebuild", LIGHT], "strata pool"),
        (1, ["plan", "--decide", SMALL, "--width", "0%"], "above 0%"),
    ],
)
def test_wrong_options_and_files_are_refused_before_anything_is_written(
    folder, status, words, named
):
    before = sorted(folder.iterdir())
    found, message = run_strata(folder, *words)
    assert (found, named in message) == (status, True), message
    assert sorted(folder.iterdir()) == before


def test_any_value_in_a_merged_configuration_is_refused(folder):
    itself = {}
    itself["environments"] = {"a": itself}
    whole = (
        {5: 1},
        {"seed": {1, 2}},
        {"workloads": {"stream": {b"a": 1}}},
        itself,
        {"only": {"workloads": [itself]}},
    )
    for over in [
        *whole,
        {"environments": {5: {"layers": ["host"]}}},
        {"workloads": {None: {}}},
        {"seed": "7.0"},
    ]:
        with pytest.raises(UserError, match=r"^config\.yaml: "):
            config.read_config(over)


@pytest.mark.parametrize("number", ["²", "٣", "9" * 5000, "1e3", "0x1", " 1"])
def test_a_repetition_that_is_no_number_is_refused(folder, number):
    assert run_strata(folder, "cell", "native", "stream", number)[0] == 1


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ("strata/archive/compare.py", ["compare", "a", "b"]),
        ("strata/measure/log_sections.py", ["cell", "bare", "noop", "1"]),
        ("strata/experiment/blocks.py", ["plan"]),
        ("workloads/kit/logs.py", ["plan"]),
    ],
)
def test_a_missing_file_of_the_project_is_not_reported_as_a_missing_package(tmp_path, lost, words):
    made = projects.make(
        tmp_path / "project", projects.on_host(), {"noop": projects.NOOP}, copy=True
    )
    (made / lost).unlink()
    done = projects.run(made, "strata", *words, PYTHONPATH=str(made))
    assert done.returncode == 2
    assert "git status" in done.stderr
    for word in ("Traceback", "is not installed"):
        assert word not in done.stderr
