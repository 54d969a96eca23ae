"""Configs and workload files with mistakes: each is told with file, key and reason, before anything starts.

The mistakes are generated: at every key of the default config and of every workload's file, by changes of the text,
by names that would leave their folder, and (Hypothesis) by chance.
"""

import contextlib
import copy
import datetime
import functools
import io
import json
import re
import shutil
from pathlib import Path

import projects
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from snakemake.cli import parse_config

from strata import __main__
from strata.base import yaml_file
from strata.base.errors import UserError
from strata.experiment import claims, config, figures, workload
from strata.snakemake.workflow import Workflow

CONFIG = (projects.ROOT / "config.yaml").read_text()
WORKLOADS = {path.parent.name: path.read_text() for path in sorted(projects.ROOT.glob("workloads/*/workload.yaml"))}
MACHINE = {"cpus": 4, "memory_bytes": 16 * 2**30, "cache_bytes": 32 * 2**20}

# Values that make no sense at any key.
NOWHERE = [
    [["unexpected"]],
    {"unexpected": 1},
    float("nan"),
    float("-inf"),
    "nul\0byte",
    "half of \ud800 a character",
    datetime.date(2014, 7, 1),
    10**400,
    "x" * 20_000,
]


def told(folder, *words):
    """What `python -m strata WORDS` says in a project: exit status and standard error.  A traceback fails the test."""
    errors = io.StringIO()
    silent = contextlib.redirect_stdout(io.StringIO())
    with contextlib.chdir(folder), contextlib.redirect_stderr(errors), silent:
        status = __main__.main(list(words) or ["check"])
    return status, errors.getvalue()


def fault(folder, key):
    """Why a wrong config was not refused as it must be; None where it was.

    `key` (or a part of it, or one below it) must be named, or the line, in every message; nothing may have started.
    """
    try:
        status, text = told(folder)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if status != 1 or (folder / "results").exists():
        return f"ended with {status}, or something was started"
    return fault_of_message("config.yaml", key, text)


def fault_of_workload(folder, name, key):
    """The same of the file of a workload, which is loaded as `check` does it."""
    workload.load.cache_clear()
    try:
        with contextlib.chdir(folder):
            workload.load(name)
    except UserError as error:
        return fault_of_message(f"workloads/{name}/workload.yaml", key, str(error))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "was taken for good"


def fault_of_message(file, key, text):
    lines = [line.removeprefix("strata: ").split(": ", 2) for line in text.splitlines()]
    if any(len(line) < 3 or line[0] != file or len(line[2]) < 8 for line in lines):
        return f"not file, key and reason: {text}"
    if len(text) > 200_000 or any(len(": ".join(line)) > 700 for line in lines):
        return f"too long: {text[:900]}"
    if any(_is_about(key, line) for line in lines):
        return None
    return f"{key} is not named: {text}"


def _is_about(key, line):
    place = line[1]
    if place.startswith("line "):
        return True
    named = place.removesuffix("…")
    return key is None or key.startswith(named) or named.startswith(key) or place == "the whole"


def paths(data, key=()):
    """Every key of nested data, as a tuple of its parts; of a list of plain values the first two stand for all."""
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
    """A copy of nested data with another value at a key."""
    data = copy.deepcopy(data)
    at(data, path[:-1])[path[-1]] = value
    return data


def dumped(data):
    """Nested data as YAML: as JSON, which is made in no time, and what JSON cannot say in YAML's words."""
    text = json.dumps(data, default=lambda date: f"<{date}>")
    words = {"NaN": ".nan", "-Infinity": "-.inf", "Infinity": ".inf", '"<2014-07-01>"': "2014-07-01"}
    return re.sub(r'(?<=[ \[])(NaN|-?Infinity|"<2014-07-01>")(?=[,\]}])', lambda match: words[match[0]], text) + "\n"


def wrong_values(data, path):
    """Values that are wrong at this key of a good page."""
    present = at(data, path)
    if not isinstance(present, int | float) or isinstance(present, bool):
        yield -7.5
    if not isinstance(present, str | list | dict) and present is not None:
        yield "a word"
    if not (len(path) > 1 and path[-2] == "argv" and path[-1] > 0):
        yield ""
    if not (isinstance(present, bool)):
        yield True
    yield from NOWHERE


# Of the keys of a page: each of them in the long tests, one of some in the others, in each page from another on.
EVERY_KEY = pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"])


def some(items, every, page=""):
    """One of `every` so many items, from one on that is another for each page."""
    return list(items)[sum(page.encode()) % every :: every]


