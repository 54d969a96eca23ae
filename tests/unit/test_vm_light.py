"""Light machines without QEMU: its command, what is read of it, what it cannot have, and what it boots."""

import json
import lzma
import os
import socket
import subprocess
import threading

import projects
import pytest
import tuned

from strata import layers
from strata.base.errors import UserError
from strata.experiment import config
from strata.host import cgroups
from strata.host import topology as host
from strata.host.context import Context
from strata.image import build
from strata.image import light as image
from strata.layers import microvm
from strata.vm import acceleration, disk, libvirt, light, machine, settings


@pytest.fixture
def made(monkeypatch, tmp_path):
    """A light machine of a profile, on a host of two sockets, with a disk that nobody has made: function of both."""
    monkeypatch.setenv("STRATA_HOME", "/home/of, strata")
    facts = {
        "box": "vm-light",
        "built": "today",
        "folder": "/images/r/vm-light",
        "host_keys": ["ssh-ed25519 AAAA"],
        "bytes": 1,
        "kernel": "6.12",
        "arguments": {"kvm": "quiet", "tcg": "quiet tsc=reliable"},
        "volume": {"path": "/images/r/vm-light/root.qcow2"},
    }
    monkeypatch.setattr(disk, "require", lambda recipe, which: {"light": facts}[which])
    monkeypatch.setattr(host, "topology", lambda: tuned.TWO_SOCKETS)
    monkeypatch.setattr(machine.this_host, "memory_size", lambda: 64 * 2**30)

    def make(profile, accelerator, part=0, of=1):
        options = {
            "profile": "p",
            "settings": settings.complete(profile, "smoke"),
            "accelerator": accelerator,
            "qemu": "7.2",
        }
        context = Context("strata-x", "/systems/strata-x", {"recipe": "r"}, part=part, of=of)
        one = light.Light(options, context)
        wanted = one.settings(facts)
        wanted |= {"subnet": "192.168.130.0/24", "address": "192.168.130.10", "host": "192.168.130.1"}
        counter = 2_900_000 if accelerator == "tcg" else None
        return one, {**wanted, "mac": "52:54:00:00:00:01", "counter_khz": counter}

    return make


@pytest.mark.parametrize(
    ("name", "profile", "accelerator"),
    [("kvm-default", {}, "kvm"), ("kvm-tuned", tuned.PROFILE, "kvm"), ("tcg-tuned", tuned.PROFILE, "tcg")],
)
def test_qemus_command_is_as_it_was(made, name, profile, accelerator):
    one, wanted = made(profile, accelerator)
    argv = light.arguments(wanted, one.folder)
    text = " ".join(argv).replace(" -", "\n-").replace(libvirt.prefix(), "NAME").replace(light.tap(0), "CARD")
    tuned.compare(f"light-{name}.qemu", text.replace(wanted["key"], "KEY") + "\n")


def test_what_qemu_was_started_with_is_read_from_its_command(made):
    one, wanted = made(tuned.PROFILE, "kvm")
    told = light.read(light.arguments(wanted, one.folder))
    assert told["disks"] == [{"cache": "none", "io": "native", "iothread": "disks"}] * 2
    assert told["iothreads"] == 1
    assert told["caches"] == "passthrough"
    assert told["huge_pages"] == wanted["huge_pages"] is True
    plain = light.read(light.arguments(made({}, "tcg")[1], one.folder))
    assert plain["disks"] == [{"cache": None, "io": None, "iothread": None}] * 2
    assert (plain["iothreads"], plain["huge_pages"], plain["caches"]) == (0, False, None)


def test_what_a_light_machine_cannot_have_is_told(made):
    one, wanted = made(tuned.PROFILE, "tcg")
    assert one.refused == {
        "passthrough": "a light machine has no PCI bus",
        "iothread": "emulation does not offer it to devices without PCI",
    }
    assert not wanted["extra"]["iothread"]
    assert wanted["passthrough"] == []
    assert made(tuned.PROFILE, "kvm")[0].refused == {"passthrough": "a light machine has no PCI bus"}


@pytest.mark.parametrize("card", [None, {"address": "192.0.2.20/24"}])
def test_it_is_reached_over_the_hosts_bridge(made, monkeypatch, card):
    one, wanted = made({**tuned.PROFILE, "card": card} if card else tuned.PROFILE, "kvm")
    layer = microvm.Microvm(None, one.options, one.context)
    monkeypatch.setattr(layer, "_wanted", lambda: wanted)
    assert (layer.bridge(), layer.card()) == (libvirt.bridge(), None)
    assert ("card" in one.refused) == bool(card)


