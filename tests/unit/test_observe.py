from strata.host import observe

CPUINFO = "\n\n".join(
    f"processor\t: {cpu}\nmodel name\t: Some CPU @ 2.40GHz\nmicrocode\t: 0x1a\nphysical id\t: {cpu // 4}\n"
    "siblings\t: 4\ncpu cores\t: 2\nflags\t\t: fpu vme sse2"
    for cpu in range(8)
)
FILES = {
    "/proc/version": "Linux version 6.1.0-21-amd64 (build) #1 SMP",
    "/etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 13 (trixie)"',
    "/proc/cpuinfo": CPUINFO,
    "/proc/meminfo": "MemTotal:       16384 kB\nSwapTotal:       100 kB\nSwapFree:       60 kB",
    "/proc/self/cgroup": "2:cpu:/strata/abc\n1:name=systemd:/strata/abc\n0::/strata/abc",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "/sys/devices/system/cpu/cpu0/cache/index0/size": "32K",
    "/sys/devices/system/cpu/cpu0/cache/index3/size": "20480K",
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
    "cache_bytes": 20 * 2**20,
    "memory_bytes": 16384 * 1024,
    "huge_pages": "madvise",
    "cgroup": "/strata/abc",
    "virtualization": "none seen",
    "versions": {"libc6": "2.41-12", "xz-utils": "5.8.1-1"},
}


def test_facts_are_read_from_the_kernels_files_and_never_invented():
    assert FACTS.items() <= observe.understand(FILES).items()
    assert set(observe.understand({}).values()) == {"not available"}


def test_shares_are_of_all_ticks_and_not_invented_without_one():
    before = (100, 0, 0, 900, 0, 0, 0, 0, 50, 0)
    after = (130, 0, 10, 950, 0, 0, 0, 10, 70, 0)
    assert observe.shares(before, after) == {"steal_share": 0.1, "busy_share": 0.4}
    assert observe.shares(before, before) == {"steal_share": "not available", "busy_share": "not available"}


def test_this_host_can_be_observed():
    facts = observe.host()
    assert facts["cpus"] >= 1
    assert facts["memory_bytes"] > 2**28
    assert isinstance(observe.moment()["load1"], float)
