"""Size rules: the smallest valid size keeps them on any machine, and a smaller one breaks one."""

import random
import re

import projects
import pytest
import seen

from strata.experiment import sizes, workload
from strata.host import observe
from strata.util.errors import UserError

RULED = [name for name in workload.list_workloads() if "sizes" in workload.read_declaration(name)]
COMPUTED = ["linpack", "pxz", "randomaccess", "stream"]


def machines(number):
    """Yield random machines with enough memory for every size."""
    chance = random.Random(1)
    for _ in range(number):
        cache = chance.randint(2**18, 2**29)
        yield {
            "cpus": chance.randint(1, 256),
            "mask": None,
            "cache_bytes": cache,
            "memory_bytes": 2**42,
        }


def resolved(name, machine, scale="standard", **overrides):
    """Return a workload's parameters on a machine, and the outcomes of its size rules."""
    values, _ = workload.resolve_parameters(name, overrides, scale, machine)
    return values, sizes.evaluate_size_rules(workload.read_declaration(name), values, machine)


@pytest.mark.parametrize("name", COMPUTED)
def test_the_smallest_size_keeps_every_rule_and_less_does_not(name):
    for machine in machines(50):
        values, outcomes = resolved(name, machine)
        assert outcomes
        assert not sizes.has_broken_rule(outcomes)
        for key, entry in workload.read_declaration(name)["parameters"].items():
            rule = entry.get("standard")
            if isinstance(rule, dict) and rule["rule"] == "smallest":
                least = values[key]
                less = (least[0] if isinstance(least, list) else least) - rule["multiple"]
                smaller = {key: [less] if isinstance(least, list) else less}
                assert less < rule["at_least"] or sizes.has_broken_rule(
                    resolved(name, machine, **smaller)[1]
                ), (machine, key)


def test_an_unknown_cache_breaks_no_rule_and_leaves_the_least_size():
    machine = {"cpus": 2, "mask": None, "cache_bytes": None, "memory_bytes": 2**36}
    values, outcomes = resolved("stream", machine, "paper")
    assert values["elements"] == 80000000
    assert [outcome["holds"] for outcome in outcomes] == [None, True, True]


@pytest.mark.parametrize(
    ("mib", "share"), [(None, 1), (32, 1), (64, 1), (96, 2 / 3), (128, 1 / 2), (480, 2 / 15)]
)
def test_a_large_cache_makes_fewer_laps_and_a_note(mib, share):
    machine = {"cpus": 2, "mask": None, "cache_bytes": mib and mib * 2**20, "memory_bytes": 2**42}
    for name, most in (("stream", 8), ("randomaccess", 3), ("linpack", 2)):
        values, notes = workload.resolve_parameters(name, {}, "standard", machine)
        laps = max(int(most * share), 1)
        assert values["laps"] == laps
        assert [note for note in notes if f"not {most}" in note] == notes[-1:] * (laps < most)


def test_a_rule_on_a_metric_counts_the_smallest_value_of_the_log():
    machine = {"cpus": 2, "mask": None, "cache_bytes": 2**25, "memory_bytes": 2**36}
    values, _ = workload.resolve_parameters("mysql", {}, "standard", machine)
    seconds = values["seconds"] * values["laps"]

    def last_rule(*rates):
        metrics = [("throughput", rate) for rate in rates]
        return sizes.evaluate_size_rules(
            workload.read_declaration("mysql"), values, machine, metrics
        )[-1]["holds"]

    assert last_rule() is None
    assert last_rule(500, 200 / seconds) is True
    assert last_rule(500, 199 / seconds) is False


def caches(*of, level=3):
    """Return the kernel's files of caches of a level.

    of: (processors, MiB, list of the processors that share it, or None if there is no such file).
    """
    files = {}
    for cpus, mib, sharing in of:
        for cpu in cpus:
            folder = f"{observe.CPU_FOLDER}/cpu{cpu}/cache/index{level}"
            files |= {
                f"{folder}/level": str(level),
                f"{folder}/type": "Unified",
                f"{folder}/size": f"{mib * 1024}K",
            }
            if sharing is not None:
                files[f"{folder}/shared_cpu_list"] = sharing
    return files


