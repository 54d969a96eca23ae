"""Size rules: what is smallest keeps them on any machine, and what is smaller breaks one."""

import random
import re

import projects
import pytest

from strata.base.errors import UserError
from strata.experiment import sizes, workload

RULED = [name for name in workload.known() if "sizes" in workload.load(name)]
COMPUTED = ["linpack", "pxz", "randomaccess", "stream"]


def machines(number):
    chance = random.Random(1)
    for _ in range(number):
        cache = chance.randint(2**18, 2**29)
        yield {"cpus": chance.randint(1, 256), "mask": None, "cache_bytes": cache, "memory_bytes": 2**42}


def resolved(name, machine, scale="standard", **overrides):
    values, _ = workload.resolve(name, overrides, scale, machine)
    return values, sizes.outcomes(workload.load(name), values, machine)


@pytest.mark.parametrize("name", COMPUTED)
def test_the_smallest_size_keeps_every_rule_and_less_does_not(name):
    for machine in machines(50):
        values, found = resolved(name, machine)
        assert found
        assert not sizes.broken(found)
        for key, entry in workload.load(name)["parameters"].items():
            rule = entry.get("standard")
            if isinstance(rule, dict) and rule["rule"] == "smallest":
                least = values[key]
                less = (least[0] if isinstance(least, list) else least) - rule["multiple"]
                smaller = {key: [less] if isinstance(least, list) else less}
                assert less < rule["at_least"] or sizes.broken(resolved(name, machine, **smaller)[1]), (machine, key)


def test_what_is_not_known_is_not_broken_and_has_its_floor():
    machine = {"cpus": 2, "mask": None, "cache_bytes": None, "memory_bytes": 2**36}
    values, found = resolved("stream", machine, "paper")
    assert values["elements"] == 80000000
    assert [one["holds"] for one in found] == [None, True, True]


@pytest.mark.parametrize(("mib", "share"), [(None, 1), (32, 1), (64, 1), (96, 2 / 3), (128, 1 / 2), (480, 2 / 15)])
def test_a_large_cache_makes_fewer_laps_of_long_runs_and_says_so(mib, share):
    machine = {"cpus": 2, "mask": None, "cache_bytes": mib and mib * 2**20, "memory_bytes": 2**42}
    for name, most in (("stream", 8), ("randomaccess", 3), ("linpack", 2)):
        values, notes = workload.resolve(name, {}, "standard", machine)
        own = max(int(most * share), 1)
        assert values["laps"] == own
        assert [note for note in notes if f"not {most}" in note] == notes[-1:] * (own < most)


def test_metrics_of_the_log_decide_a_rule_and_the_smallest_counts():
    machine = {"cpus": 2, "mask": None, "cache_bytes": 2**25, "memory_bytes": 2**36}
    values, _ = workload.resolve("mysql", {}, "standard", machine)
    seconds = values["seconds"] * values["laps"]

    def last(*rates):
        metrics = [("throughput", rate) for rate in rates]
        return sizes.outcomes(workload.load("mysql"), values, machine, metrics)[-1]["holds"]

    assert last() is None
    assert last(500, 200 / seconds) is True
    assert last(500, 199 / seconds) is False


def test_equal_systems_share_processors():
    machine = {"cpus": 8, "mask": None, "cache_bytes": 2**25, "memory_bytes": 2**36}
    assert resolved("pxz", machine, systems=4)[0]["bytes"] == resolved("pxz", machine | {"cpus": 2})[0]["bytes"]


def test_what_the_memory_does_not_hold_is_refused():
    with pytest.raises(UserError, match="choose a smaller value"):
        resolved("stream", {"cpus": 2, "mask": None, "cache_bytes": 2**29, "memory_bytes": 2**31})


@pytest.mark.parametrize("name", RULED)
def test_every_rule_has_a_source_that_is_there(name):
    keys = re.findall(r"^@[a-z]+{([^,]+),", (projects.ROOT / "paper/references.bib").read_text(), re.MULTILINE)
    for rule in workload.load(name)["sizes"]:
        assert rule["source"] in keys or (projects.ROOT / rule["source"]).is_file()


@pytest.mark.parametrize("name", RULED)
def test_the_default_breaks_no_rule_and_tests_are_smaller(name):
    machine = {"cpus": 2, "mask": None, "cache_bytes": 2**25, "memory_bytes": 2**34}
    assert not sizes.broken(resolved(name, machine)[1])
    if name in COMPUTED:
        assert sizes.broken(resolved(name, machine, "tiny")[1])
