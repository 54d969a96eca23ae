"""Containers by Podman, of a small image: they stand where Docker's do, and leave nothing.

With the real image they are among the environments of test_environments.py (`make test-long`).
"""

import json
import os
import shutil
import subprocess
import sys
import time

import leftovers
import pytest
import small_image

from strata.environments import podman
from strata.host import capacity, cgroups
from strata.testbed import lifecycle
from strata.util import locks, paths
from strata.util.errors import UserError

LAYER = podman.Layer
BRIDGE = {"network": "bridge", "data": "volume"}


def makes(runtime):
    resolved = LAYER.resolve_options({**BRIDGE, "network": "host", "runtime": runtime}, {})
    return not (
        LAYER.explain_unavailability()
        or LAYER.explain_refusal(resolved, "host", capacity.read_host_facts())
    )


RUNTIMES = list(filter(makes, podman.RUNTIMES))

pytestmark = pytest.mark.skipif(
    not (RUNTIMES and shutil.which("busybox")), reason="no Podman or no busybox is here"
)


@pytest.fixture
def image(home, tmp_path):
    return small_image.make(tmp_path / "image")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A cache of the test's own: containers and images of the machine are those of another home."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("STRATA_OWNER", raising=False)


@pytest.fixture
def up(home, machine_stays, image):
    """Bring a container up under the machine's lock.

    It, and all that Podman keeps, is gone afterwards.
    """

    def bring(whole=False, ports=(), **options):
        lifecycle.take_down_systems()
        system = lifecycle.System("podman", stack_of(options), image, ports=ports)
        return system if whole else system.top

    with locks.hold_machine_lock():
        yield bring
        lifecycle.take_down_systems()
        assert LAYER.remove_systems() == []
        LAYER.remove_images([])
        ours = [
            "image",
            "ls",
            "--quiet",
            "--filter",
            f"label=strata.image={paths.compute_home_mark()}",
        ]
        assert leftovers.lines("podman", *ours) == set()


def stack_of(options):
    resolved = LAYER.resolve_options({**BRIDGE, "runtime": RUNTIMES[0], **options}, {})
    reason = LAYER.explain_refusal(resolved, "host", capacity.read_host_facts())
    if reason:
        pytest.skip(reason)
    return [{"podman": resolved}]


def inside(top, *argv):
    return subprocess.run(
        top.build_measured_command(list(argv)), capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_it_stands_where_dockers_containers_stand_and_can_what_they_can(up, runtime, tmp_path):
    system = up(whole=True, ports=[28611], runtime=runtime)
    top = system.top
    # A rule lets packets to published ports in, and goes with the container.
    assert [
        rule for rule in leftovers.rules() if "--ctstate DNAT" in rule and top.context.id in rule
    ]
    groups = [
        line.split(":", 2)[2]
        for line in open(f"/proc/{top.list_memory_processes()[-1]}/cgroup").read().splitlines()
    ]
    # A slice of systemd has a name without a path.
    parent = cgroups.get_parent_group(
        "systemd" if cgroups.is_managed_by_systemd() else "cgroupfs"
    ).strip("/")
    assert {
        os.path.dirname(group.removesuffix("/container")) for group in groups if group != "/"
    } == {f"/{parent}"}
    for kind in ("mnt", "net", "pid", "uts", "ipc"):
        assert inside(top, "readlink", f"/proc/self/ns/{kind}") != os.readlink(
            f"/proc/self/ns/{kind}"
        )
    assert inside(top, "id", "-u") == "0"
    assert top.get_listen_address().count(".") == 3
    holders = [
        open(f"/proc/{process}/comm").read().strip() for process in top.list_memory_processes()
    ]
    assert "conmon" in holders
    # A file of this size is written in many pieces.
    content = os.urandom(3_000_000)
    (tmp_path / "in").write_bytes(content)
    (tmp_path / "in").chmod(0o640)
    top.copy_file_in(str(tmp_path / "in"), "/data/file")
    assert inside(top, "sh", "-c", "ls -l /data/file | cut -c 1-10; wc -c </data/file").split() == [
        *["-rw-r-----", "3000000"]
    ]
    top.copy_file_out("/data/file", str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == content
    facts = system.facts["facts"]["container"]
    assert facts["program"] == "podman"
    network = facts["network"]
    assert (network["ports"], network["docker_proxy"]) == ("destination NAT", "none")
    assert network["rules"] > 0
    assert {facts[key] for key in ("users", "cgroup_version")} <= {"the host’s", "1", "2"}
    assert facts["backing_filesystem"] != "not available"
    assert facts["runtime"].startswith(runtime)
    assert "not available" not in facts.values()


def test_what_is_printed_in_it_arrives_whole_and_so_does_its_exit_code(up):
    top = up(network="host")
    for _ in range(3):
        done = subprocess.run(
            top.build_measured_command(["sh", "-c", "echo a; echo b >&2; exit 7"]),
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (7, b"a\n", b"b\n")
    assert inside(top, "readlink", "/proc/self/ns/net") == os.readlink("/proc/self/ns/net")


def test_what_it_may_do_is_what_was_asked_for(up):
    options = {
        "data": "tmpfs",
        "network": "host",
        "seccomp": "unconfined",
        "memory": "64MiB",
        "cpuset-cpus": "0-0",
    }
    system = up(whole=True, **options)
    seen = {
        setting["name"]: setting["observed"]
        for setting in system.facts["facts"]["container"]["settings"]
    }
    assert seen == {
        "data": "tmpfs",
        "seccomp": "unconfined",
        "cpuset-cpus": "0",
        "memory": str(64 * 2**20),
    }
    assert lifecycle.observe_system(system.top)[0]["processors"] == "0"


def test_the_next_cell_gets_a_fresh_one(up, image):
    top = up(data="layered")
    subprocess.run(
        top.build_measured_command(
            ["sh", "-c", "echo >/data/left; setsid sleep 300 >/dev/null 2>&1 &"]
        ),
        check=True,
    )
    fresh = up(data="layered")
    assert fresh.context.id != top.context.id
    assert inside(fresh, "sh", "-c", "ls /data") == ""


def test_an_image_that_is_another_is_refused_and_leaves_nothing(up, image):
    image["id"] = "sha256:" + "0" * 64
    with pytest.raises(UserError, match="0000"):
        up()


PROGRAM = """
import json, sys
from strata.testbed import lifecycle
image, stack = json.loads(sys.argv[1])
print(flush=True)
lifecycle.System("podman", stack, image)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    "seconds", [0.3, *(pytest.param(n / 50, marks=pytest.mark.long) for n in range(1, 50))]
)
def test_one_that_is_killed_while_it_comes_up_leaves_nothing(up, image, seconds):
    # The image is there, so that what is interrupted is the container.
    stack = stack_of({})
    up()
    lifecycle.take_down_systems()
    # The machine's lock is this test's, and it has nothing up.
    argv = [sys.executable, "-c", PROGRAM, json.dumps([image, stack])]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        time.sleep(seconds)
        process.kill()
    lifecycle.take_down_systems()
    assert leftovers.lines("pgrep", "-f", "conmon .*strata-") == set()
