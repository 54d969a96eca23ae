"""What is kept of the Docker that a container runs in."""

import json
import os

import jsonschema
import projects
import pytest

from strata.host.context import Context
from strata.layers import docker
from strata.layers.docker import Docker

INFO = {
    "ServerVersion": "20.10.24+dfsg1",
    "Driver": "overlay2",
    "CgroupDriver": "cgroupfs",
    "ContainerdCommit": {"ID": "1.6.20~ds1", "Expected": ""},
    "RuncCommit": {"ID": "1.1.5+ds1", "Expected": ""},
}
WHOLE = {
    "engine": "20.10.24+dfsg1",
    "containerd": "1.6.20~ds1",
    "runc": "1.1.5+ds1",
    "storage_driver": "overlay2",
    "cgroup_driver": "cgroupfs",
}


class Below:
    """A layer that is there; what is run on it is noted."""

    def __init__(self, name="vm"):
        self.name = name

    data = "/data"

    def machine(self):
        return self

    def listen(self):
        return "192.0.2.1"


class Fake(Docker):
    """A container whose daemon answers with `info`; the commands that it took are kept."""

    def __init__(self, info, below="vm"):
        image = {"recipe": "a" * 64, "id": "sha256:b", "folder": "/nowhere"}
        super().__init__(Below(below), {"network": "bridge", "data": "volume"}, Context("strata-0", "/nowhere", image))
        self.info, self.commands = info, []
        self.up()

    def run_below(self, argv, timeout=120, check=True):
        self.commands.append(argv)
        return json.dumps(self.info) if argv[:2] == ["docker", "info"] else self.context.image["id"]


@pytest.mark.parametrize(
    ("info", "facts"),
    [
        (INFO, WHOLE),
        ({**INFO, "RuncCommit": {"ID": ""}}, {**WHOLE, "runc": "not available"}),
        ({"Driver": "overlay2"}, {**dict.fromkeys(WHOLE, "not available"), "storage_driver": "overlay2"}),
    ],
)
def test_versions_and_drivers_come_from_the_daemon_itself(info, facts):
    assert Fake(info).facts() == {"docker": facts}
    schema = json.loads((projects.ROOT / "schemas/record.schema.json").read_text())
    jsonschema.validate(facts, schema["properties"]["system"]["properties"]["docker"])


def test_the_hosts_daemon_is_asked_once_in_its_life(monkeypatch, tmp_path):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(docker, "start_daemon", lambda: None)
    monkeypatch.setattr(docker, "PID_FILE", str(tmp_path / "pid"))

    def asked():
        fake = Fake(INFO, below="host")
        assert fake.facts() == {"docker": WHOLE}
        return [argv[:2] for argv in fake.commands].count(["docker", "info"])

    # Nobody knows which daemon that is.
    assert [asked(), asked()] == [1, 1]
    (tmp_path / "pid").write_text(f"{os.getpid()}\n")
    assert [asked(), asked()] == [1, 0]
    # Another daemon, or a note that makes no sense.
    (tmp_path / "pid").write_text("1\n")
    assert [asked(), asked()] == [1, 0]
    for nonsense in ("[]", json.dumps({**json.loads((tmp_path / "docker.json").read_text()), "told": {}})):
        (tmp_path / "docker.json").write_text(nonsense)
        assert asked() == 1
    monkeypatch.setenv("DOCKER_HOST", "unix:///elsewhere")
    assert asked() == 1
