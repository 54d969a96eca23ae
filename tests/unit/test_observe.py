"""Facts from the kernel's files on machines of several kinds."""

import shutil
import subprocess
import time

import pytest
import seen

from strata.host import node, observe

CPUINFO = "\n\n".join(
    f"processor\t: {cpu}\nmodel name\t: Some CPU @ 2.40GHz\nmicrocode\t: 0x1a\n"
    f"physical id\t: {cpu // 4}\nsiblings\t: 4\ncpu cores\t: 2\nflags\t\t: fpu vme sse2"
    for cpu in range(8)
)
FILES = {
    "/proc/version": "Linux version 6.1.0-21-amd64 (build) #1 SMP",
    "/etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 13 (trixie)"',
    "/proc/cpuinfo": CPUINFO,
    "/proc/meminfo": "MemTotal:       16384 kB\nSwapTotal:       100 kB\nSwapFree:       60 kB",
    "/proc/self/cgroup": "2:cpu:/strata/abc\n1:name=systemd:/strata/abc\n0::/strata/abc",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "/opt/strata/packages": "libc6 2.41-12\nxz-utils 5.8.1-1",
}
FACTS = {
    "kernel": "6.1.0-21-amd64",
    "os": "Debian GNU/Linux 13 (trixie)",
    "cpu_model": "Some CPU @ 2.40GHz",
    "cpus": 8,
    "sockets": 2,
    "cores_per_socket": 2,
    "threads_per_core": 2,
    "memory_bytes": 16384 * 1024,
    "huge_pages": "madvise",
    "cgroup": "/strata/abc",
    "virtualization": "none seen",
    "versions": {"libc6": "2.41-12", "xz-utils": "5.8.1-1"},
}


def test_facts_are_read_from_the_kernels_files_and_never_invented():
    assert FACTS.items() <= observe.parse_system_facts(FILES).items()
    assert set(observe.parse_system_facts({}).values()) == {"not available"}


# /proc/cpuinfo of other processors, shortened.
ARM = "\n\n".join(
    f"processor\t: {cpu}\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd evtstrm crc32 cpuid\n"
    "CPU implementer\t: 0x41"
    for cpu in range(4)
)
RISCV = "\n\n".join(
    f"processor\t: {cpu}\nhart\t\t: {cpu}\nisa\t\t: rv64imafdc\nmmu\t\t: sv39" for cpu in range(2)
)
S390 = """vendor_id       : IBM/S390
# processors    : 3
bogomips per cpu: 3033.00
processor 0: version = 00,  identification = 0133E8,  machine = 2964
processor 1: version = 00,  identification = 0133E8,  machine = 2964
processor 2: version = 00,  identification = 0133E8,  machine = 2964

cpu number      : 0
cpu MHz dynamic : 5000"""


@pytest.mark.parametrize(
    ("cpuinfo", "allowed", "cpus", "virtualization"),
    [
        (CPUINFO, "0-7", 8, "none seen"),
        (CPUINFO, "1,4-5", 3, "none seen"),
        # Processors that could be plugged in are allowed, too.
        (CPUINFO, "0-127", 8, "none seen"),
        (CPUINFO.replace("vme", "hypervisor"), "0-7", 8, "guest of a hypervisor"),
        (ARM, "0-3", 4, "not available"),
        (ARM, "", 4, "not available"),
        (RISCV, "1", 1, "not available"),
        (S390, "0-2", 3, "not available"),
        ("", "0-3", "not available", "not available"),
    ],
)
def test_processors_are_those_that_may_be_used(cpuinfo, allowed, cpus, virtualization):
    status = f"Name:\ttail\nCpus_allowed:\tff\nCpus_allowed_list:\t{allowed}"
    facts = observe.parse_system_facts({"/proc/cpuinfo": cpuinfo, "/proc/self/status": status})
    assert (facts["cpus"], facts["virtualization"]) == (cpus, virtualization)