def few(values, number, count):
    """`count` of the values, others for each number: all of them take their turn over the keys."""
    values = list(values)
    return [values[(number * count + step) % len(values)] for step in range(min(count, len(values)))]


@pytest.fixture
def quick(monkeypatch):
    """Read good YAML by libyaml, which takes a tenth of the time, and the claims, which are good, once."""
    loader, plainly = getattr(yaml, "CSafeLoader", yaml.SafeLoader), yaml_file.read

    def read(path):
        try:
            return yaml.load(Path(path).read_text(), Loader=loader)
        except (yaml.YAMLError, ValueError):
            return plainly(path)

    monkeypatch.setattr(yaml_file, "read", read)
    monkeypatch.setattr(claims, "check", functools.cache(claims.check))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A project of the checkout, as the working directory, whose config may be overwritten."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(projects.make(tmp_path / "p", projects.default()))
    workload.load.cache_clear()
    yield tmp_path / "p"
    workload.load.cache_clear()


@pytest.fixture
def loads(tmp_path, monkeypatch):
    """A function that makes the file of the only workload of a project, measured on the bare host."""
    place = projects.make(tmp_path / "w", projects.on_host(), {})
    (place / "workloads").mkdir()
    (place / "workloads/common").symlink_to(projects.ROOT / "workloads/common")
    monkeypatch.chdir(place)

    def write(name, text):
        workload.load.cache_clear()
        (place / "config.yaml").write_text(dumped(projects.on_host(workloads={name: None})))
        path = place / f"workloads/{name}/workload.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        if name in WORKLOADS:
            for source in (projects.ROOT / "workloads" / name).iterdir():
                if source.name != "workload.yaml" and not (path.parent / source.name).exists():
                    (path.parent / source.name).symlink_to(source)
        elif len(name) < 100 and "/" not in name:
            projects.write_parser(place, name)
        return place

    yield write
    workload.load.cache_clear()


def test_the_pages_that_are_mutated_are_good(folder, loads):
    (folder / "config.yaml").write_text(CONFIG)
    assert told(folder) == (0, "")
    for name, text in WORKLOADS.items():
        place = loads(name, text)
        assert told(place) == (0, "")
        shutil.rmtree(place / f"workloads/{name}")


