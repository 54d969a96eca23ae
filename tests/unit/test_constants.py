"""What several modules know: it stands in schemas/constants/ once, and what has to be beside it is held equal."""

import json

import projects

from strata.base import constants
from strata.cell import logs, quiet
from strata.experiment import plan
from strata.experiment.quiet import JUDGED
from strata.host import observe


def schema(name):
    return json.loads((projects.ROOT / f"schemas/{name}.schema.json").read_text())


def texts(value):
    """All texts in data."""
    if isinstance(value, dict | list):
        return [text for inner in (value.values() if isinstance(value, dict) else value) for text in texts(inner)]
    return [value] if isinstance(value, str) else []


def test_the_marks_of_logs_are_those_of_the_constants():
    told = constants.read("logs")
    mark = told["system"]
    assert logs.mark(None) == mark["before"] + mark["none"] + mark["after"]
    assert logs.mark(3) == f"{mark['before']}3{mark['after']}"
    text = "\n".join(["first", logs.mark(0), "zero", logs.mark(1), "one", logs.mark(None), "last"])
    assert logs.split(text, 2) == {None: "first\nlast", 0: "zero", 1: "one"}
    mark = told["lap"]
    assert logs.lap_mark(3) == f"{mark['before']}3{mark['after']}"
    assert logs.laps(f"first\n{logs.lap_mark(1)}\none\n{logs.lap_mark(2)}\ntwo") == ["first\none\n", "first\ntwo"]
    assert told["not_available"] == observe.NOT_AVAILABLE
    for name in ("whole", "number", "named"):
        assert schema("record")["$defs"][name]["oneOf"][1] == {"const": told["not_available"]}


def test_what_is_judged_is_what_the_constants_say():
    told = constants.read("quiet")
    assert set(JUDGED) == set(told)
    flag = schema("record")["properties"]["quiet"]["properties"]["flags"]["items"]["properties"]
    assert set(flag["what"]["enum"]) == set(told)
    assert set(schema("plan")["$defs"]["thresholds"]["properties"]) == set(told)
    assert set(quiet.SHOWN) == {entry["shown"] for entry in told.values()}
    ticks = (0,) * 8
    early = quiet.Reading(0.0, ticks, None, None, None)
    late = quiet.Reading(10.0, (*ticks[:7], 10**6), None, None, None)
    seen = {entry["field"]: 10**6 for entry in told.values()} | {"others": []}
    for when in ("before", "during"):
        flags = quiet.judge(when, early, late, seen, dict.fromkeys(told, 0))
        assert {flag["what"] for flag in flags} == {name for name, entry in told.items() if when in entry["when"]}
        for flag in flags:
            assert quiet.sentence(flag).startswith(told[flag["what"]]["says"])
    # Each is seen where the constants say: without it nothing is judged.  Stolen time is counted by the judge itself.
    for name in set(told) - {"steal"}:
        unseen = {**seen, told[name]["field"]: observe.NOT_AVAILABLE}
        assert name not in [flag["what"] for flag in quiet.judge("before", early, late, unseen, dict.fromkeys(told, 0))]


def test_accelerators_are_those_of_the_schema():
    accelerators = list(constants.read("accelerators"))
    assert schema("record")["$defs"]["vm"]["properties"]["accelerator"]["enum"] == accelerators


def test_a_system_has_at_most_so_many_parts_as_its_ports_lie_apart():
    known = schema("workload")["properties"]["systems"]["known"]
    assert known["like"]["allOf"][1]["properties"]["schema"]["properties"]["maximum"] == {"maximum": plan.PARTS}