def test_times_are_those_of_the_processors_that_measurements_use(monkeypatch):
    lines = [
        "cpu  9 9 9 9",
        "cpu0 1 2 3 4 5 6 7 8 0 0",
        "cpu1 10 20 30 40 50 60 70 80 0 0",
        "cpu3 100 200 300",
    ]
    seen.Host({"/proc/stat": "\n".join([*lines, "intr 5 5"])}).put(monkeypatch.setattr)
    assert observe.read_cpu_times({1}) == (10, 20, 30, 40, 50, 60, 70, 80, 0, 0)
    assert observe.read_cpu_times({0, 1})[:4] == (11, 22, 33, 44)
    assert observe.read_cpu_times({1, 2}) == observe.read_cpu_times({1})
    assert observe.read_cpu_times({7}) == (9, 9, 9, 9)
    assert observe.read_cpu_times({3}) == (100, 200, 300)


def test_shares_are_of_all_ticks_and_not_invented_without_one():
    before = (100, 0, 0, 900, 0, 0, 0, 0, 50, 0)
    after = (130, 0, 10, 950, 0, 0, 0, 10, 70, 0)
    assert observe.compute_cpu_time_shares(before, after) == {"steal_share": 0.1, "busy_share": 0.4}
    assert observe.compute_cpu_time_shares(before, before) == {
        "steal_share": "not available",
        "busy_share": "not available",
    }
    assert observe.compute_cpu_time_shares(before[:7], after[:7]) == {
        "steal_share": "not available",
        "busy_share": 0.44444,
    }
    assert set(observe.compute_cpu_time_shares(before[:3], after[:3]).values()) == {"not available"}
    # A counter that goes back has not run.
    assert (
        observe.compute_cpu_time_shares((100, 0, 0, 900, 70), (150, 0, 0, 950, 60))["busy_share"]
        == 0.5
    )


def test_this_host_can_be_observed():
    facts = observe.observe_host({0})
    assert facts["cpus"] >= 1
    assert facts["memory_bytes"] > 2**28
    assert isinstance(observe.observe_current_load({0})["load1"], float)


def test_a_machine_is_known_by_a_mark_and_dockers_daemon_by_its_start(tmp_path, monkeypatch):
    """The mark follows from installation, name and processors, and none can be read in it."""
    for name in ("INSTALLATION", "DOCKER", "PROCESSORS"):
        monkeypatch.setattr(node, name, str(tmp_path / name))
    facts = []
    for installation, slurm, model in (
        ("0a" * 16, "one", "EPYC"),
        ("0b" * 16, "one", "EPYC"),
        ("0a" * 16, "two", "EPYC"),
        # The disk was moved to, or cloned on, other hardware.
        ("0a" * 16, "one", "Xeon"),
    ):
        (tmp_path / "INSTALLATION").write_text(f"{installation}\n")
        processors = f"processor\t: 0\nmodel name\t: {model}\n"
        (tmp_path / "PROCESSORS").write_text(processors)
        monkeypatch.setenv(node.SLURM, slurm)
        facts += [node.identify_node(), node.identify_node()]
        assert installation not in str(facts[-1])
        (tmp_path / "PROCESSORS").write_text(f"{processors}cpu MHz\t\t: 2100.000\n")
        assert node.identify_node() == facts[-1]
    assert len({fact["machine"] for fact in facts}) == 4
    assert facts[0] == facts[1]
    assert facts[0]["docker"] is None
    daemon = shutil.copy(shutil.which("sleep"), tmp_path / "dockerd")
    starts = []
    for _ in range(2):
        with subprocess.Popen([daemon, "60"]) as process:
            (tmp_path / "DOCKER").write_text(str(process.pid))
            starts.append(node.read_docker_start())
            process.kill()
            # Longer than a tick, by which starts are told apart.
            time.sleep(0.03)
        # A file of a daemon that is gone says nothing.
        assert node.read_docker_start() is None
    (tmp_path / "DOCKER").write_text("1")
    assert node.read_docker_start() is None
    assert 0 < starts[0] < starts[1]