@EVERY_KEY
def test_wrong_values_at_every_key_of_the_config_are_told(quick, folder, every):
    good = yaml.safe_load(CONFIG)
    good |= {"image": {"distribution": "host", "release": "trixie", "mirror": "https://mirror.example.org/debian"}}
    good |= {"partial": False, "archive_image": False, "order": "blocks", "published_raw": "."}
    good |= {"quiet": {"action": "flag", "wait_seconds": 5, "steal": "2%", "busy": "5%", "swap": "1MiB", "load": 4}}
    good["workloads"] |= {"stream": {"elements": 5_000_000}, "linpack": {"sizes": [600, 700]}}
    faults, count = [], 0
    for number, path in some(enumerate(paths(good)), (every + 1) // 2):
        for value in few(wrong_values(good, path), number, 1 if every > 1 else 3):
            (folder / "config.yaml").write_text(dumped(changed(good, path, value)))
            count += 1
            if reason := fault(folder, ".".join(str(part) for part in path)):
                faults.append((path, repr(value)[:40], reason))
    assert faults == []
    assert count > (250 if every == 1 else 25)


def in_schema(path):
    """Whether a key is within a parameter's schema, where some numbers and texts may be anything."""
    return path[0] == "parameters" and len(path) > 3 and path[2] == "schema"


def in_where(path):
    """Whether a key is of a choice of factors, of which only the parser knows the names."""
    return "where" in path and path[0] in ("figures", "headline")


@EVERY_KEY
@pytest.mark.parametrize("name", list(WORKLOADS))
def test_wrong_values_at_every_key_of_a_workload_are_told(quick, loads, name, every):
    data = yaml.safe_load(WORKLOADS[name])
    faults, count = [], 0
    for number, path in some(enumerate(paths(data)), every, name):
        values = NOWHERE if in_schema(path) or in_where(path) else wrong_values(data, path)
        if "enum" in path or path[-1] == "where":
            values = [value for value in values if not isinstance(value, list | dict)]
        for value in few(values, number, 1):
            place = loads(name, dumped(changed(data, path, value)))
            key = ".".join(str(part) for part in path)
            count += 1
            if reason := fault_of_workload(place, name, key):
                faults.append((path, repr(value)[:40], reason))
    assert faults == []
    assert count >= 30 // every


def mappings(data, skip=()):
    return [path for path in [(), *paths(data)] if isinstance(at(data, path), dict) and path not in skip]


@EVERY_KEY
def test_unknown_keys_anywhere_are_told(quick, folder, loads, every):
    good = yaml.safe_load(CONFIG)
    faults = []
    for path in some(mappings(good), every):
        (folder / "config.yaml").write_text(dumped(changed(good, (*path, "unexpcted"), 1)))
        faults += [(path, reason) for reason in [fault(folder, ".".join(map(str, path)))] if reason]
    for name, text in WORKLOADS.items():
        data = yaml.safe_load(text)
        for path in some([path for path in mappings(data) if not in_where(path)], every, name):
            place = loads(name, dumped(changed(data, (*path, "unexpcted"), 1)))
            key = ".".join(map(str, path))
            faults += [(path, reason) for reason in [fault_of_workload(place, name, key)] if reason]
    assert faults == []


# Keys without which a mapping of a workload's file means nothing.
REQUIRED = {"title", "about", "packages", "metrics", "parameters", "warmup", "run", "checks", "label", "unit", "better"}
REQUIRED |= {"schema", "argv", "timeout", "name", "pattern", "smoke", "quick", "paper", "value", "rule"}


@EVERY_KEY
@pytest.mark.parametrize("name", list(WORKLOADS))
def test_missing_keys_of_a_workload_are_told(quick, loads, name, every):
    data = yaml.safe_load(WORKLOADS[name])
    faults, count = [], 0
    # Without a command a server is ended by a signal; a figure need not have a title or metrics of its own.
    required = [
        path
        for path in paths(data)
        if path[-1] in REQUIRED
        and not (in_schema(path) or in_where(path) or path[-2:] == ("stop", "argv"))
        and not (path[0] == "figures" and path[-1] in ("title", "metrics"))
    ]
    for path in some(required, every, name):
        less = copy.deepcopy(data)
        del at(less, path[:-1])[path[-1]]
        count += 1
        if reason := fault_of_workload(loads(name, dumped(less)), name, ".".join(map(str, path))):
            faults.append((path, reason))
    assert faults == []
    assert count >= 20 // every


HOSTILE_NAMES = [
    *["../x", "..", ".", "a/b", "/etc", "a\\b", "x/../../y", "~root", "C:"],
    *["", " ", "two words", "a'b", 'a"b', "a\nb", "a\n", "a\tb", "\x1b[2J", "a\0b"],
    *["-x", "--config", "-", "a;b", "$(id)", "`id`", "$HOME", "a|b", "a&b", "a>b", "*", "a?b", "{a}", "%s", "#a", "!a"],
    *["Größe", "日本", "native\u200b", "native\u202e", "Native", "a.b", "a,b", "a:b", "9a", "a" * 41, "a" * 5000],
]


@EVERY_KEY
@pytest.mark.parametrize("kind", ["environments", "workloads", "vm.profiles"])
def test_names_that_could_leave_their_place_are_told(quick, folder, kind, every):
    faults = []
    for name in some(HOSTILE_NAMES, every, kind):
        good = yaml.safe_load(CONFIG)
        at(good, kind.split("."))[name] = {"layers": ["chroot"]} if kind == "environments" else {}
        (folder / "config.yaml").write_text(dumped(good))
        if reason := fault(folder, kind):
            faults.append((name[:20], reason))
    assert faults == []
    assert not list(folder.parent.glob("x*"))


@pytest.mark.parametrize("kind", ["parameters", "metrics"])
def test_hostile_names_in_a_workload_are_told(quick, loads, kind):
    faults = []
    for name in [
        *HOSTILE_NAMES,
        "Upper",
        "a-b",
        *(["seed", "address", "listen", "part"] if kind == "parameters" else []),
    ]:
        data = copy.deepcopy(projects.NOOP)
        data[kind][name] = next(iter(data[kind].values()))
        if reason := fault_of_workload(loads("noop", dumped(data)), "noop", kind):
            faults.append((name[:20], reason))
    assert faults == []


def test_a_workload_cannot_have_the_name_of_a_common_figure(loads):
    for name in figures.SHARED:
        assert fault(loads(name, dumped(projects.NOOP)), f"workloads.{name}") is None


BOMB = "bomb: &a0 [x, x]\n" + "".join(f"bomb{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
# (what is changed in the text of the config, what the message says)
TEXTS = [
    ("\tscale: smoke\n", "line 1, column 1: not valid YAML: found character '\\t'"),
    ("scale:\tsmoke\nrepetitions:\n\t- 5\n", "line 1"),
    (b"scale: sm\xff\xfeoke\n", "line 1: not UTF-8 text (byte 9)"),
    (b"\xff\xfes\x00c\x00", "line 1: not UTF-8 text (byte 0)"),
    ("scale: smoke\nseed: \x00\n", "line 2: not valid YAML: the character U+0000 is not allowed"),
    ("scale: smoke\nseed: \x1b[31m\n", "line 2: not valid YAML: the character U+001B is not allowed"),
    ("scale: smoke\nscale: smoke\n", 'line 2, column 1: not valid YAML: found duplicate key "scale"'),
    (
        "environments:\n  a: {layers: [host]}\n  a: {layers: [host]}\n",
        "line 3, column 3: not valid YAML: found dup",
    ),
    (BOMB, "unfolds to more than"),
    ("a: &x\n  b: *x\n", "the whole: is nested deeper than 40 levels"),
    ("a: &x [1, [2, *x]]\n", "the whole: is nested deeper than 40 levels"),
    ("a: *nowhere\n", "undefined alias"),
    (
        "seed: !!python/object/apply:os.system [id]\n",
        "line 1, column 7: not valid YAML: could not determine",
    ),
    (
        "seed: !!python/name:os.system\n",
        "line 1, column 7: not valid YAML: could not determine",
    ),
    ("seed: !custom 5\n", "line 1, column 7: not valid YAML: could not determine a constructor for the tag '!custom'"),
    ("seed: !!set {a, b}\n", "seed: is a set; must be text"),
    ("seed: !!binary aGVsbG8=\n", "seed: is a bytes; must be text"),
    ("seed: !!int five\n", "line 1, column 7: not valid YAML: five is not what its tag or its form says"),
    ("seed: !!float five\n", "line 1, column 7: not valid YAML: five is not what its tag or its form says"),
    ("seed: !!bool maybe\n", "line 1, column 7: not valid YAML: maybe is not what its tag"),
    ("seed: .nan\n", "seed: is nan; must be a finite number"),
    ("seed: -.inf\n", "seed: is -inf; must be a finite number"),
    ("seed: 1.0e+999\n", "seed: is inf; must be a finite number"),
    (f"seed: {'9' * 5000}\n", "line 1, column 7: not valid YAML: 999"),
    ("5: 5\n", "the key 5 is not text: put it in quotes"),
    ("~: 5\n", "the key empty is not text"),
    ("?\n: 5\n", "the key empty is not text"),
    ("[a, b]: 5\n", 'the key ["a", "b"] is not text'),
    ("? {a: b}\n: 5\n", "line 1, column 3: not valid YAML: found unhashable key"),
    ("<<: {scale: smoke}\n", "the key << (merge) is not used here"),
    ("a: =\n", "line 1, column 4: not valid YAML: could not determine a constructor"),
    ("scale: smoke\n---\nscale: paper\n", "line 2"),
    ("scale: 'smoke\n", "not valid YAML"),
    ('scale: "smoke\n', "not valid YAML"),
    ("scale: smoke: paper\n", "line 1"),
    (" scale: smoke\nseed: 5\n", "line 2"),
    ("%YAML 3.0\n---\nscale: smoke\n", "line 1"),
    ("scale: &a &b smoke\n", "line 1"),
    ("scale: @smoke\n", "line 1"),
    ("scale: `id`\n", "line 1"),
    ("[" * 1200, "nested too deeply"),
    ("a: " + "[" * 60 + "]" * 60 + "\n", "nested deeper than"),
    ("{" * 300, "not valid YAML"),
    ("scale: " + "x" * 2**20 + "\n", "larger than 1 MiB"),
    ("", "must be a mapping of keys to values, not empty"),
    ("# a comment alone\n", "must be a mapping of keys to values, not empty"),
    ("just text\n", 'must be a mapping of keys to values, not "just text"'),
    ("- scale: smoke\n", "must be a mapping of keys to values, not a list"),
    ("5\n", "must be a mapping of keys to values, not 5"),
]
# The same of texts that are good YAML, as they are met in a config.
TEXTS_OF_CONFIG = [
    ("seed: 2014-07-01 10:00:00\n", 'seed: is "2014-07-01 10:00:00"; must be'),
    ("seed: !!omap [a: 1]\n", "seed: is a mapping"),
    ("seed: !!null five\n", "seed: is empty; must be a whole number"),
    ("seed: 2014-07-01\n", 'seed: is "2014-07-01"; must be a whole number'),
    ("seed: 2014-99-99\n", 'seed: is "2014-99-99"; must be a whole number'),
    ("seed: 1:30\n", 'seed: is "1:30"; must be a whole number'),
    ("seed: 1:30.5\n", 'seed: is "1:30.5"; must be a whole number'),
    ("partial: yes\n", 'partial: is "yes"; must be true or false'),
    ("partial: On\n", 'partial: is "On"; must be true or false'),
    ("image: {release: no}\n", "environments: missing"),
    ("no: 5\n", "no: unknown key"),
    ("2014-07-01: 5\n", "2014-07-01: unknown key"),
]


def test_a_word_is_text_unless_it_is_plainly_something_else(tmp_path):
    (tmp_path / "a.yaml").write_text(
        "[no, Yes, on, 1:30, 2014-07-01, 010, 0o17, 1_000, 1e3, .5, true, ~, 1.5.2, '5']\n"
    )
    read = yaml_file.read(str(tmp_path / "a.yaml"))
    assert read == ["no", "Yes", "on", "1:30", "2014-07-01", 10, 15, 1000, 1000.0, 0.5, True, None, "1.5.2", "5"]


@pytest.mark.parametrize(("text", "part"), TEXTS_OF_CONFIG)
def test_words_that_mean_something_else_are_told(folder, text, part):
    (folder / "config.yaml").write_text(text)
    status, message = told(folder, "plan")
    assert status == 1
    assert f"config.yaml: {part}" in message
    assert not (folder / "results").exists()


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_texts_that_mean_nothing_are_told_with_their_place(folder, loads, number):
    text, part = TEXTS[number]
    content = text if isinstance(text, bytes) else text.encode()
    (folder / "config.yaml").write_bytes(content)
    for file in ("config.yaml", "workloads/noop/workload.yaml"):
        place = folder if file == "config.yaml" else loads("noop", content)
        status, message = told(place, "plan")
        assert status == 1
        assert message.startswith(f"strata: {file}: ")
        assert part in message
        assert len(message) < 600
        assert not (place / "results").exists()


def test_a_config_that_is_no_file_is_told(folder):
    (folder / "config.yaml").unlink()
    assert told(folder) == (1, "strata: config.yaml: there is no such file\n")
    (folder / "config.yaml").mkdir()
    assert told(folder) == (1, "strata: config.yaml: cannot be read: Is a directory\n")


# (a key of the config, a value that looks right, a part of the reason)
SENSELESS = [
    ("repetitions", 5.0, "is 5.0; must be a whole number"),
    ("repetitions", {"min": 2, "max": 3, "target": "1001%"}, "at most 1000%"),
    ("repetitions", {"min": 2, "max": 3, "target": "9" * 400 + "%"}, "at most 1000%"),
    ("repetitions", {"min": 2, "max": 3, "target": "5%\n"}, "U+000A"),
    ("seed", 2**60, "must be at most 9007199254740992"),
    ("image.release", "trixie\n", "U+000A"),
    ("image.mirror", "https://x.org/debian\nDeb evil", "U+000A"),
    ("environments.native.label", "   ", "is blank"),
    ("environments.native.label", "Na\u2028tive", "U+2028"),
    ("environments.native.label", "Na\u202etive", "U+202E"),
    ("environments.native.label", "x" * 41, "is too long"),
    ("environments.native.layers", ["chroot\n"], "U+000A"),
    ("vm.profiles.default.memory", "99999999GiB", "this machine has"),
    ("vm.profiles.default.memory", "1MiB", "must be at least 256MiB"),
    ("vm.profiles.default.memory", "9" * 5000 + "GiB", "must match"),
    ("vm.profiles.default.data_disk", "999999999GiB", "must match"),
    ("workloads.stream.elements", 10**15, "of memory"),
    ("workloads.stream.elements", 5e6, "must be a whole number"),
    ("workloads.stream.threads", {"rule": "cpus"}, "must be text, a number"),
    ("workloads.linpack.sizes", [[1000]], "must be text, a number"),
    ("workloads.linpack.sizes", [1000, 1000.0], "must be a whole number"),
    ("workloads.pxz.corpus", "\n", "U+000A"),
    ("workloads.pxz.corpus", "x" * 5000, "there is no such file"),
    ("workloads.pxz.corpus", "/", "there is no such file"),
    ("workloads.pxz.corpus", "$(id)", "there is no such file"),
    ("workloads.pxz.bytes", 10**15, "must be at most"),
    ("published_raw", "x" * 5000, "there is no folder"),
    ("published_raw", "config.yaml", "is not a folder"),
    ("quiet.steal", "101%", "must be at most 100%"),
    ("quiet.busy", "five", "must match"),
    ("quiet.swap", "1MB", "must match"),
    ("quiet.action", "panic", "must be one of retry, flag, wait, refuse"),
]


@pytest.mark.parametrize(("key", "value", "part"), SENSELESS, ids=[f"{s[0]}-{n}" for n, s in enumerate(SENSELESS)])
def test_values_of_the_right_kind_that_make_no_sense_are_told(folder, key, value, part):
    good = yaml.safe_load(CONFIG)
    inner = good
    for name in key.split(".")[:-1]:
        inner = inner.setdefault(name, {})
    inner[key.split(".")[-1]] = value
    (folder / "config.yaml").write_text(dumped(good))
    status, message = told(folder)
    assert status == 1
    assert f"config.yaml: {key}" in message
    assert part in message


def parameter(**more):
    return {"parameters": {"number": {"about": "x", "schema": {"type": "integer"}, "value": 7, **more}}}


def command(*argv, timeout=20):
    return {"run": [{"argv": list(argv), "timeout": timeout}]}


# (what is changed in a good workload's file, the key, a part of the reason)
SENSELESS_WORKLOADS = [
    (parameter(value="seven"), "parameters.number.value", "must be a whole number"),
    (parameter(value=None), "parameters.number.value", "is empty"),
    (parameter(value=7.0), "parameters.number.value", "must be a whole number"),
    (parameter(value={"rule": ["cpus"]}), "parameters.number.value.rule", "must be the name of a rule"),
    (parameter(value={"rule": "fitting"}), "parameters.number.value.values", "missing; the rule fitting needs it"),
    (parameter(value={"rule": "cpus", "factor": 4}), "parameters.number.value.factor", "unknown key"),
    (
        parameter(value={"rule": "memory-power", "fraction": "half", "element_bytes": 8}),
        "parameters.number.value.fraction",
        'is "half"; must be a number above 0',
    ),
    (
        parameter(value={"rule": "memory-power", "fraction": 0.5, "element_bytes": 0}),
        "parameters.number.value.element_bytes",
        "must be a number above 0",
    ),
    (
        parameter(schema={"type": "integer", "minimun": 5}),
        "parameters.number.schema.minimun",
        "did you mean 'minimum'?",
    ),
    (parameter(schema={"$ref": "http://127.0.0.1/x"}), "parameters.number.schema.$ref", "unknown key"),
    (parameter(schema={"type": "string", "pattern": "("}), "parameters.number.schema.pattern", "no regular expression"),
    (
        parameter(schema={"type": "string", "pattern": "(?:a{99999999999999999999})"}),
        "parameters.number.schema.pattern",
        "no regular expression",
    ),
    (parameter(schema={"type": "integer", "minimum": "x"}), "parameters.number.schema.minimum", "not a JSON Schema"),
    (
        parameter(schema={"type": "integer", "minimum": 9, "maximum": 5}),
        "schema.maximum",
        "must be at least minimum, 9",
    ),
    (parameter(schema={"type": "array", "items": True}, value=[1]), "parameters.number.schema.items", "a mapping"),
    (parameter(schema={"type": "string"}, value="x", memory="8*n"), "parameters.number.memory", "whole numbers"),
    (parameter(schema={"type": "string"}, value="x", file="number"), "parameters.number.file", "the parameter itself"),
    (parameter(file="nubmer"), "parameters.number.file", "did you mean 'number'?"),
    (command("{number}"), "run.0.argv.0", "must be the name or the path of a program"),
    (command("-x"), "run.0.argv.0", "must be the name or the path of a program"),
    (command("A=b"), "run.0.argv.0", "must be the name or the path of a program"),
    (command(""), "run.0.argv.0", "must be the name or the path of a program"),
    (command("a", "--n={number}"), "run.0.argv", "a parameter stands for a whole one"),
    (command("a", "{numbre}"), "run.0.argv", "did you mean 'number'?"),
    (command("a", "b\0c"), "run.0.argv.1", "U+0000"),
    (command("a", timeout=1e12), "run.0.timeout", "must be at most 2000000 seconds"),
    (command("a", timeout={"smoke": 1, "quick": 1, "paper": 10**7}), "run.0.timeout.paper", "must be at most 2000000"),
    (command("a", timeout=-1), "run.0.timeout", "must be seconds"),
    ({"checks": [{"name": "x", "pattern": "("}]}, "checks.0.pattern", "is no regular expression"),
    ({"checks": [{"name": "x", "pattern": ".*"}]}, "checks.0.pattern", "matches an empty line"),
    ({"checks": [{"name": "x", "pattern": "^$"}]}, "checks.0.pattern", "matches an empty line"),
    ({"checks": [{"name": " ", "pattern": "a"}]}, "checks.0.name", "is blank"),
    ({"title": "two\nlines"}, "title", "must be one line"),
    ({"title": "\n"}, "title", "is blank"),
    ({"question": "procesor"}, "question", "did you mean 'processor'?"),
    ({"about": "  "}, "about", "is blank"),
    ({"packages": ["gcc\n"]}, "packages.0", "must match"),
    ({"packages": ["-o=x"]}, "packages.0", "must match"),
    (
        {"metrics": {"rate": {"label": "R", "unit": "a\tb", "better": "higher"}}},
        "metrics.rate.unit",
        "must be one line",
    ),
    ({"metrics": {"rate\n": {"label": "R", "unit": "s", "better": "higher"}}}, "metrics.rate", "U+000A"),
]


@pytest.mark.parametrize("number", range(len(SENSELESS_WORKLOADS)))
def test_workloads_that_make_no_sense_are_told(loads, number):
    change, key, part = SENSELESS_WORKLOADS[number]
    status, message = told(loads("noop", dumped({**projects.NOOP, **change})))
    assert status == 1
    assert "workloads/noop/workload.yaml: " in message
    assert f"{key}" in message
    assert part in message


def test_a_file_of_a_parameter_that_is_not_there_is_told(loads):
    given_file = {"about": "x", "schema": {"type": "string"}, "value": "/no/such/file", "file": "sum"}
    parameters = {"given": given_file, "sum": {"about": "x", "schema": {"type": "string"}, "value": "0" * 40}}
    place = loads("noop", dumped({**projects.NOOP, "parameters": {**projects.NOOP["parameters"], **parameters}}))
    assert told(place, "plan")[1].endswith(
        "workloads.noop.given: /no/such/file cannot be read: No such file or directory\n"
    )
    assert not (place / "results").exists()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("{", "is not JSON"),
        ("[1]", "must be a JSON object, not a list"),
        ("5", "must be a JSON object, not 5"),
        ('{"seed": NaN}', "NaN is no finite number"),
        ('{"seed": -Infinity}', "-Infinity is no finite number"),
        ('{"seed": 1e999}', "seed: is inf; must be a finite number"),
        ('{"seed": ' + "9" * 5000 + "}", "is not JSON"),
        ('{"seed": ' + "9" * 400 + "}", "seed: is a number of about 400 digits"),
        ('{"seed": 1, "seed": 2}', "the key 'seed' stands twice"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "[" * 60 + "]" * 60 + "}", "nested deeper"),
        ('{"image": {"release": "a\\u0000"}}', "image.release: holds the character U+0000"),
        ('{"image": {"release": "\\ud800"}}', "image.release: holds the character U+D800"),
        ('{"workloads": {"../x": {}}}', "workloads.../x: is"),
    ],
)
def test_words_of_the_command_line_are_told(folder, words, part):
    for name in ("check", "plan"):
        status, message = told(folder, name, "--config", words)
        assert status == 1
        assert message.startswith(("strata: --config: ", "strata: config.yaml: "))
        assert part in message
        assert len(message) < 600


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("seed=nan", "seed: is nan; must be a finite number"),
        ("seed=1e999", "seed: is inf; must be a finite number"),
        ("seed=", "seed: is empty; must be a whole number"),
        ("seed=" + "9" * 5000, "seed: "),
        ("seed=5.0", "seed: is 5.0; must be a whole number"),
        ("seed=five", 'seed: is "five"; must be a whole number'),
        ("scale=[smoke", "scale: is "),
        ("scale={smoke: {}}", "scale: is a mapping"),
        ("repetitions={min: 2, max: x, target: 5%}", 'repetitions.max: is "x"'),
        ("workloads={stream: {5: 3}}", "workloads.stream.5: unknown parameter"),
        ("workloads={stream: {trials: " + "9" * 5000 + "}}", "workloads.stream.trials: "),
        ("workloads={stream: {trials: [1, {a: b}]}}", "workloads.stream.trials: is a list of more"),
        ("workloads={../x: {}}", "workloads.../x: "),
        ("environments={a b: {layers: [host]}}", "environments.a b: "),
        ("environments=&x {a: *x}", 'environments: is "&x {a: *x}"; must be a mapping'),
        ("moon=5", "moon: unknown key"),
        ("rebuild=maybe", "rebuild: unknown key"),
    ],
)
def test_values_that_snakemake_was_given_are_told(folder, monkeypatch, words, part):
    for name in ("PATH", "PYTHONPATH", "STRATA_OWNER"):
        monkeypatch.setenv(name, "1")
    with pytest.raises(UserError) as caught:
        Workflow(parse_config([words]), str(folder))
    assert part in str(caught.value)
    assert len(str(caught.value)) < 600
    assert not (folder / "results").exists()


