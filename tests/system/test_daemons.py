"""Docker daemons whose configuration makes another environment: plan, record and doctor say it."""

import glob
import json
import os
import shutil
import subprocess
import sys

import pytest
import second_daemon
import small_image

from strata.util import locks

pytestmark = pytest.mark.skipif(
    not (shutil.which("busybox") and shutil.which("dockerd")), reason="no busybox or dockerd"
)

STACKS = {
    "docker": {"network": "bridge", "data": "volume"},
    "docker-hostnet": {"network": "host", "data": "volume"},
    "docker-layered": {"network": "bridge", "data": "layered"},
}
# Plans environments with this daemon; brings them up as planned, or by their own options.
SCRIPT = """
import json, sys
from strata.util.errors import UserError
from strata.experiment import config, planning
from strata.host import capacity
from strata.testbed import lifecycle

stacks, image, ports, usual = json.loads(sys.argv[1])
page = {"only": {"environments": list(stacks), "workloads": ["stream"]}, "scale": "tiny"}
page["environments"] = {}
for name, options in stacks.items():
    page["environments"][name] = {"label": name.title(), "layers": [{"docker": options}]}
try:
    planned = planning.build_plan(config.read_config(page), \
capacity.read_host_facts())["environments"]
except UserError as error:
    sys.exit(f"no plan: {error}")
found = {"plan": planned, "record": {}}
for name, entry in planned.items():
    layers = [{"docker": stacks[name]}] if usual else entry["layers"]
    if entry["available"] or usual:
        try:
            known = lifecycle.System(name, layers, image, ports=ports).facts["facts"]["docker"]
            found["record"][name] = known.get("network", {}) | {"users": known["users"]}
        except UserError as error:
            found["record"][name] = str(error)
        lifecycle.take_down_systems()
print(json.dumps(found))
"""
NAT = {
    "ports": "destination NAT",
    "docker_proxy": "runs",
    "users": "the host’s",
    "bridge": "docker0",
    "mtu": "1500",
}
PROXY = {**NAT, "ports": "docker-proxy alone"}
OFF = ["--iptables=false", "--ip6tables=false"]
MAPPED = "the Docker daemon maps users"
# Options of the daemon; for each environment the ending of its label or the reason of its refusal,
# and values of its record; a text of the doctor.
ROWS = {
    "usual": ([], ["", "", ""], [NAT, {"users": "the host’s"}, NAT], "version"),
    "no proxy": (
        ["--userland-proxy=false"],
        ["", "", ""],
        [{**NAT, "docker_proxy": "none"}, {"users": "the host’s"}, {**NAT, "docker_proxy": "none"}],
        "version",
    ),
    "no rules": (
        OFF,
        ["(user-land proxy)", "", "(user-land proxy)"],
        [PROXY, {"users": "the host’s"}, PROXY],
        "other than usual: user-land proxy",
    ),
    "neither": ([*OFF, "--userland-proxy=false"], ["(user-land proxy)", "", "(user-land proxy)"], [
        "switch one on", {"users": "the host’s"}, "switch one on",
    ], "other than usual: user-land proxy"),
    "mapped": (
        ["--userns-remap=nobody:nogroup"],
        [f"{MAPPED} (userns-remap)", f"{MAPPED} (userns-remap)", "(users remapped)"],
        [None, None, {**NAT, "users": "remapped"}],
        "other than usual: users remapped",
    ),
    "own profile": (
        [f"--seccomp-profile={second_daemon.PROFILE}"],
        ["(seccomp profile of its own)"] * 3,
        [NAT, {"users": "the host’s"}, NAT],
        "other than usual: seccomp profile of its own",
    ),
}  # fmt: skip


