"""The claims of the publications: mistakes in their file are found by key."""

import json

import pytest

from strata.base.errors import UserError
from strata.experiment import claims


def test_claims_that_are_tested_name_what_is_declared(checkout, tmp_path):
    claims.check()
    data = json.loads((checkout / claims.FILE).read_text())
    tested, untested = (
        next(number for number, claim in enumerate(data["claims"]) if ("untestable" in claim) is flag and number > 4)
        for flag in (False, True)
    )
    data["claims"][untested]["workload"] = "moon"
    spoiled = [(0, {"workload": "pxy"}), (tested, {"metrics": ["triads"]})]
    for number, wrong in spoiled:
        good = dict(data["claims"][number])
        data["claims"][number] |= wrong
        (tmp_path / "claims.json").write_text(json.dumps(data))
        with pytest.raises(UserError) as caught:
            claims.check(str(tmp_path / "claims.json"))
        [line] = str(caught.value).splitlines()
        assert good["id"] in line
        data["claims"][number] = good


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["format"], 2),
        (["claims", 1, "publication"], "imb2014"),
        (["claims", 1, "tolerance"], {"low": 2, "high": 1}),
        (["claims", 1, "published"], {"value": "3 %", "unit": "x"}),
        (["claims", 2], "no object"),
    ],
)
def test_mistakes_in_the_claims_are_refused_by_key(checkout, tmp_path, path, value):
    data = json.loads((checkout / claims.FILE).read_text())
    inner = data
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    (tmp_path / "claims.json").write_text(json.dumps(data))
    with pytest.raises(UserError, match=rf"claims\.json: {'.'.join(map(str, path))}"):
        claims.check(str(tmp_path / "claims.json"))
    (tmp_path / "claims.json").write_text("{,")
    with pytest.raises(UserError, match=r"claims\.json: .*line 1"):
        claims.check(str(tmp_path / "claims.json"))