def test_a_config_file_of_snakemakes_may_hold_anything_and_is_told(folder, monkeypatch):
    for name in ("PATH", "PYTHONPATH", "STRATA_OWNER"):
        monkeypatch.setenv(name, "1")
    itself = {}
    itself["environments"] = {"a": itself}
    for over, part in [
        ({5: 1}, "the key 5 is not text"),
        ({"seed": datetime.date(2014, 7, 1)}, "seed: is a date"),
        ({"workloads": {"stream": {b"a": 1}}}, "is not text"),
        ({"seed": {1, 2}}, "seed: is a set"),
        (itself, "nested deeper"),
    ]:
        with pytest.raises(UserError) as caught:
            Workflow(over, str(folder))
        assert part in str(caught.value)


def good_or_told(text):
    """Check a config by what it comes to: a plan that can be written, or a message with the file and a reason."""
    with open("config.yaml", "wb") as file:
        file.write(text)
    try:
        plan = config.experiment(config.read(), MACHINE)
    except UserError as error:
        for line in str(error).splitlines():
            assert re.match(r"config\.yaml: \S.*", line)
        return
    json.dumps(plan, allow_nan=False).encode()


LASTING = settings(max_examples=120, derandomize=True, deadline=None, database=None)
IN_FOLDER = settings(LASTING, suppress_health_check=[HealthCheck.function_scoped_fixture])
DAMAGE = st.tuples(
    st.integers(0, len(CONFIG)),
    st.integers(0, 12),
    st.one_of(st.binary(max_size=4), st.sampled_from([b":", b"- ", b"\n", b"{", b"*memory", b"&a ", b"!!int ", b"'"])),
)


