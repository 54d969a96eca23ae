"""The readers of the published raw results, on small imitations that are written here."""

import shutil
import subprocess

import projects
import pytest

from strata.reanalysis import logs, mysql, source, tidy
from strata.reanalysis.reading import Refusal, Value


def gups(rate=0.0125, passed="passed"):
    return [
        "Running gups, started at Sat Jul 12 11:19:40 CDT 2014",
        f"{rate:.9f} Billion(10^9) Updates    per second [GUP/s]",
        f"Found 1 errors in 8589934592 locations ({passed}).",
    ]


def stream(threads=32, unit="GB/s", valid=True, scale=1.0):
    return [
        "Running stream, started at Sat Jul 12 10:27:26 CDT 2014",
        f"Number of Threads requested = {threads}",
        f"Function      Rate ({unit})   Avg time     Min time     Max time",
        *(
            f"{name}: {scale * (40 + at):.4f} 0.6440 0.6395"
            for at, name in enumerate(("Copy", "Scale", "Add", "Triad"))
        ),
        *(["Solution Validates"] if valid else []),
    ]


def linpack(rates, asked=10, cpus=2, threads=32, check="pass"):
    return [
        "Running linpack, started at Thu Jul 17 22:17:38 CDT 2014",
        "This is a SAMPLE run script for SMP LINPACK. Change it to reflect",
        f"Number of CPUs: {cpus}",
        "Number of cores: 16",
        f"Number of threads: {threads}",
        f"Number of trials to run                     : {asked}",
        *(
            f"45000  45000  1      208.417    {rate:.4f} 1.876477e-09 3.301464e-02   {check}"
            for rate in rates
        ),
        *(["45000  45000  1       289.7 291.9"] if len(rates) == asked else []),
    ]


def fio(job="random-read-16x8", directions=("read",), error=0):
    lines = [
        f"{job}: (g=0): rw=randread, bs=4K",
        f"{job}: (groupid=0, jobs=8): err= {error}: pid=9550",
    ]
    for direction in directions:
        lines += [
            f"  {direction}: io=19699MB, bw=2MB/s, iops=84.5K, runt= 60002msec",
            "    slat (usec): min=2 , max=6555 , avg= 9.71, stdev=82.55",
            "    clat (msec): min=81 , max=9507, avg=1.4K, stdev=417.11",
            "     lat (usec): min=81 , max=9507, avg=1479.68, stdev=417.11",
            "    clat percentiles (msec):",
            "     |  1.00th=[  274],  5.00th=[  660],",
            "    bw (KB/s)  : min=40272, max=42944, per=12.50%, avg=42031.22, stdev=366.80",
        ]
    return [*lines, "Run status group 0 (all jobs):"]


def sysbench(threads=10, transactions=1200, write=0):
    return [
        "sysbench 0.4.12:  multi-threaded system evaluation benchmark",
        f"Number of threads: {threads}",
        f"        write:                           {write}",
        f"    transactions:                        {transactions} (20.00 per sec.)",
        "    total time:                          60.0000s",
        "         avg:                                  2.93ms",
        "         approx.  95 percentile:               3.34ms",
        "    execution time (avg/stddev):   59.8141/0.01",
    ]


def dstat(*runs):
    lines = ['"usr","sys","idl","wai"']
    for idle in runs:
        lines += (
            ["0.5,0.0,99.0,0.5"] * 2
            + ["9.0,1.0,0.0,0.0"]
            + [f"9.0,1.0,{idle},0.0"] * 19
            + ["9.0,1.0,0.0,0.0"]
        )
    return [*lines, "0.5,0.0,99.0,0.5"]


def redis(run, connections, tests=logs.REDIS_TESTS, rate=50000.0):
    lines = [f"[DBG] Run #{run}: Connections {connections}."]
    for test in tests:
        lines += [
            f"====== {test} ======",
            f"  {connections} parallel clients",
            f"{rate:.2f} requests per second",
        ]
    return lines


def values(readings):
    return [reading for reading in readings if isinstance(reading, Value)]


def refusals(readings):
    refused = [reading for reading in readings if isinstance(reading, Refusal)]
    return [(refusal.line, refusal.reason) for refusal in refused]


def test_randomaccess_is_read_by_its_rate_and_its_check():
    readings = list(
        logs.read_randomaccess([*gups(), *gups(0.045), *gups(passed="failed"), "Running gups"])
    )
    assert [
        (value.factors, value.value, value.line, value.selection) for value in values(readings)
    ] == [
        ({"sockets": 2}, 0.0125, 2, "paper"),
        ({"sockets": 1}, 0.045, 5, "variant"),
    ]
    assert [line for line, _ in refusals(readings)] == [7, 10]


