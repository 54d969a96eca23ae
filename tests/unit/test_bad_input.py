"""Each mistake in a configuration file is refused with file, key or line, and reason.

The status is 1, and nothing is written.  The mistakes are generated: at every key of config.yaml
and of every workload's file, and by names that would leave their folder.
"""

import contextlib
import copy
import io

import projects
import pytest
import yaml

from strata import __main__, commands
from strata.experiment import config, workload
from strata.util import yaml_files
from strata.util.errors import UserError

PAGE = yaml.safe_load((projects.ROOT / "config.yaml").read_text())
TEXT = (projects.ROOT / "config.yaml").read_bytes()
FILES = sorted(projects.ROOT.glob("workloads/*/workload.yaml"))
WORKLOADS = {path.parent.name: yaml.safe_load(path.read_text()) for path in FILES}
MACHINE = {"cpus": 4, "mask": None, "memory_bytes": 16 * 2**30, "cache_bytes": 32 * 2**20}
NOWHERE = [[["unexpected"]], {"unexpected": 1}, float("nan"), float("-inf")]
# Every key in the long tests, one of five in the others.
EVERY_KEY = pytest.mark.parametrize(
    "every", [5, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"]
)


def run_strata(folder, *words):
    """Return the exit status and standard error of a command of Strata in a project."""
    errors = io.StringIO()
    with (
        contextlib.redirect_stderr(errors),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.chdir(folder),
    ):
        status = __main__.main([*words])
    return status, errors.getvalue()


def find_fault(message, file, key):
    """Say why a message is not about a key of a file; None where each line has all parts."""
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


def try_config(page, key):
    """Say why a configuration is not refused as it must be; None where it is."""
    with open("config.yaml", "w") as file:
        yaml.dump(page, file, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))
    try:
        config.experiment(config.read(), MACHINE)
    except UserError as error:
        return find_fault(str(error), "config.yaml", key)
    return f"{key} was taken for good"


def try_workload(name, data, key):
    """Say why a workload's declaration is not refused as it must be; None where it is."""
    projects.write_yaml(projects.Path(f"workloads/{name}/workload.yaml"), data)
    workload.load.cache_clear()
    try:
        workload.load(name)
    except UserError as error:
        return find_fault(str(error), f"workloads/{name}/workload.yaml", key)
    return f"{key} was taken for good"


def paths(data, key=()):
    """Yield every key of nested data as a tuple; of a list of plain values only the first two."""
    if isinstance(data, list):
        scalars = not any(isinstance(value, dict | list) for value in data)
        data = dict(enumerate(data[:2] if scalars else data))
    for name, value in data.items() if isinstance(data, dict) else []:
        yield (*key, name)
        yield from paths(value, (*key, name))


def at(data, path):
    for part in path:
        data = data[part]
    return data


def changed(data, path, value):
    """Return a copy of nested data with another value at a key."""
    data = copy.deepcopy(data)
    at(data, path[:-1])[path[-1]] = value
    return data


def named(path):
    return ".".join(map(str, path))


def wrong_values(data, path):
    """Return values that are wrong at a key of good data."""
    present = at(data, path)
    is_number = isinstance(present, int | float) and not isinstance(present, bool)
    kinds = [
        (-7.5, is_number),
        ("a word", not isinstance(present, int | float)),
        (True, isinstance(present, bool)),
    ]
    return [value for value, fits in kinds if not fits] + NOWHERE


def is_free(path):
    """Return whether an author may choose the names of keys here: in a schema, or in factors."""
    return (path[0] == "parameters" and "schema" in path[2:-1]) or "where" in path or "enum" in path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a project with all workloads of the checkout the working directory."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(projects.make(tmp_path / "p", projects.default()))
    workload.load.cache_clear()
    yield tmp_path / "p"
    assert not (tmp_path / "p/results").exists()
    workload.load.cache_clear()


@EVERY_KEY
def test_mistakes_at_every_key_of_the_configuration_are_refused(folder, every):
    page = PAGE | {
        "image": {
            "distribution": "host",
            "release": "trixie",
            "mirror": "https://example.org/debian",
        }
    }
    page |= {"partial": False, "archive_image": False, "order": "blocks"}
    page |= {"quiet": {"action": "flag", "steal": "2%", "busy": "5%", "swap": "1MiB", "load": 4}}
    page["workloads"] = {"stream": {"elements": 5_000_000}, "linpack": {"sizes": [600, 700]}}
    cases = [(path, value) for path in paths(page) for value in wrong_values(page, path)]
    for path in [(), *paths(page)]:
        if isinstance(at(page, path), dict):
            cases.append(((*path, "unexpcted"), 1))
    assert len(cases) > 300
    faults = [try_config(changed(page, path, value), named(path)) for path, value in cases[::every]]
    assert [fault for fault in faults if fault] == []


REQUIRED = {"run", "label", "unit", "better", "schema"}
REQUIRED |= {"about", "timeout", "name", "tiny", "standard", "paper", "value", "rule"}


