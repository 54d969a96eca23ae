"""Readers of the kernel's files, whatever these hold: an unknown fact is "not available"."""

import itertools
import json
import re

import jsonschema
import projects
import pytest
import seen

from strata.experiment import config
from strata.host import capacity, counters, distribution, node, observe
from strata.measure import interference
from strata.util.errors import UserError
from strata.vm import acceleration

SCHEMA = json.loads((projects.ROOT / "schemas/record.schema.json").read_text())
THRESHOLDS = config.plan_interference({})["thresholds"]
FILES = seen.files()
# Files that have changed on the same host ten seconds later.
LATER = {
    "/proc/50/stat": FILES["/proc/50/stat"].replace(" 300 20 ", " 900 20 "),
    "/proc/stat": re.sub(r"(?m)^(cpu\d* +(?:\d+ ){7})", r"\g<1>9", FILES["/proc/stat"]),
}
NA = observe.NOT_AVAILABLE


def between(host):
    """Return a record's facts about the time between two readings."""
    early, first = interference.take_reading(), host.files
    host.files = {
        path: LATER.get(path, text) if text == FILES[path] else text for path, text in first.items()
    }
    late = interference.take_reading()._replace(timestamp=early.timestamp + 10)
    facts = interference.compare_readings(early, late, (), measuring=True)
    host.files = first
    return facts


def flags(host):
    """Return the flags of the host's interference."""
    return interference.flag_exceeded_thresholds(
        "before", 10.0, {**observe.observe_current_load(seen.CPUS), **between(host)}, THRESHOLDS
    )


# Every public reader, and the definition of the record's schema that its facts fit.
READERS = {
    "static": (lambda _: observe.observe_host(seen.CPUS), "host_facts"),
    "inside": (
        lambda _: observe.parse_system_facts(observe.read_files(observe.FILES)),
        "host_facts",
    ),
    "moment": (lambda _: observe.observe_current_load(seen.CPUS), "at_a_moment"),
    "during": (between, "over_a_time"),
    "flags": (flags, None),
    "memory": (lambda _: observe.read_available_memory(), None),
    "ticks": (lambda _: observe.read_cpu_times(seen.CPUS), None),
    "mark": (lambda _: observe.find_emulated_host_mark(), None),
    "machine": (lambda _: capacity.read_host_facts(), None),
    "cpu": (lambda _: counters.format_cpu_usage_line([]), None),
    "node": (lambda _: node.identify_node(), None),
    "kvm": (lambda _: acceleration.read_trial_conditions(), None),
    "system": (lambda _: distribution.read_os_release(), None),
}
# The facts that rest on one file: not available where it is missing or empty.
REST_ON = {
    "/proc/vmstat": [("during", "swapped_bytes")],
    "/proc/stat": [("during", "steal_share"), ("during", "busy_share")],
    "/proc/1/stat": [("during", "processes_share"), ("during", "processes")],
    "/proc/meminfo": [("static", "memory_bytes"), ("moment", "swap_used_bytes")],
    "/proc/loadavg": [("moment", "load1")],
    "/proc/version": [("inside", "kernel")],
    "/proc/cpuinfo": [
        ("inside", key) for key in ("cpus", "sockets", "cpu_model", "virtualization", "microcode")
    ],
    "/proc/self/cgroup": [("inside", "cgroup")],
    "/etc/os-release": [("inside", "os")],
    "/opt/strata/packages": [("inside", "versions")],
    observe.TEMPERATURE: [("moment", "temperature_c")],
    f"{observe.CPU_FOLDER}/cpu0/cpufreq/scaling_governor": [("static", "governor")],
    f"{observe.CPU_FOLDER}/cpu0/cpufreq/scaling_cur_freq": [("moment", "frequency_mhz")],
}
# The readers that cannot do without a file.
NEEDED = {"/proc/meminfo": {"machine"}, "/proc/stat": {"cpu"}}


def changed(text, number):
    """Return a text with each of its numbers replaced."""
    return re.sub(r"(?<![\w.])\d+(?![\w.])", number, text)