def test_stream_has_four_rates_in_one_unit_or_none():
    readings = list(
        logs.read_stream(
            [*stream(), *stream(16, "MB/s", scale=1000), *stream(valid=False), *stream(8)]
        )
    )
    assert [value.value for value in values(readings)] == [40, 41, 42, 43] * 2
    assert [value.selection for value in values(readings)] == ["paper"] * 4 + ["variant"] * 4
    assert [line for line, _ in refusals(readings)] == [17, 24]


def test_linpack_shows_the_last_complete_block_of_each_kind():
    lines = [
        *linpack([280] * 10),
        *linpack([290] * 10),
        *linpack([100] * 6),
        *linpack([285] * 10, cpus=32),
    ]
    readings = list(
        logs.read_linpack([*lines, *linpack([]), *linpack([150] * 10, threads=16)], "vm.log")
    )
    shown = {
        (value.environment, value.value) for value in values(readings) if value.selection == "paper"
    }
    assert shown == {("vm-tuned", 290), ("", 285)}
    rest = [
        (value.factors, value.selection) for value in values(readings) if value.selection != "paper"
    ]
    assert [pair for place, pair in enumerate(rest) if pair not in rest[:place]] == [
        ({"order": "45000", "sockets": 2, "run": "vm.log:1"}, "superseded"),
        ({"order": "45000", "sockets": 2, "run": "vm.log:3"}, "superseded"),
        ({"order": "45000", "sockets": 1, "run": "vm.log:6"}, "variant"),
    ]
    assert [reason for _, reason in refusals(readings)] == [
        "a block that was cut off: 6 of 10 trials, and no summary",
        "a block that ended before its first trial",
    ]


def test_fio_takes_every_line_in_its_own_unit():
    readings = list(logs.read_fio(fio(directions=("read", "write"))))
    read = {
        value.metric: value for value in values(readings) if value.factors["direction"] == "read"
    }
    shown = {
        metric: read[metric].value
        for metric in ("iops", "bandwidth", "latency_completion", "latency_total")
    }
    assert shown == {
        "iops": 84500,
        "bandwidth": 2048,
        "latency_completion": 1.4e6,
        "latency_total": 1479.68,
    }
    both = {
        value.metric: value.value
        for value in values(readings)
        if value.factors["direction"] == "both"
    }
    assert both == {"iops": 169000, "bandwidth": 4096}
    series = {"job": "random-read-16x8", "direction": "read", "percentile": "5.00"}
    assert [value.value for value in values(readings) if value.factors == series] == [660000]
    assert refusals(readings) == []
    assert len(refusals(logs.read_fio(fio(error=5)))) == 1


def test_mysql_is_transactions_over_time_and_dstat_has_its_threads():
    readings = list(
        mysql.read_sysbench([*sysbench(), *sysbench(20), *sysbench(write=5), *sysbench()[:5]])
    )
    assert [(value.metric, value.value) for value in values(readings)][:3] == [
        ("throughput", 20),
        ("latency", 2.93),
        ("latency_p95", 3.34),
    ]
    assert [line for line, _ in refusals(readings)] == [17, 25]
    outputs = [[{"threads": 10}, {"threads": 20}]]
    use = list(mysql.read_dstat(dstat(90, 50, 80, 40), outputs))
    assert [(value.factors, value.value) for value in values(use)] == [
        ({"threads": 10}, 10),
        ({"threads": 20}, 50),
        ({"threads": 10}, 20),
        ({"threads": 20}, 60),
    ]
    assert len(refusals(mysql.read_dstat(dstat(90), outputs))) == 1
    assert (
        refusals(mysql.read_dstat([*dstat(90, 50), "9.0,x"], outputs))[0][0]
        == len(dstat(90, 50)) + 1
    )


def test_redis_leaves_out_a_last_run_that_was_cut_off():
    lines = [line for run in (1, 2) for connections in (50, 60) for line in redis(run, connections)]
    readings = list(logs.read_redis([*lines, *redis(3, 50)]))
    shown = [value.factors for value in values(readings) if value.selection == "paper"]
    assert all(factors["test"] == "SET" for factors in shown)
    assert {factors["connections"] for factors in shown} == {50, 60}
    assert len(values(readings)) == 4 * 7 * 2
    assert {value.value for value in values(readings) if value.metric == "latency"} == {1.0, 1.2}
    assert refusals(readings) == [
        (len(lines) + 1, "run 3 was cut off after 50 to 50 connections; it is not used")
    ]
    lost = refusals(logs.read_redis([*redis(1, 50, ("SET", "SADD")), *redis(2, 50)]))
    assert len(lost) == 5


