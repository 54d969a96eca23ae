"""Claims, published ones and those of users: mistakes in their files are named by key."""

import json

import projects
import pytest
import yaml
from captured import LOGS

from strata.experiment import claims, config, workload
from strata.util.errors import UserError


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["format"], 1),
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
    claims.check_claims_file()
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
        claims.check_claims_file(str(tmp_path / "claims.json"))
    if len(path) > 2 and path[0] == "claims":
        assert inner["id"] in str(caught.value)
    (tmp_path / "claims.json").write_text("{,")
    with pytest.raises(UserError, match=r"claims\.json: .*line 1"):
        claims.check_claims_file(str(tmp_path / "claims.json"))


OWN = {
    "statement": "Docker is as fast.",
    "source": "a colleague",
    "environments": ["docker", "native"],
    "workload": "stream",
    "metric": "triad",
    "value": 1,
}
ENVIRONMENTS = {name: {"label": name} for name in ("native", "docker", "docker-hostnet")}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"statment": "x"}, "statment: unknown key; did you mean 'statement'"),
        ({"statement": None}, "statement: "),
        ({"source": ""}, "source: "),
        ({"workload": "streem"}, "workload: .*did you mean 'stream'"),
        ({"workload": ["stream"]}, "workload: "),
        ({"metric": "triads"}, "metric: .*did you mean 'triad'"),
        ({"metric": ["triad", "cpoy"]}, "metric.1: .*did you mean 'copy'"),
        ({"metric": []}, "metric: "),
        ({"environments": ["doker", "native"]}, "environments.0: .*did you mean 'docker'"),
        ({"environments": ["native"]}, "environments: .*at least 2"),
        ({"environments": ["native", "native"]}, "environments: "),
        ({"environments": "native"}, "environments: "),
        ({"value": "1 %"}, "value: "),
        ({"value": 0}, "value: "),
        ({"value": None}, "value: "),
        ({"low": 2, "high": 1}, "high: .*above low"),
        ({"low": 1.1}, "value: .*at least low"),
        ({"high": 0.9}, "value: .*at most high"),
        ({"factors": {}}, "factors: "),
        ({"factors": {"threads": [4]}}, "factors.threads: "),
        ({"sockets": 0}, "sockets: "),
        ({"performance": "yes, please"}, "performance: "),
        (("value",), "value, low or high"),
        (("metric",), "metric: missing"),
        ("just a text", "mapping"),
        ("a: [", "YAML"),
    ],
)
def test_mistakes_in_a_claim_of_ones_own_are_refused_by_key(checkout, tmp_path, changes, message):
    path = tmp_path / "mine.yaml"
    written = {**OWN, **(changes if isinstance(changes, dict) else {})}
    for key in changes if isinstance(changes, tuple) else ():
        del written[key]
    path.write_text(changes if isinstance(changes, str) else json.dumps(written))
    with pytest.raises(UserError, match=rf"mine\.yaml: .*{message}"):
        claims.read_claim(str(path), ENVIRONMENTS)


def test_a_claim_is_found_by_its_id_or_file(checkout, tmp_path):
    path = tmp_path / "my claim.yaml"
    path.write_text(json.dumps(OWN))
    own = claims.read_claim(str(path), ENVIRONMENTS)
    assert own["claims"][0]["tolerance"] == pytest.approx({"low": 0.98, "high": 1 / 0.98})
    # What is written for the analysis is good as a file of published claims.
    (tmp_path / "claims.json").write_text(json.dumps(own))
    claims.check_claims_file(str(tmp_path / "claims.json"))
    [entry] = claims.read_claim("ibm-stream-identical", ENVIRONMENTS)["claims"]
    assert entry["workload"] == "stream"
    with pytest.raises(UserError, match="did you mean ibm-stream-identical"):
        claims.read_claim("stream-identical", ENVIRONMENTS)
    with pytest.raises(UserError, match="there is no file"):
        claims.read_claim("missing.yaml", ENVIRONMENTS)
    path.rename(tmp_path / "ibm-stream-identical.yaml")
    with pytest.raises(UserError, match="rename"):
        claims.read_claim(str(tmp_path / "ibm-stream-identical.yaml"), ENVIRONMENTS)