@IN_FOLDER
@given(damage=st.lists(DAMAGE, min_size=1, max_size=3))
def test_a_damaged_config_is_good_or_told(folder, damage):
    text = CONFIG.encode()
    for place, length, insert in damage:
        text = text[:place] + insert + text[place + length :]
    good_or_told(text)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
PAGE = yaml.safe_load(CONFIG)


@IN_FOLDER
@given(path=st.sampled_from(list(paths(PAGE))), value=ANYTHING)
def test_a_config_with_anything_at_a_key_is_good_or_told(quick, folder, path, value):
    good_or_told(dumped(changed(PAGE, path, value)).encode())


NOOP_TEXT = dumped(projects.NOOP)


@IN_FOLDER
@given(path=st.sampled_from(list(paths(projects.NOOP))), value=ANYTHING)
def test_a_workload_with_anything_at_a_key_is_good_or_told(quick, loads, path, value):
    loads("noop", dumped(changed(projects.NOOP, path, value)))
    workload.load.cache_clear()
    try:
        plan = config.experiment(config.read(), MACHINE)
    except UserError as error:
        for line in str(error).splitlines():
            assert re.match(r"workloads/noop/workload\.yaml: \S.*", line)
        return
    json.dumps(plan, allow_nan=False).encode()


def test_the_command_itself_ends_with_a_message(folder):
    (folder / "config.yaml").write_text("seed: .nan\n")
    for name in ("check", "plan"):
        done = projects.run(folder, "strata", name)
        assert done.returncode == 1
        assert done.stderr == "strata: config.yaml: seed: is nan; must be a finite number\n"
        assert not (folder / "results").exists()


@pytest.mark.parametrize("number", ["²", "٣", "9" * 5000, "1e3", "0x1", " 1"])
def test_a_repetition_that_is_no_number_is_told(folder, number):
    status, message = told(folder, "cell", "native", "stream", number)
    assert status == 1
    assert message == "strata: usage: python -m strata cell ENVIRONMENT WORKLOAD REPETITION\n"
