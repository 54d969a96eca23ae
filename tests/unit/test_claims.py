"""The claims of the publications: mistakes in their file are named by key and claim."""

import json

import pytest

from strata.experiment import claims
from strata.util.errors import UserError


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["format"], 2),
        (["claims", 1, "publication"], "imb2014"),
        (["claims", 1, "tolerance"], {"low": 2, "high": 1}),
        (["claims", 1, "published"], {"value": "3 %", "unit": "x"}),
        (["claims", 2], "no object"),
        (["claims", 0, "workload"], "pxy"),
        (["claims", "tested", "metrics"], ["triads"]),
        (["claims", 1, "id"], 0),
        *((["workload_groups"], value) for value in (None, 5, "x", ["x"])),
        (["claims"], None),
        (["publications"], []),
        (["environments", "native"], None),
    ],
)
def test_mistakes_in_the_claims_are_refused_by_key(checkout, tmp_path, path, value):
    claims.check_claims()
    data = json.loads((checkout / claims.FILE).read_text())
    tested, untested = (
        next(
            at for at, one in enumerate(data["claims"]) if ("untestable" in one) is flag and at > 4
        )
        for flag in (False, True)
    )
    # A claim that is not tested may be about any workload.
    data["claims"][untested]["workload"] = "moon"
    path = [tested if part == "tested" else part for part in path]
    inner = data
    for part in path[:-1]:
        inner = inner[part]
    # An id is given as the position of the claim that has it.
    inner[path[-1]] = data["claims"][value]["id"] if path[-1] == "id" else value
    (tmp_path / "claims.json").write_text(json.dumps(data))
    with pytest.raises(UserError, match=rf"claims\.json: {'.'.join(map(str, path))}") as caught:
        claims.check_claims(str(tmp_path / "claims.json"))
    if len(path) > 2 and path[0] == "claims":
        assert inner["id"] in str(caught.value)
    (tmp_path / "claims.json").write_text("{,")
    with pytest.raises(UserError, match=r"claims\.json: .*line 1"):
        claims.check_claims(str(tmp_path / "claims.json"))
