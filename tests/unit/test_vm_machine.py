"""What equal machines share and what each has for itself, without libvirt: its commands are only noted."""

import json
import os
import signal
import subprocess

import pytest
import tuned

from strata.host import capacity, observe
from strata.host.context import Context
from strata.util import validation
from strata.vm import acceleration, applied, hugepages, libvirt, machine, settings, vagrant_box

GIB = 2**30
TOPOLOGY = [{"cpu": number, "socket": 0, "core": number, "node": 0} for number in range(8)]


@pytest.fixture
def done(monkeypatch, tmp_path):
    """What was done to libvirt and the host, in order."""
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    noted = []

    def note(name, answer=None):
        def call(*arguments):
            noted.append((name, *arguments))
            return answer

        return call

    for name, answer in (("remove_domains", []), ("bring_up", "192.168.130.0/24")):
        monkeypatch.setattr(libvirt, name, note(name, answer))
    monkeypatch.setattr(libvirt, "start_daemon", lambda: None)
    monkeypatch.setattr(hugepages, "reserve", note("reserve"))
    facts = {"box": "b", "folder": str(tmp_path), "host_key": "ssh-ed25519 AAAA"}
    monkeypatch.setattr(vagrant_box, "require", lambda recipe: facts)
    monkeypatch.setattr(capacity, "topology", lambda: TOPOLOGY)
    monkeypatch.setattr(capacity, "facts", lambda: {"memory_bytes": 32 * GIB})
    return noted


def machines(tmp_path, of, **profile):
    """So many equal machines that nobody has brought up."""
    options = {
        "profile": "p",
        "fresh": "boot",
        "settings": settings.complete(profile, "tiny"),
        "accelerator": "tcg",
    }
    found = []
    for part in range(of):
        folder = tmp_path / f"strata-x-{part}"
        folder.mkdir()
        context = Context(
            folder.name,
            str(folder),
            {"recipe": "r"},
            part=part,
            of=of,
            first=str(tmp_path / "strata-x-0"),
        )
        found.append(machine.Machine(options, context, context.image))
    return found


def test_the_first_makes_what_all_share_and_none_removes_another(tmp_path, done):
    equal = machines(tmp_path, 3, pin=True, huge_pages=True)
    found = [one.prepare() for one in equal]
    assert done == [
        ("remove_domains",),
        ("bring_up", 3),
        ("reserve", equal[0]._resolved(), equal[0].context),
    ]
    assert [one["address"] for one in found] == [
        "192.168.130.10",
        "192.168.130.11",
        "192.168.130.12",
    ]
    assert [one["huge_pages"] for one in found] == [True] * 3
    for key in ("name", "mac", "data_disk", "console"):
        assert len({one[key] for one in found}) == 3
    assert len({one["subnet"] for one in found}) == 1
    assert sorted(cpu for one in found for cpu in one["affinity"].values()) == [
        "0",
        "1",
        "2",
        "3",
        "4",
        "5",
    ]
    assert 3 * found[0]["memory_mib"] * 2**20 <= settings.spare_memory(32 * GIB)


@pytest.mark.parametrize(("whose", "ended"), [("strata-x", -signal.SIGKILL), ("strata-xb", None)])
def test_a_domain_is_ended_at_once_and_nothing_but_its_own_process(
    monkeypatch, tmp_path, whose, ended
):
    listed = [["strata-x"], []]
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))
    monkeypatch.setattr(libvirt, "PROCESSES", str(tmp_path))
    monkeypatch.setattr(libvirt, "domains", lambda: listed.pop(0))
    monkeypatch.setattr(libvirt, "virsh", lambda *words, **more: "")
    ends_late = [
        "bash",
        "-c",
        "trap : TERM; echo up; read -r",
        "-name",
        f"guest={whose},debug-threads=on",
    ]
    with subprocess.Popen(ends_late, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()  # Its words can be read of it only a moment after it was started.
        (tmp_path / "strata-x.pid").write_text(f"{process.pid}\n")
        assert libvirt.remove_domains() == ["domain strata-x"]
        assert process.poll() == ended
        process.kill()


# What a guest's shell prints of its card, its nodes and its caches; and what one says that knows none.
SEEN = "8\n2\nL1 Data 32K\nL3 Unified 32768K\n"
BARE = "0\n0\n"


@pytest.mark.parametrize(
    ("fresh", "device"), [("boot", False), ("snapshot", False), ("snapshot", True)]
)
@pytest.mark.parametrize("seen", [SEEN, BARE], ids=["all-seen", "nothing-seen"])
@pytest.mark.parametrize("golden", ["kvm-default", "kvm-tuned"])
def test_what_is_told_of_a_machine_is_as_the_schema_of_records_says(
    done, tmp_path, monkeypatch, golden, seen, fresh, device
):
    """All but the machine is real: what is looked at is this host, this process, and a domain of libvirt's."""
    xml = tuned.golden(f"{golden}.xml")
    inside = "\n".join(
        f"==> {path} <==\n{text}\n" for path, text in observe.read_files(observe.FILES).items()
    )
    monkeypatch.setattr(
        applied.ssh,
        "run",
        lambda folder, argv, **more: seen if argv[0] == "sh" else inside * (seen != BARE),
    )
    monkeypatch.setattr(
        libvirt, "virsh", lambda *words, **more: xml if words[0] == "dumpxml" else ""
    )
    monkeypatch.setattr(libvirt, "process", lambda name: os.getpid())
    monkeypatch.setattr(acceleration, "known", lambda: {"accelerator_reason": "it was tried"})
    booted = {"boot_seconds": 12.5, "attempts": 1}
    monkeypatch.setattr(
        machine.Machine, "_boot", lambda self, wanted: setattr(self, "booted", booted)
    )
    monkeypatch.setattr(machine.Machine, "_see_snapshot", lambda self, wanted, owner: "k")
    monkeypatch.setattr(machine.Machine, "_restore", lambda self, name, owner: 2.5)
    monkeypatch.setattr(machine.run, "owner", lambda: {"pid": 1, "start": "1"})
    (one,) = machines(tmp_path, 1, **(tuned.PROFILE if golden == "kvm-tuned" else {}))
    one.options |= {"fresh": fresh, "accelerator": "kvm"}
    if device:
        monkeypatch.setattr(machine.passthrough, "complaint", lambda address, accelerator: None)
    told = json.loads(json.dumps(one.up()))
    layout = validation.schema("record").evolve(schema={"$ref": "record.schema.json#/$defs/vm"})
    assert validation.findings(layout, told) == []
    assert len(told["settings"]) == (14 if golden == "kvm-tuned" else 2)
    # What a device holds cannot be saved.
    assert told["started"] == ("boot" if device and golden == "kvm-tuned" else fresh)