def test_several_have_cards_processors_and_disks_of_their_own(made):
    found = [made({"pin": True}, "kvm", part, 2)[1] for part in range(2)]
    for key in ("name", "tap", "data_disk", "console"):
        assert found[0][key] != found[1][key]
    assert all(len(one["tap"]) <= 15 for one in found)
    pins = [set(one["affinity"].values()) for one in found]
    assert pins[0].isdisjoint(pins[1])


def test_the_rate_of_the_counter_is_that_of_a_processor():
    found = [light.counter_khz(0.02) for _ in range(2)]
    assert 100_000 < found[0] < 10_000_000
    assert found[0] == pytest.approx(found[1], rel=0.01)


def test_threads_are_put_where_they_belong(tmp_path):
    name = "import ctypes, time; ctypes.CDLL(None).prctl(15, b'CPU 0/TCG'); print(flush=True); time.sleep(60)"
    process = subprocess.Popen(["python3", "-c", name], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        cpu = str(min(os.sched_getaffinity(0)))
        light.pin(process.pid, {"0": cpu}, None)
        assert os.sched_getaffinity(process.pid) == {int(cpu)}
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("said", "answers"), [(b"SSH-2.0-OpenSSH", True), (b"HTTP", False), (b"", False)])
def test_a_machine_answers_once_its_ssh_says_so(monkeypatch, said, answers):
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = socket.create_connection
        at = server.getsockname()
        monkeypatch.setattr(light.socket, "create_connection", lambda address, timeout: connect(at, timeout=timeout))

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.sendall(said)

        thread = threading.Thread(target=serve)
        thread.start()
        assert light.answers("192.0.2.1") is answers
        thread.join()


def test_nobody_answers_where_nobody_is():
    assert not light.answers("127.0.0.1", patience=0.2)


def test_a_machine_whose_qemu_ends_or_that_panics_is_not_waited_for(made, monkeypatch, tmp_path):
    one, wanted = made({}, "tcg")
    monkeypatch.setattr(light, "answers", lambda address: False)
    with pytest.raises(UserError, match="QEMU ended"):
        one._wait(wanted, 2**22 + 1)
    console = tmp_path / "console"
    console.write_text("[    1.0] Kernel panic - not syncing: Attempted to kill init!\n")
    moments = iter(range(0, 100, 3))
    monkeypatch.setattr(light.time, "monotonic", lambda: next(moments))
    with pytest.raises(UserError, match="the guest's kernel panicked"):
        one._wait({**wanted, "console": str(console)}, os.getpid())
    console.write_text("")
    monkeypatch.setattr(light.time, "monotonic", iter([0, 10**6]).__next__)
    with pytest.raises(UserError, match="no ssh answered within 480 s"):
        one._wait({**wanted, "console": str(console)}, os.getpid())


def test_a_failed_boot_is_ended_before_the_next_attempt(made, monkeypatch):
    one, wanted = made({}, "tcg")
    steps = []
    for where, name in ((machine, "make_data_disk"), (machine, "forget_vagrant"), (machine, "write_json")):
        monkeypatch.setattr(where, name, lambda *words: None)
    monkeypatch.setattr(machine.os, "makedirs", lambda *words, **more: None)
    monkeypatch.setattr(machine, "_keep_console", lambda *words: "no console")
    monkeypatch.setattr(cgroups, "remove", lambda id: steps.append(f"end {id}"))
    monkeypatch.setattr(libvirt, "remove_domains", lambda name: steps.append("disks"))

    def start(self, wanted):
        steps.append("start")
        raise UserError("QEMU ended")

    monkeypatch.setattr(light.Light, "_start", start)
    with pytest.raises(UserError, match="did not boot in 3 attempts: QEMU ended"):
        one._boot(wanted)
    assert steps == ["start", "end strata-x", "disks"] * 3


def test_what_is_noted_of_it_ends_qemu_before_what_it_stands_on(monkeypatch):
    traces = []
    layer = layers.build([{"microvm": {}}], Context("strata-x", "/systems/strata-x", None, note=traces.append))[-1]
    monkeypatch.setattr(light.Light, "up", lambda self: {"attempts": 1})
    layer.up()
    assert [trace["kind"] for trace in reversed(traces)] == ["group", "machine"]
    assert layer.facts() == {"vm": {"attempts": 1}}
    assert layer.machine() is layer


def test_modules_are_loaded_after_those_that_they_need():
    dependencies = (
        "kernel/net/net_failover.ko.xz: kernel/net/failover.ko.xz\n"
        "kernel/net/virtio_net.ko.xz: kernel/net/net_failover.ko.xz kernel/net/failover.ko.xz\n"
        "kernel/net/failover.ko.xz:\nkernel/block/virtio-blk.ko.xz:\n"
    )
    assert image.order(dependencies, ["virtio_blk", "virtio_net", "ext4"]) == [
        "kernel/block/virtio-blk.ko.xz",
        "kernel/net/failover.ko.xz",
        "kernel/net/net_failover.ko.xz",
        "kernel/net/virtio_net.ko.xz",
    ]