ODD = {
    "absent": lambda text: None,
    "empty": lambda text: "",
    "binary": lambda text: "\0\x1b[31m\ufffd\x7f" + text[:9],
    "negative": lambda text: changed(text, "-7"),
    "huge": lambda text: changed(text, "9" * 30),
    "endless": lambda text: changed(text, "9" * 5000),
    "words": lambda text: changed(text, "unknown"),
    "fraction": lambda text: changed(text, "0.5"),
    "zero": lambda text: changed(text, "0"),
    "half": lambda text: text[: len(text) // 2],
    "first words": lambda text: "\n".join(line.split(" ")[0] for line in text.splitlines()),
    "names": lambda text: "\n".join(line.partition(":")[0] + ":" for line in text.splitlines()),
    "turned round": lambda text: "\n".join(reversed(text.splitlines())),
}


def validate(value, name):
    schema = {"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}
    jsonschema.Draft202012Validator(schema).validate(value)


def read_all(monkeypatch, files):
    """Return the readers' values, the errors of those that lack a needed file, and the paths."""
    host, values, needed = seen.Host(files), {}, {}
    host.put(monkeypatch.setattr)
    for name, (reader, schema) in READERS.items():
        try:
            values[name] = reader(host)
        except UserError as error:
            needed[name] = str(error)
            continue
        json.dumps(values[name], allow_nan=False)
        if schema:
            validate(values[name], schema)
    return values, needed, host.paths


@pytest.fixture(autouse=True)
def two_processors(monkeypatch):
    monkeypatch.setattr(capacity, "list_usable_cpus", lambda: seen.CPUS)
    monkeypatch.setattr(interference, "list_usable_cpus", lambda: seen.CPUS)


def test_all_facts_of_a_host_are_known_and_every_file_is_read(monkeypatch):
    values, needed, paths = read_all(monkeypatch, FILES)
    assert not needed
    assert paths >= FILES.keys()
    assert values["during"]["processes"] == [{"name": "cc1 (plus)", "share": 0.6}]
    assert [flag["what"] for flag in values["flags"]] == ["steal", "busy"]
    assert NA not in [
        *values["static"].values(),
        *values["inside"].values(),
        *values["moment"].values(),
    ]
    assert {"/proc/vmstat", "/proc/stat"} <= REST_ON.keys() <= FILES.keys()


# The only files without which a reader fails.
NEEDED = {"/proc/meminfo": {"machine"}, "/proc/stat": {"cpu"}}


@pytest.mark.parametrize("path", FILES)
def test_only_the_memory_and_the_times_of_processors_are_needed(monkeypatch, path):
    for kind, change in ODD.items():
        text = change(FILES[path])
        files = {**FILES, path: text}
        if text is None:
            del files[path]
        values, needed, _ = read_all(monkeypatch, files)
        assert needed.keys() <= NEEDED.get(path, set()), kind
        assert all(message.startswith(f"{path}: ") for message in needed.values())
        if kind in ("absent", "empty"):
            for reader, key in REST_ON.get(path, []):
                assert values[reader][key] == NA, kind


@pytest.mark.parametrize(
    ("megabytes", "pauses"),
    [([900, 960, 990, 990], 3), ([900, 880], 1), ([900, 901], 1), ([None], 1)],
)
def test_a_wait_ends_when_no_more_memory_is_freed(monkeypatch, megabytes, pauses):
    readings = iter([number and number * 10**6 for number in megabytes] + [0] * 20)
    waits = []
    monkeypatch.setattr(observe, "read_available_memory", lambda: next(readings))
    monkeypatch.setattr(observe.time, "sleep", waits.append)
    observe.wait_for_freed_memory()
    assert len(waits) == pauses


def test_a_wait_for_memory_is_bounded(monkeypatch):
    readings, waits = itertools.count(step=10**9), []
    monkeypatch.setattr(observe, "read_available_memory", lambda: next(readings))
    monkeypatch.setattr(observe.time, "sleep", waits.append)
    observe.wait_for_freed_memory()
    assert sum(waits) == 30