@pytest.fixture
def bring_up(tmp_path, monkeypatch, machine_stays):
    """Plan, and bring up each environment under the machine's lock, with the second daemon."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("STRATA_OWNER", raising=False)
    image = small_image.make(tmp_path / "image")

    def go(usual=False, ports=(28643,)):
        argv = json.dumps([STACKS, image, ports, usual])
        done = second_daemon.run("env", "-C", os.getcwd(), sys.executable, "-c", SCRIPT, argv)
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)

    with locks.hold_machine_lock():
        yield go
        second_daemon.end()


# The daemons that change a label or refuse an environment.
IN_EVERY_RUN = {"no rules", "mapped"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name not in IN_EVERY_RUN)) for name in ROWS],
)
def test_what_a_daemon_makes_of_an_environment_is_said_or_refused(bring_up, name):
    options, planned, recorded, doctors = ROWS[name]
    with second_daemon.up(*options):
        outcome = bring_up()
        doctor = second_daemon.strata(".", "doctor").stdout
    for (environment, entry), plan, record in zip(
        outcome["plan"].items(), planned, recorded, strict=True
    ):
        assert entry["available"] == (record is not None), (environment, entry)
        text = entry["reason"] or entry["label"]
        assert (
            text.startswith(plan)
            if record is None
            else text == f"{environment.title()} {plan}".strip()
        )
        proxied = "user-land proxy" in plan
        assert entry["descriptions"][0]["network"] == (
            "its host’s"
            if environment == "docker-hostnet"
            else "bridge, user-land proxy"
            if proxied
            else "bridge with NAT"
        )
        # Another environment has cells of its own.
        assert ("daemon" in entry["layers"][0]["docker"]) == ("(" in plan)
        facts = outcome["record"].get(environment)
        if isinstance(record, dict):
            assert {key: facts[key] for key in record} == record, (environment, facts)
        else:
            assert record is None or record in facts
    [line] = [line for line in doctor.splitlines() if line.split()[:1] == ["Docker"]]
    assert doctors in line
    assert ("other than usual" in line) == ("other than usual" in doctors)


def test_a_daemon_that_is_not_as_planned_is_refused_as_a_container_comes_up(bring_up):
    with second_daemon.up(*OFF):
        for ports, message in (
            ([28643], "reached by docker-proxy alone"),
            ([], "now: user-land proxy; planned: as usual"),
        ):
            outcomes = bring_up(usual=True, ports=ports)["record"]
            for name in ("docker", "docker-layered"):
                assert message in outcomes[name]
                assert "run again, and the plan is made again" in outcomes[name]
            assert outcomes["docker-hostnet"] == {"users": "the host’s"}


# Plans the environments of a page; brings them all up at the same time, and prints which daemon
# runs which container and how its ports are reached.
AT_ONCE = """
import json, subprocess, sys
from strata.environments import docker
from strata.environments.common import docker_daemon
from strata.experiment import config, planning
from strata.host import capacity
from strata.testbed import lifecycle

stacks, image, is_up = json.loads(sys.argv[1])
page = {"only": {"environments": list(stacks), "workloads": ["stream"]}, "scale": "tiny"}
page["environments"] = {
    name: {"label": name.title(), "layers": [{"docker": options}]}
    for name, options in stacks.items()
}
planned = planning.build_plan(config.read_config(page), capacity.read_host_facts())["environments"]
outcome = {"reasons": [entry["reason"] for entry in planned.values()], "systems": []}
if is_up:
    for number, (name, entry) in enumerate(planned.items()):
        system = lifecycle.System(name, entry["layers"], image, ports=[28643 + 100 * number])
        socket = docker_daemon.find_second_socket(entry["layers"][0]["docker"])
        argv = [*docker_daemon.build_client_command(socket), "ps", "--format", "{{.Names}}"]
        names = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
        facts = system.facts["facts"]["docker"]["network"]
        outcome["systems"].append([system.top.context.id in names, len(names), facts["ports"]])
    lifecycle.take_down_systems()
    outcome["left"] = [
        subprocess.run([*tool, "ps", "-aq"], capture_output=True, text=True).stdout
        for tool in docker.Layer.list_host_commands()
    ]
print(json.dumps(outcome))
"""


def test_a_second_daemon_runs_containers_beside_those_of_the_usual_one(
    tmp_path, monkeypatch, machine_stays
):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("STRATA_OWNER", raising=False)
    image = small_image.make(tmp_path / "image")
    program = str(shutil.copy(shutil.which("dockerd"), tmp_path / "dockerd"))
    stacks = {"docker": STACKS["docker"], "second": {**STACKS["docker"], "dockerd": program}}

    def bring_up(is_up):
        argv = [sys.executable, "-c", AT_ONCE, json.dumps([stacks, image, is_up])]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)

    with locks.hold_machine_lock():
        try:
            assert f"scripts/dockerd.sh second {program}" in bring_up(False)["reasons"][1]
            for _ in range(2):
                subprocess.run(["scripts/dockerd.sh", "second", program], check=True)
            outcome = bring_up(True)
            assert outcome["reasons"] == [None, None]
            assert outcome["systems"] == [[True, 1, "destination NAT"]] * 2
            assert not any(outcome["left"])
        finally:
            # A program that was rebuilt meanwhile is found by its path.
            os.replace(shutil.copy("/bin/true", tmp_path / "rebuilt"), program)
            subprocess.run(["scripts/dockerd.sh", "end", program], check=True)
    assert not glob.glob("/run/strata-dockerd-*")
    assert f"scripts/dockerd.sh second {program}" in bring_up(False)["reasons"][1]
