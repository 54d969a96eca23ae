"""What bounds a machine's arithmetic, as the kernel's files tell it."""

from strata.host import capacity


def cpuinfo(path, cpus=4, cores=2, flags="fpu sse2 avx avx2 fma constant_tsc", places=True):
    block = "processor\t: {0}\nbogomips\t: 4200.00\nflags\t\t: " + flags
    block += "\nphysical id\t: 0\ncore id\t\t: {1}" if places else ""
    path.write_text("\n\n".join(block.format(cpu, cpu % cores) for cpu in range(cpus)) + "\n\n")
    return str(path)


def test_cores_clock_and_registers_are_read(tmp_path):
    path = cpuinfo(tmp_path / "cpuinfo")
    nowhere = str(tmp_path / "none")
    known = {"cores": 2, "clock_mhz": 2100, "clock": "nominal", "vector_bits": 256, "fma": True}
    assert capacity.arithmetic({0, 1, 2, 3}, path, nowhere) == known
    assert capacity.arithmetic({0, 2}, path, nowhere)["cores"] == 1
    driver = tmp_path / "cpuinfo_max_freq"
    driver.write_text("3800000\n")
    assert capacity.arithmetic({0}, path, str(driver)) == {**known, "cores": 1, "clock_mhz": 3800, "clock": "highest"}


def test_the_widest_registers_count(tmp_path):
    nowhere = str(tmp_path / "none")
    wide = cpuinfo(tmp_path / "wide", flags="sse2 avx avx512f constant_tsc")
    narrow = cpuinfo(tmp_path / "narrow", flags="sse2 constant_tsc")
    seen = [capacity.arithmetic({0}, path, nowhere) for path in (wide, narrow)]
    assert [(one["vector_bits"], one["fma"]) for one in seen] == [(512, True), (128, False)]


def test_what_the_kernel_does_not_tell_is_none(tmp_path):
    nowhere = str(tmp_path / "none")
    nothing = dict.fromkeys(("cores", "clock_mhz", "clock", "vector_bits", "fma"))
    assert capacity.arithmetic({0}, nowhere, nowhere) == nothing
    (tmp_path / "arm").write_text("processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\n\n")
    assert capacity.arithmetic({0}, str(tmp_path / "arm"), nowhere) == nothing
    # A clock that is not constant is none that bounds anything.
    found = capacity.arithmetic({0}, cpuinfo(tmp_path / "slow", flags="sse2", places=False), nowhere)
    assert found == {**nothing, "vector_bits": 128, "fma": False}