def spoiled(data):
    """Yield keys of a workload's data, and copies with a wrong, missing or unknown key there."""
    for path in [(), *paths(data)]:
        if path and not is_free(path):
            yield from (
                (path, changed(data, path, value)) for value in wrong_values(data, path)[:2]
            )
        if isinstance(at(data, path), dict) and path[-1:] != ("where",):
            yield path, changed(data, (*path, "unexpcted"), 1)
        if path and path[-1] in REQUIRED and not is_free(path):
            less = copy.deepcopy(data)
            del at(less, path[:-1])[path[-1]]
            yield path, less


@EVERY_KEY
@pytest.mark.parametrize("name", WORKLOADS)
def test_mistakes_at_every_key_of_a_workload_are_refused(project, name, every):
    project(workloads={})
    cases = [*spoiled(WORKLOADS[name])]
    assert len(cases) > 60
    faults = [try_workload(name, data, named(path)) for path, data in cases[:: 2 * every]]
    assert [fault for fault in faults if fault] == []


# fmt: off
HOSTILE_NAMES = [
    "../x", "..", ".", "a/b", "/etc", "a\\b", "x/../../y", "~root", "C:", "", " ",
    "two words", "a'b", 'a"b', "a\nb",
    "a\tb", "\x1b[2J", "a\0b", "-x", "--config", "a;b", "$(id)", "`id`", "a|b", "*",
    "{a}", "%s", "#a", "Größe",
    "native\u200b", "Native", "a.b", "a,b", "a:b", "9a", "a" * 41, "a" * 5000, 5, None, True,
]
# fmt: on


@pytest.mark.parametrize("kind", ["environments", "workloads", "vm.profiles"])
def test_names_that_could_leave_their_folder_are_refused(folder, kind):
    entry = {"layers": ["chroot"]} if kind == "environments" else {}
    faults = [
        try_config(changed(PAGE, (*kind.split("."), name), entry), kind) for name in HOSTILE_NAMES
    ]
    assert [fault for fault in faults if fault] == []


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
    assert [fault for fault in faults if fault] == []


# fmt: off
TEXTS = [
    b"\tscale: tiny\n", b"scale: sm\xff\xfeoke\n", b"\xff\xfes\x00c\x00",
    b"seed: \x00\n", b"seed: \x1b[31m\n",
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
def test_files_that_are_no_valid_yaml_are_refused_with_their_name(folder, number):
    (folder / "config.yaml").write_bytes(TEXTS[number])
    status, message = run_strata(folder, "plan")
    assert status == 1
    assert message.startswith("strata: config.yaml: ")
    assert 30 < len(message) < 600


def test_the_line_of_a_mistake_is_named():
    for text, line in [("a: 1\nb: 2\na: 3\n", 3), ("a:\n  on: 1\n", 2), ("a: [1\n", 2)]:
        with pytest.raises(UserError, match=rf"^page: line {line}: "):
            yaml_files.parse("page", text)
    assert yaml_files.parse("page", "a: [no, 2014-07-01, 'no']\n") == {
        "a": [False, "2014-07-01", "no"]
    }


def test_a_configuration_file_that_is_missing_or_a_folder_is_refused(folder):
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


# Command lines, and what the message says to type.
COMMAND_LINES = [
    ("pln", "'plan'"),
    ("paper/report.pdf", "`snakemake --cores 1 paper/report.pdf`"),
    ("--config scale=tiny plan", "COMMAND plan --config scale=tiny plan"),
    ("plan scale=tiny", "COMMAND plan --config scale=tiny`"),
    ("plan --configfile a.yaml scale=tiny", "COMMAND plan --config scale=tiny`"),
    ("plan --config seed=1 results/summary.csv", "`snakemake --cores 1 results/summary.csv`"),
    ("plan --config seed=1 -- cells", "--help"),
    ("check --configfle a.yaml", "'--configfile'"),
    ("clean --image", "'--images'"),
    ("archive --imag", "'--image'"),
    ("archive --im=1", "'--image'"),
    ("plan --seal=1", "--help"),
    ("verify", "ARCHIVE"),
    ("verify a.zip b.zip", "--help"),
    ("decide first", "--help"),
]


@pytest.mark.parametrize(("words", "typed"), COMMAND_LINES)
def test_a_command_line_with_a_mistake_is_answered_by_what_to_type(folder, words, typed):
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), pytest.raises(SystemExit) as ended:
        __main__.main(words.split())
    message = errors.getvalue()
    assert ended.value.code == 2
    assert message.startswith("strata: ")
    assert message.count("\n") == 1
    assert typed.replace("COMMAND", commands.NAME) in message


def test_wrong_values_from_snakemake_are_refused(folder):
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
            config.read(over)


@pytest.mark.parametrize("number", ["²", "٣", "9" * 5000, "1e3", "0x1", " 1"])
def test_a_repetition_that_is_not_a_number_is_refused(folder, number):
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
def test_a_missing_file_of_the_project_is_not_called_a_missing_package(tmp_path, lost, words):
    made = projects.make(
        tmp_path / "project", projects.on_host(), {"noop": projects.NOOP}, copy=True
    )
    (made / lost).unlink()
    done = projects.run(made, "strata", *words, PYTHONPATH=str(made))
    assert done.returncode == 2
    assert "git status" in done.stderr
    for word in ("Traceback", "is not installed"):
        assert word not in done.stderr