EPYC = [(range(8 * die, 8 * die + 8), 32, f"{8 * die}-{8 * die + 7}") for die in range(8)]
SOCKETS = [
    ([*range(10), *range(20, 30)], 40, "0-9,20-29"),
    ([*range(10, 20), *range(30, 40)], 40, "10-19,30-39"),
]
# (files, processors that measurements may use, MiB of their last-level caches, STREAM's elements)
MACHINES = {
    "a desktop": (caches((range(8), 16, "0-7")), range(8), 16, 8_388_608),
    "two sockets": (caches(*SOCKETS), range(40), 80, 41_943_040),
    "one of two sockets": (caches(*SOCKETS), range(10), 40, 20_971_520),
    "an EPYC of eight dies": (caches(*EPYC), range(64), 256, 134_217_728),
    "a mask that has a processor of two dies": (caches(*EPYC), [3, 40], 64, 33_554_432),
    # Two large cores, four small ones that share a cache of the second level, and two without a
    # third level.
    "a hybrid": (
        caches((range(6), 12, "0-5"))
        | caches((range(2), 2, "0-1"), (range(2, 6), 4, "2-5"), (range(6, 8), 2, "6-7"), level=2),
        range(8),
        12,
        6_291_456,
    ),
    "no third level": (
        caches(*(([cpu], 1, str(cpu)) for cpu in range(4)), level=2),
        range(4),
        4,
        2_097_152,
    ),
    "a kernel without lists of sharing processors": (
        caches((range(8), 16, None)),
        range(8),
        16,
        8_388_608,
    ),
    "ARM without files": ({}, range(4), None, 1_000_000),
    "no size": ({f"{observe.CPU_FOLDER}/cpu0/cache/index3/level": "3"}, [0], None, 1_000_000),
}


@pytest.mark.parametrize("name", MACHINES)
def test_the_cache_is_the_sum_of_the_last_level_caches_that_measurements_use(monkeypatch, name):
    files, cpus, mib, elements = MACHINES[name]
    seen.Host(files).put(monkeypatch.setattr)
    cache = observe.sum_last_level_caches(set(cpus))
    assert cache == (mib and mib * 2**20)
    machine = {"cpus": len(cpus), "cache_bytes": cache, "memory_bytes": 2**42}
    assert resolved("stream", machine)[0]["elements"] == elements
    (order,) = resolved("linpack", machine)[0]["sizes"]
    assert 8 * order**2 >= 4 * (cache or 0)


@pytest.mark.parametrize(
    ("text", "mib"), [("32M", 32), ("32768K", 32), ("1G", 1024), ("", None), ("many", None)]
)
def test_a_cache_size_is_read_with_its_unit(monkeypatch, text, mib):
    files = caches(([0], 1, "0")) | {f"{observe.CPU_FOLDER}/cpu0/cache/index3/size": text}
    seen.Host(files).put(monkeypatch.setattr)
    assert observe.sum_last_level_caches({0}) == (mib and mib * 2**20)


def test_equal_systems_share_processors():
    machine = {"cpus": 8, "mask": None, "cache_bytes": 2**25, "memory_bytes": 2**36}
    quarter, _ = resolved("pxz", machine | {"cpus": 2})
    assert resolved("pxz", machine, systems=4)[0]["bytes"] == quarter["bytes"]


def test_a_size_beyond_the_memory_is_refused():
    with pytest.raises(UserError, match="choose a smaller value"):
        resolved("stream", {"cpus": 2, "mask": None, "cache_bytes": 2**29, "memory_bytes": 2**31})


@pytest.mark.parametrize("name", RULED)
def test_every_rule_names_a_source_that_exists(name):
    keys = re.findall(
        r"^@[a-z]+{([^,]+),", (projects.ROOT / "paper/references.bib").read_text(), re.MULTILINE
    )
    for rule in workload.read_declaration(name)["sizes"]:
        assert rule["source"] in keys or (projects.ROOT / rule["source"]).is_file()


@pytest.mark.parametrize("name", RULED)
def test_the_standard_scale_breaks_no_rule_and_tiny_breaks_one(name):
    machine = {"cpus": 2, "mask": None, "cache_bytes": 2**25, "memory_bytes": 2**34}
    assert not sizes.has_broken_rule(resolved(name, machine)[1])
    if name in COMPUTED:
        assert sizes.has_broken_rule(resolved(name, machine, "tiny")[1])
