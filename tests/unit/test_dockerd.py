"""The user's own Docker configuration gets gVisor's runtimes only where that is asked for."""

import json
import shutil
import subprocess
import sys

import projects
import pytest

# A daemon that answers, and knows the runtimes of its configuration once it was reloaded.
STUBS = {
    "docker": 'case $1 in version) exit 0 ;; info) cat "$FOLDER/known" ;; esac',
    "systemctl": 'echo "$*" >>"$FOLDER/notes"; cp "$FOLDER/daemon.json" "$FOLDER/known"',
    "sudo": 'shift; exec "$@"',
    "runsc": "exit 1",
}
TOOLS = (
    *("bash", "sh", "cat", "cp", "dirname", "mkdir", "mv"),
    *("grep", "id", "seq", "sleep", "tr", "env"),
)
OWN = {"data-root": "/big", "runtimes": {"youki": {"path": "youki"}}}


@pytest.fixture
def daemon(tmp_path):
    """Run the script with a service manager's daemon: gives its process and the manager's calls."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in TOOLS:
        (tools / name).symlink_to(shutil.which(name))
    (tools / "python3").symlink_to(sys.executable)
    for name, text in STUBS.items():
        (tools / name).write_text(f"#!/bin/bash\n{text}\n")
        (tools / name).chmod(0o755)
    (tmp_path / "p/scripts").mkdir(parents=True)
    for name in ("dockerd.sh", "daemons.sh"):
        text = (projects.ROOT / "scripts" / name).read_text()
        (tmp_path / "p/scripts" / name).write_text(text.replace("/run/", f"{tmp_path}/run/"))
        (tmp_path / "p/scripts" / name).chmod(0o755)
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    (tmp_path / "known").write_text('{"runc": {}}')
    (tmp_path / "notes").write_text("")

    def run(*words):
        path = str(tmp_path / "daemon.json")
        variables = {"PATH": str(tools), "FOLDER": str(tmp_path), "STRATA_DOCKER_CONFIG": path}
        script = [str(tmp_path / "p/scripts/dockerd.sh"), *words]
        done = subprocess.run(script, env=variables, capture_output=True, text=True, check=False)
        return done, (tmp_path / "notes").read_text().splitlines()

    return run


def test_a_configuration_of_the_users_own_is_changed_only_where_that_is_asked_for(daemon, tmp_path):
    path = tmp_path / "daemon.json"
    path.write_text(json.dumps(OWN))
    done, notes = daemon()
    assert done.returncode == 0, done.stderr
    assert notes == []
    assert f"'scripts/dockerd.sh runtimes' adds them to {path}" in done.stderr
    assert json.loads(path.read_text()) == OWN
    done, notes = daemon("runtimes")
    assert done.returncode == 0, done.stderr
    assert notes == ["reload docker"]
    found = json.loads(path.read_text())
    assert found["data-root"] == "/big"
    gvisor = [f"strata-runsc-{name}" for name in ("sandbox", "sandbox-gofer", "host", "host-gofer")]
    assert set(found["runtimes"]) == {"youki", *gvisor}
    arguments = found["runtimes"]["strata-runsc-host-gofer"]["runtimeArgs"]
    assert arguments == ["--network=host", "--directfs=false"]
    done, notes = daemon("runtime", "strata-runc-0a", "/bin/true", "--debug")
    assert (done.returncode, notes) == (0, ["reload docker"] * 2), done.stderr
    added = json.loads(path.read_text())["runtimes"]
    assert added["strata-runc-0a"] == {"path": "/bin/true", "runtimeArgs": ["--debug"]}
    assert set(added) == {*found["runtimes"], "strata-runc-0a"}
    done, _ = daemon("runtime", "strata-runc-0b", "/no/such/program")
    assert (done.returncode, "usage:" in done.stderr) == (1, True)
    # A daemon that knows the runtimes is not reloaded again.
    assert daemon()[1] == notes