def environment(**more):
    """Return an environment of a plan that is available, with some keys replaced."""
    return {"available": True, "reason": None, "emulated": False, **more}


@pytest.mark.parametrize(
    ("id", "changes", "chosen", "reason"),
    [
        ("ibm-pxz-docker-similar", {}, ["docker", "native"], ""),
        (
            "ibm-pxz-docker-similar",
            {"docker": environment(available=False, reason="no daemon")},
            [],
            "no daemon",
        ),
        ("ibm-pxz-docker-similar", {"docker": environment(otherwise="users")}, [], "daemon"),
        ("ibm-pxz-kvm-22pct", {"vm": environment(emulated=True)}, [], "emulated"),
        ("ibm-pxz-kvm-22pct", {}, [], "has no environment vm"),
        ("ibm-stream-identical", {}, ["docker", "native"], "vm"),
        ("ibm-linpack-kvm-untuned-worse", {"vm": environment()}, [], "2 sockets"),
        ("vmw-linpack-45k", {"vm": environment()}, ["vm", "native"], ""),
    ],
)
def test_what_tests_a_claim_here_or_why_nothing_does(checkout, id, changes, chosen, reason):
    environments = {name: environment() for name in ("native", "docker")} | changes
    plan = {"environments": environments, "machine": {"cpus": 4}, "scale": "standard"}
    published = claims.read_claim(id, ENVIRONMENTS)
    found, reasons = claims.choose_environments(published, plan, sockets=1)
    assert (found, reason in "".join(reasons)) == (chosen, True), reasons


def test_ids_are_those_of_one_claim_in_all_files(checkout):
    ids = [
        claim["id"]
        for path in claims.FILES
        for claim in json.loads((checkout / path).read_text())["claims"]
    ]
    assert len(ids) == len({*ids})


def read_today():
    """Return the content of the file of today's claims, and the configuration that tests them."""
    catalogue = json.loads((projects.ROOT / claims.FILES[1]).read_text())
    paths = [config.FILE, catalogue["configuration"]]
    base, over = (yaml.safe_load((projects.ROOT / path).read_text()) for path in paths)
    return catalogue, config.merge_mappings(base, over)


TODAY, SETTINGS = read_today()
STATEMENTS = [claim for claim in TODAY["claims"] if "pairs" in claim]


@pytest.mark.parametrize("claim", STATEMENTS, ids=lambda claim: claim["id"])
def test_each_statement_that_can_be_tested_is_measured_by_its_configuration(checkout, claim):
    load = claim["workload"]
    # gVisor's own network stack does not start on every kernel.
    names = {name for pair in claim["pairs"] for name in pair}
    assert load in SETTINGS["only"]["workloads"] or "gvisor_network" in names
    factors = dict(claim.get("factors", {}))
    for name in names:
        entry = TODAY["environments"][name]
        assert {*entry["measured_as"]} <= {*SETTINGS["environments"]}
        measured = entry["measured_as"][0]
        assert measured in [*SETTINGS["only"]["environments"], "docker-gvisor-sandbox"]
        assert load not in SETTINGS["leave_out"].get(measured, [])
        factors |= entry.get("factors", {})
    # A factor's value is one of a captured log, or of a parameter.
    captured = [value for log in LOGS if log.workload == load for value in log.values]
    # A small run may be too short for a metric.
    rows = [value for value in captured if value.metric in claim["metrics"]] or captured
    parameters = workload.read_declaration(load)["parameters"].values()
    given = [[one.get("standard", one.get("value")) for one in parameters]]
    given = json.dumps([given, SETTINGS["workloads"][load]])
    for name, value in factors.items():
        seen = {str(row.factors[name]) for row in rows if name in row.factors}
        assert seen, name
        assert str(value) in seen or str(value) in given
    # Whatever was published is tolerated.
    low, high = (claim["tolerance"][end] for end in ("low", "high"))
    published = claim.get("published", {}).get("value", low or high)
    assert (low or 0) <= published <= (high or published)
