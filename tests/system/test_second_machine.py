"""The client on a second machine, reached by ssh: all that a namespace does, done there."""

import json
import subprocess

import projects
import pytest
import second_machine
from test_servers import make_workload

from strata.client import remote


@pytest.fixture
def other(machine_stays, tmp_path):
    """An ssh configuration of a second machine; what is mounted there is gone at the end."""
    (tmp_path / "ssh").mkdir()
    with second_machine.second_machine(tmp_path / "ssh") as configuration:
        yield configuration
    mounted = [line.split()[4] for line in open("/proc/self/mountinfo") if remote.CACHE in line]
    assert mounted == []
    left = subprocess.run(
        ["find", f"{remote.CACHE}/systems", "-mindepth", "1"], capture_output=True, check=False
    )
    assert left.stdout == b""


DOCKER = {"docker": {"network": "bridge", "data": "volume"}}
MACHINES = {"vm-docker": {"layers": [{"vm": {"profile": "default", "fresh": "boot"}}, DOCKER]}}


def project(tmp_path, configuration, workload, environments=None, **more):
    client = {"ssh": "other", "ssh_config": str(configuration), **more}
    chosen = {"environments": environments} if environments else {}
    config = projects.default(workloads={"asking": None}, repetitions=1, client=client, **chosen)
    folder = projects.beside_real(tmp_path / "p", config, {"asking": workload})
    projects.image(folder)
    projects.plan(folder)
    return folder


@pytest.mark.parametrize(
    "environments",
    [
        pytest.param(None, id="on the host", marks=pytest.mark.long),
        pytest.param(MACHINES, id="in a machine", marks=pytest.mark.long),
    ],
)
def test_load_comes_from_the_second_machine(image, other, tmp_path, environments):
    # Everything that the second machine sends goes over its cable, even to a machine's own address:
    # nothing is translated.
    folder = project(tmp_path, other, make_workload(), environments, rate="1gbit")
    for environment in environments or ("native", "docker"):
        projects.good(folder, "strata", "cell", environment, "asking", "1", timeout=900)
        raw = folder / "results/raw" / environment / "asking"
        log = (raw / "1.log").read_text()
        assert f"seen from {second_machine.OTHER}" in log
        (password,) = {line for line in log.splitlines() if line.startswith("password")}
        assert password.startswith("password 600 33 ")
        record = json.loads((raw / "1.json").read_text())
        assert record["observed"]["client"]["link"]["kind"] == "network of a second machine"
        assert record["observed"]["client"]["link"]["rate"] == "1gbit"
        assert record["observed"]["client"]["versions"] == record["observed"]["inside"]["versions"]


def test_a_killed_cell_leaves_nothing_on_the_second_machine(image, other, tmp_path):
    slow = make_workload(run=[{"argv": ["/bin/sleep", "301"], "at": "client", "timeout": 400}])
    folder = project(tmp_path, other, slow)
    cell = projects.start(
        folder, "strata", "cell", "native", "asking", "1", output=subprocess.DEVNULL
    )
    sleeping = ["pgrep", "-f", "^/bin/sleep 301"]
    projects.until(
        lambda: subprocess.run(sleeping, capture_output=True, check=False).returncode == 0
    )
    cell.kill()
    cell.wait()
    projects.good(folder, "strata", "clean")
    assert subprocess.run(sleeping, capture_output=True, check=False).returncode == 1


def test_a_machine_that_does_not_answer_is_named(image, other, tmp_path):
    folder = project(tmp_path, other, make_workload())
    page = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(page.replace("ssh: other", "ssh: nobody@127.0.0.1"))
    projects.plan(folder)
    done = projects.run(folder, "strata", "cell", "native", "asking", "1", timeout=120)
    assert done.returncode == 1
    assert "config.yaml: client.ssh: cannot log in to nobody@127.0.0.1" in done.stderr
    assert "Traceback" not in done.stderr