@pytest.mark.parametrize(
    ("read", "lines"),
    [
        (logs.read_randomaccess, gups()),
        (logs.read_stream, stream()),
        (lambda lines: logs.read_linpack(lines, "vm.log"), linpack([290] * 10)),
        (logs.read_fio, fio()),
        (logs.read_redis, [*redis(1, 50), *redis(2, 50)]),
        (mysql.read_sysbench, sysbench()),
        (lambda lines: mysql.read_dstat(lines, [[{"threads": 1}]]), dstat(90)),
    ],
)
def test_a_damaged_log_is_refused_by_line_and_never_read_wrong(read, lines):
    whole = {(value.metric, value.value) for value in values(read(lines))}
    assert whole
    for at, line in enumerate(lines):
        halved = [*lines[:at], line[: len(line) // 2], *lines[at + 1 :]]
        for damaged in (lines[:at], lines[:at] + lines[at + 1 :], halved):
            readings = list(read(damaged))
            assert all(0 <= value.line <= len(lines) + 1 for value in readings)
            if damaged is not halved:
                assert {(value.metric, value.value) for value in values(readings)} <= whole


@pytest.fixture
def folder(tmp_path):
    for file, lines in {
        "Stream/results/linux.log": stream() + stream(),
        "fio/results/vm.log": fio(),
        "at-b72ae3e/fio/results/vm.log": fio(directions=("write",)),
    }.items():
        path = tmp_path / "raw" / file
        path.parent.mkdir(parents=True)
        path.write_text("\n".join(lines) + "\n")
    return tmp_path / "raw"


def test_the_table_numbers_repetitions_and_missing_files_are_named(folder, tmp_path, capsys):
    tidy.write_reanalysis_tables(str(folder), str(tmp_path / "out"))
    rows = projects.table(tmp_path / "out/tidy.csv")
    columns = [name for name in rows[0] if not name.startswith("factor_")]
    assert columns == [*tidy.SERIES_COLUMNS, *tidy.VALUE_COLUMNS]
    copy = [row for row in rows if row["metric"] == "copy"]
    assert [(row["repetition"], row["file"], row["line"]) for row in copy] == [
        ("1", "Stream/results/linux.log", "4"),
        ("2", "Stream/results/linux.log", "12"),
    ]
    assert {(row["selection"], row["file"]) for row in rows if row["workload"] == "fio"} == {
        ("variant", "fio/results/vm.log"),
        ("paper", "at-b72ae3e/fio/results/vm.log"),
    }
    missing = {
        row["file"]: row["reason"] for row in projects.table(tmp_path / "out/unreadable.csv")
    }
    assert missing["Stream/results/docker.log"] == "missing: no values of stream in docker"
    assert "netperf/results/netperf.xlsx: missing: no values of netperf" in capsys.readouterr().err


def test_a_folder_a_checkout_and_a_bare_directory_are_good_and_all_else_is_refused_by_name(
    folder, tmp_path
):
    assert source.explain_unusable_folder(str(folder)) is None
    projects.track(folder, commit=True)
    assert source.explain_unusable_folder(str(folder)) is None
    projects.git(folder, "clone", "--quiet", "--bare", str(folder), str(tmp_path / "bare"))
    assert source.explain_unusable_folder(str(tmp_path / "bare")) is None
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    projects.git(tmp_path, "init", "--quiet", "--bare", str(tmp_path / "repository"))
    for name in ("nowhere", "file", "empty", "repository"):
        assert str(tmp_path / name) in (source.explain_unusable_folder(str(tmp_path / name)) or "")


def test_a_repository_with_missing_objects_asks_nobody_for_them(tmp_path):
    whole, ours = tmp_path / "whole", tmp_path / "ours"
    (whole / "redis").mkdir(parents=True)
    (whole / "redis/x.txt").write_text("x")
    projects.track(whole, commit=True)
    projects.git(tmp_path, "clone", "--quiet", "--bare", str(whole), str(ours))
    shutil.rmtree(ours / "objects")
    (ours / "objects/pack").mkdir(parents=True)
    remote = {"promisor": "true", "url": "ssh://nobody/x"}
    settings = {f"remote.origin.{key}": text for key, text in remote.items()}
    settings |= {"extensions.partialClone": "origin", "core.repositoryFormatVersion": "1"}
    settings["core.sshCommand"] = f"touch {tmp_path}/ran; false"
    for key, text in settings.items():
        projects.git(ours, "config", key, text)
    assert source.explain_unusable_folder(str(ours))
    assert not (tmp_path / "ran").exists()
    subprocess.run(["git", "-C", str(ours), "ls-tree", "HEAD"], capture_output=True, check=False)
    assert (tmp_path / "ran").exists(), "the trap is none"