def test_a_module_is_unpacked_and_one_that_cannot_be_is_named(tmp_path):
    (tmp_path / "a.ko.xz").write_bytes(lzma.compress(b"code"))
    image._unpacked(str(tmp_path / "a.ko.xz"), str(tmp_path / "a"))
    assert (tmp_path / "a").read_bytes() == b"code"
    with pytest.raises(UserError, match=r"b\.ko\.odd is packed in a way that is not known here"):
        image._unpacked(str(tmp_path / "b.ko.odd"), str(tmp_path / "b"))


def test_its_disk_is_made_where_it_is_wanted_and_only_there(monkeypatch, tmp_path):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))
    made = []
    monkeypatch.setattr(build.recipe, "describe", lambda config: {"recipe": "r"})
    monkeypatch.setattr(build.machine, "probe", lambda config: {"accelerator": "tcg"})
    monkeypatch.setattr(build, "require", lambda name: {"recipe": name})
    for name in ("machine", "light"):
        monkeypatch.setattr(getattr(build, name), "ensure", lambda *words, name=name: made.append((name, words[2])))
    assert not build.ensure_machines({}, {"tree", "container"})
    assert made == []
    assert build.ensure_machines({}, layers.forms(["microvm"]))
    assert made == [("light", "tcg")]
    assert build.ensure_machines({}, layers.forms(["vm", "docker"]))
    assert made[1:] == [("machine", "tcg")]


def plan_of(monkeypatch, folder, qemu, accelerator="tcg"):
    """The plan's entry of a light machine, with a QEMU of this version."""
    page = projects.on_host(
        environments={
            "bare": {"layers": ["host"]},
            "light": {"label": "{vm}, light", "layers": [{"microvm": {"profile": "small"}}]},
        },
        vm={"profiles": {"small": {"memory": "512MiB"}}},
        workloads={"pxz": None},
    )
    monkeypatch.chdir(projects.make(folder, page))
    monkeypatch.setattr(microvm.Microvm, "unavailable", classmethod(lambda cls: None))
    monkeypatch.setattr(microvm, "version", lambda: qemu)
    found = {"accelerator": accelerator, "accelerator_reason": "it was tried"}
    monkeypatch.setattr(acceleration, "known", lambda: found)
    facts = {"cpus": 2, "memory_bytes": 4 * 2**30, "cache_bytes": 2**20, "arithmetic": None}
    return config.experiment(config.read(), facts)["environments"]["light"]


def test_emulation_is_told_of_it_as_of_a_full_machine(monkeypatch, tmp_path):
    entry = plan_of(monkeypatch, tmp_path / "a", "7.2.22")
    assert entry["available"]
    assert entry["emulated"]
    assert entry["label"] == "VM (TCG emulation), light"
    assert [layer["kind"] for layer in entry["told"]] == ["machine"]
    assert not plan_of(monkeypatch, tmp_path / "b", "7.2.22", "kvm")["emulated"]


def test_its_cells_are_measured_again_with_another_qemu_or_profile(monkeypatch, tmp_path):
    entry = plan_of(monkeypatch, tmp_path / "a", "7.2.22")
    ((name, options),) = entry["layers"][0].items()
    assert (name, options["qemu"], options["settings"]["memory"]) == ("microvm", "7.2.22", "512MiB")
    assert "fresh" not in options
    assert plan_of(monkeypatch, tmp_path / "b", "10.0.2")["layers"] != entry["layers"]


def test_a_qemu_without_such_machines_is_told(monkeypatch, tmp_path):
    entry = plan_of(monkeypatch, tmp_path / "p", None)
    assert not entry["available"]
    assert "no machine of the type microvm" in entry["reason"]


def test_its_memory_must_be_there_and_its_profile_be_known(monkeypatch, tmp_path):
    plan_of(monkeypatch, tmp_path / "p", "7.2.22")
    with pytest.raises(UserError, match=r"vm\.profiles\.small\.memory: is 8GiB; this machine has 4\.0 GiB"):
        config.experiment(
            config.read({"vm": {"profiles": {"small": {"memory": "8GiB"}}}}),
            {"cpus": 2, "memory_bytes": 4 * 2**30, "cache_bytes": 2**20, "arithmetic": None},
        )
    over = {"environments": {"light": {"layers": [{"microvm": {"profile": "smal"}}]}}}
    with pytest.raises(UserError, match=r"environments\.light\.layers\.0\.microvm\.profile: 'smal' is no profile"):
        config.read(over)
    over["environments"]["light"]["layers"][0] = {"microvm": {"fresh": "snapshot"}}
    with pytest.raises(UserError, match=r"environments\.light\.layers\.0\.microvm\.fresh"):
        config.read(json.loads(json.dumps(over)))
