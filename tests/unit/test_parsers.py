"""The workloads' parsers on captured logs, and the values of a cell."""

import json
import re
import subprocess
import sys
import types

import captured
import projects
import pytest
import yaml
from captured import BY_NAME, LOGS, same

from strata.experiment import workload
from strata.measure import parsing as values
from strata.measure.parsing import BrokenLogError, Value
from strata.util.errors import UserError

each_log = pytest.mark.parametrize("log", LOGS, ids=list(BY_NAME))


def declared(name):
    """The metrics of a workload, as they are in a plan."""
    return yaml.safe_load((projects.ROOT / f"workloads/{name}/workload.yaml").read_text())[
        "metrics"
    ]


def test_every_workload_has_captured_logs_and_no_other_folder_is_one(monkeypatch):
    monkeypatch.chdir(projects.ROOT)
    assert workload.known() == sorted({log.workload for log in LOGS})
    logs = projects.ROOT.glob("workloads/*/fixtures/*.log")
    assert {f"{path.parent.parent.name}/{path.stem}" for path in logs} == set(BY_NAME)


@each_log
def test_a_captured_log_holds_the_known_values(log):
    assert same(log.parse(), log.values)


@each_log
def test_the_values_are_those_of_the_declared_metrics(log):
    record = {"parameters": log.parameters, "commands": [{"step": "run"}]}
    # What a small run does too rarely to report it.
    metrics = {name: entry | {"optional": True} for name, entry in declared(log.workload).items()}
    parse = values.load_parser(log.workload)
    found = [
        one for one, _ in values.of_laps("\n".join(log.lines).encode(), record, metrics, parse)
    ]
    assert sorted(found, key=lambda one: one.key) == sorted(log.parse(), key=lambda one: one.key)
    order = [list(metrics).index(one.metric) for one in found]
    assert order == sorted(order)


@each_log
def test_line_endings_and_what_tools_print_beside_their_results_do_not_matter(log):
    for ending in ("\r", " ", "\t"):
        assert same(log.parse([line + ending for line in log.lines]), log.values)
    # Bytes that are no text come as lone surrogates.
    noisy = [
        "warning: clock skew",
        "",
        *log.lines[:1],
        "[1] {not json",
        "\udcff\udcfe",
        *log.lines[1:],
        "done.",
    ]
    assert same(log.parse(noisy), log.values)


@each_log
def test_the_log_of_another_workload_is_refused(log):
    for other in LOGS:
        if other.workload != log.workload:
            assert (
                log._replace(parameters={**other.parameters, **log.parameters}).parse(other.lines)
                is None
            )


# Parameters that leave no trace in each log: ports, warm-ups, settings of a server, and limits that may not be reached.
TRACELESS = {
    "auction": "web_port broker_ports processes poll_seconds item_seconds buffer_bytes resolution confirmations "
    "most_users data_seed laps",
    "cloudstone": "roles geocoder_ports database_ports ramp_seconds workers children buffer_bytes log_bytes "
    "mix_points loaded_users laps",
    "dvdstore": "buffer_bytes laps",
    "linpack": "min_trials min_seconds",
    "mysql": "port warmup_seconds",
    "netperf": "warmup_seconds port",
    "nuttcp": "warmup_seconds port data_ports paced_ports netserver_port server_cpu",
    "redis": "warmup_requests port server_cpu",
    "redis-scaleout": "pinned_ports stats_port settle_seconds laps",
}


@each_log
def test_a_log_of_other_parameters_than_those_asked_for_is_refused(log):
    traceless = TRACELESS.get(log.workload, "").split()
    for key, asked in log.parameters.items():
        others: list = []
        if isinstance(asked, int | float):
            others = [2 * asked + 1]
        elif isinstance(asked, list):
            others = [asked[1:], [*asked, asked[0]]]
        for other in others:
            found = log.parse(**{key: other})
            assert (found is None) or (key in traceless and same(found, log.values)), key
        less = {name: value for name, value in log.parameters.items() if name != key}
        found = log._replace(parameters=less).parse()
        assert found is None or same(found, log.values)


# One edit of a captured log (a text that is replaced wherever it is), and that it is refused.
REFUSED = [
    # What the program itself says on its results.
    ("stream/tiny", '"verified": true', '"verified": false'),
    ("stream/tiny", '"error": 0', '"error": 1e-12'),
    ("linpack/tiny", '"verified": true', '"verified": false'),
    ("linpack/tiny", '"residual": 0.001838', '"residual": 17'),
    ("randomaccess/tiny", '"tool": "strata-', '"tool": "'),
    ("randomaccess/tiny", '"verified": true', '"verified": false'),
    ("randomaccess/tiny", '"wrong_share": 4.35e-06', '"wrong_share": 0.02'),
    ("pxz/tiny", '"round_trip": true', '"round_trip": false'),
    ("pxz/tiny", '"gcide"', '"given/data/enwik9"'),
    ("startup/tiny", '"created"', '"moon"'),
    ("startup/tiny", '"command_seconds": 0.091318', '"command_seconds": "1"'),
    ("redis/tiny", "failed_calls=0", "failed_calls=1"),
    ("redis/tiny", "rejected_calls=0", "rejected_calls=1"),
    ("redis/tiny", "cmdstat_get:calls=10000", "cmdstat_get:calls=9999"),
    ("redis/tiny", "keyspace_hits:", "keyspace_hits:1"),
    ("redis-scaleout/tiny", '"failed": 0', '"failed": 1'),
    ("redis-scaleout/tiny", '"kept": [55,9]', '"kept": [64,0]'),
    ("fio/tiny", '"error" : 0', '"error" : 5'),
    ("fio/tiny", '"short_ios" : 0', '"short_ios" : 1'),
    ("fio/tiny", '"direct" : "1"', '"direct" : "0"'),
    ("fio/tiny", '"fio version" : "fio-3.39"', '"fio version" : "fio-3.38"'),
    ("fio/tiny", '"total_ios" : 0', '"total_ios" : 1'),
    ("fio/tiny", '"iodepth" : "2"', '"iodepth" : "1"'),
    ("mysql/tiny", '"reconnects": 0', '"reconnects": 1'),
    ("mysql/tiny", '"ignored": 0', '"ignored": 1'),
    ("mysql/tiny", "Threads started!", "Threads started!\nFATAL: the server went away"),
    ("mysql/tiny", '"commits": 3223', '"commits": 3222'),
    (
        "mysql/tiny",
        '"commits": 3223, "pages_from_disk": 316',
        '"commits": 3223, "pages_from_disk": 317',
    ),
    ("mysql/tiny", '"encryption": "DISABLED"', '"encryption": "YES"'),
    ("netperf/tiny", "PROTOCOL=UDP", "PROTOCOL=TCP"),
    ("nuttcp/tiny", "megabytes=599.0000", "nuttcp: no server, classic_mode\nmegabytes=599.0000"),
    ("nuttcp/tiny", "REMOTE_BYTES_XFERD=724303872", "REMOTE_BYTES_XFERD=124303872"),
    ("nuttcp/tiny", "DIRECTION=Receive", "DIRECTION=Send"),
    ("nuttcp/tiny", '"test": "TCP_STREAM"', '"test": "TCP_RR"'),
    ("nuttcp/tiny", "rate_Mbps=7512.9494 tx_cpu", "rate_Mbps=7512.949\n4 tx_cpu"),
    ("dvdstore/tiny", '"lost": 0', '"lost": 1'),
    ("dvdstore/tiny", '"fsync": "on"', '"fsync": "off"'),
    ("dvdstore/tiny", '"new_cents": 21488762', '"new_cents": 21488761'),
    ("dvdstore/tiny", '"busiest_share": 0.245383', '"busiest_share": 0.92'),
    ("cloudstone/tiny", '"broken": 0', '"broken": 1'),
    ("cloudstone/tiny", '"busiest_share": 0.0399603', '"busiest_share": 0.95'),
    ("cloudstone/tiny", '"person": 2505', '"person": 2506'),
    ("cloudstone/tiny", '"busy_seconds": 54258.6', '"busy_seconds": 64258.6'),
    ("auction/tiny", '"wrong": 0', '"wrong": 1'),
    ("auction/tiny", '"found": 400', '"found": 401'),
    ("auction/tiny", '"passed": true', '"passed": false'),
    ("auction/tiny", '"bids": 170}', '"bids": 171}'),
    # Each says another thing than the rest of its log.
    ("auction/tiny", '"failing": []', '"failing": ["Login"]'),
    ("auction/tiny", '"bids": 10278', '"bids": 10277'),
    (
        "cloudstone/tiny",
        '"comments_rating": 172, "broken": 0}\n{"done"',
        '"comments_rating": 173, "broken": 0}\n{"done"',
    ),
    (
        "cloudstone/tiny",
        '"cpus": 2, "cycles": null}\n{"closed"',
        '"cpus": 3, "cycles": null}\n{"closed"',
    ),
    (
        "dvdstore/tiny",
        '"size": "small", "data_seed": 1, "users"',
        '"size": "medium", "data_seed": 1, "users"',
    ),
    ("dvdstore/tiny", '"orders": 552', '"orders": 551'),
    ("dvdstore/tiny", '"searches": 1672', '"searches": 1671'),
    ("dvdstore/tiny", '448, "sum_seconds": 1.30345837', '400, "sum_seconds": 1.163804'),
    ("dvdstore/tiny", '"opcache": "on"', '"opcache": "off"'),
    (
        "dvdstore/tiny",
        '"php": "8.4.28", "opcache": "on"}\n{"point"',
        '"php": "8.3", "opcache": "on"}\n{"point"',
    ),
    ("dvdstore/tiny", '"opened": 1', '"opened": 2'),
    (
        "dvdstore/tiny",
        '{"checked": 1, "operations": ["login", "new"]}',
        '{"checked": 1, "operations": ["login"]}',
    ),
    ("dvdstore/tiny", '"drove": "users-2"', '"drove": "users-4"'),
    ("dvdstore/tiny", '{"end": "users-2"}', '{"end": "users-4"}'),
    ("dvdstore/tiny", '"came": 4', '"came": 5'),
    ("dvdstore/tiny", '"rate": 279.0', '"rate": 280.0'),
    ("fio/tiny", "fio-3.39", "dd-3.39"),
    (
        "fio/tiny",
        '"layout": "/data/fio.bin", "bytes": 134217728',
        '"layout": "/data/fio.bin", "bytes": 134217729',
    ),
    ("fio/tiny", '"sequential-fill"', '"seq-read-1"'),
    ("fio/tiny", '"max" : 8653388', '"max" : 18000000000'),
    ("linpack/tiny", '"tool": "strata-', '"tool": "'),
    ("netperf/tiny", "Netperf version", "nuttcp version"),
    ("netperf/tiny", "PROTOCOL=UDP", "PROTOCOL=UDP\nPROTOCOL=UDP"),
    ("netperf/tiny", "ELAPSED_TIME=1.00", "ELAPSED_TIME=0.50"),
    ("stream/tiny", '{"done": true}', '{"done": false}'),
    ("linpack/tiny", '"n": 1000, "trials": 14', '"n": 2000, "trials": 14'),
    ("linpack/tiny", '"n": 1000, "trial": 7', '"n": 900, "trial": 7'),
    ("linpack/tiny", '"n": 1000', '"n": 2000'),
    ("linpack/tiny", '"trial": 7', '"trial": 8'),
    ("linpack/tiny", '"trials": 14', '"trials": 15'),
    ("linpack/tiny", '"gb_per_second": 5.08067', '"gb_per_second": 5.09'),
    (
        "linpack/tiny",
        '{"done": true}',
        '{"n": 1000, "trial": 1, "gflops": 32.2596, "seconds": 0.020727677, "residual": 0}\n{"done": true}',
    ),
    ("mysql/tiny", "-MariaDB-", "-MySQL-"),
    ("mysql/tiny", '"rows_of_index": 10000', '"rows_of_index": 9999'),
    ("mysql/tiny", '"rows_left_of_index": 10000', '"rows_left_of_index": 9999'),
    (
        "mysql/tiny",
        '"threads": 2, "seed": 4834262, "transactions"',
        '"threads": 2, "seed": 4834263, "transactions"',
    ),
    ("mysql/tiny", '"accounted": "read-only-2"', '"accounted": "read-only-8"'),
    ("mysql/tiny", '"test": "read-only", "threads": 2', '"test": "read-write", "threads": 2'),
    ("netperf/tiny", '"point": "TCP_RR"', '"point": "UDP_RR"'),
    ("netperf/tiny", "RECV_CALLS=", "RECV_CALLS=1"),
    ("netperf/tiny", "MEAN_LATENCY=", "MEAN_LATENCY=9"),
    ("nuttcp/tiny", '"observed": "cpu"', '"observed": "gpu"'),
    (
        "nuttcp/tiny",
        "megabytes=62.0517 real_seconds=1.04 rate_Mbps=499.9803",
        "megabytes=82.0517 real_seconds=1.04 rate_Mbps=661.8",
    ),
    (
        "nuttcp/tiny",
        '2288.06, "steal_seconds": 4.46, "cpus": 2, "cycles": null',
        '2288.06, "steal_seconds": 4.46, "cpus": 2, "cycles": 5',
    ),
    ("nuttcp/tiny", '"tool": "nuttcp-', '"tool": "iperf-'),
    ("nuttcp/tiny", "megabytes=599.0000 real_seconds=1.00", "megabytes=59.0000 real_seconds=0.1"),
    ("nuttcp/tiny", "megabytes=599.0000", "megabytes=590.0000"),
    ("nuttcp/tiny", "THROUGHPUT=8443.19", "THROUGHPUT=8343.19"),
    ("pxz/tiny", '"tool": "xz ', '"tool": "gzip '),
    ("pxz/tiny", '"level": 2, "bytes": 25165824', '"level": 2, "bytes": 25165823'),
    ("pxz/tiny", '"bytes_of_all": 25165824', '"bytes_of_all": 25165825'),
    ("pxz/tiny", '"passes": 1', '"passes": 2'),
    ("pxz/tiny", '"pass": 1', '"pass": 2'),
    ("randomaccess/tiny", '"pass": 4', '"pass": 5'),
    ("randomaccess/tiny", '"ended": 1795746139670875', '"ended": 1795746119670875'),
    ("linpack/turns", '"ended": 1795746225466643, ', ""),
    ("pxz/turns", "[[1795746166022779, 1795746166078059]", "[[1795746166078059, 1795746166022779]"),
    ("pxz/turns", "[[1795746166022779, 1795746166078059]", "[[1795746166022779]"),
    ("redis/tiny", "redis-benchmark ", "memtier "),
    ("redis/tiny", '"connections": 1, "pipeline": 1', '"connections": 1, "pipeline": 2'),
    ("redis/tiny", '"p95_latency_ms","p99_latency_ms"', '"p99_latency_ms","p95_latency_ms"'),
    ("redis/tiny", "cmdstat_get:calls=10000", "cmdstat_get:calls=10000\ncmdstat_del:calls=1"),
    ("redis/tiny", '"8354.22","', '"0","'),
    ("redis-scaleout/tiny", '"point": "half"', '"point": "double"'),
    ("redis-scaleout/tiny", "redis-benchmark ", "memtier "),
    ("redis-scaleout/tiny", '"kept": [64]', '"kept": [32,32]'),
    ("redis-scaleout/tiny", '"kept": [55,9]', '"kept": [55,8]'),
    ("redis-scaleout/tiny", '{"server": 1,', '{"server": 2,'),
    ("redis-scaleout/tiny", '"processes": 8', '"processes": 9'),
    ("redis-scaleout/tiny", '"misses": 162', '"misses": 161'),
    ("redis-scaleout/tiny", '"proxy_share": 4.9455', '"proxy_share": 105.5'),
    # A changed unit.
    ("stream/tiny", '"gbps": ', '"gbps": 1000'),
    ("linpack/tiny", '"gflops_of_all": ', '"gflops_of_all": 1000'),
    ("randomaccess/tiny", '"gups_of_all": 0.', '"gups_of_all": 0.000'),
    ("netperf/tiny", "RT_LATENCY=", "RT_LATENCY=1"),
    ("nuttcp/tiny", "rate_Mbps=", "rate_Mbps=1"),
    ("mysql/tiny", '"sum_ms": ', '"sum_ms": 1'),
    ("redis/tiny", '","0.116"', '","0.000116"'),
    ("redis-scaleout/tiny", '"seconds": 3.310042', '"seconds": 3310.042'),
    ("fio/tiny", '"runtime" : 5', '"runtime" : 5000'),
    ("dvdstore/tiny", '"mean_ms": ', '"mean_ms": 1'),
    ("cloudstone/tiny", '"mean_ms": ', '"mean_ms": 1'),
    ("auction/tiny", '"mean_ms": ', '"mean_ms": 1'),
]


@pytest.mark.parametrize(("name", "old", "new"), REFUSED)
def test_errors_and_changed_units_are_refused(name, old, new):
    text = "\n".join(BY_NAME[name].lines)
    assert old in text
    assert BY_NAME[name].parse(text.replace(old, new).split("\n")) is None


# A number of a captured log, with one that is still taken in its place, and one just beyond the tolerance.
EDGES = [
    ("cloudstone/tiny", '"late_seconds": ', "0.000661993917", "0", "0.101"),
    ("stream/tiny", '"gbps": ', "31.1398", "31.1400", "31.1403"),
    ("stream/tiny", '"gbps": ', "31.1398", "31.1396", "31.1394"),
    ("stream/tiny", '"error": ', "0", "1e-13", "1.1e-13"),
    ("linpack/tiny", '"residual": ', "0.002777", "15.9", "16"),
    ("linpack/tiny", '"gflops_of_all": ', "44.046", "44.0462", "44.0466"),
    ("redis/tiny", '"8354.22","', "0.116", "0.1226", "0.123"),
    ("redis/tiny", '"8354.22","', "0.116", "0.012", "0.0119"),
    ("redis/tiny", '"69444.45","', "0.141", "0.1484", "0.1491"),
    ("fio/tiny", '"seconds": ', "0.5", "0.5", "0.51"),
    ("mysql/tiny", '"buffer_bytes": ', "67108864", "201326591", "201326592"),
    ("mysql/tiny", '"buffer_bytes": ', "67108864", "66060289", "66060288"),
    ("mysql/tiny", '"table_bytes": ', "2801664", "67108864", "67108865"),
    ("mysql/tiny", '"ignored": ', "0", "0", "1"),
    ("mysql/tiny", '"write": 2348, "other": 1174, "ignored": ', "0", "29", "30"),
    ("mysql/tiny", '"transactions": 587, "read": ', "8218", "8218", "8217"),
    (
        "mysql/tiny",
        '"write": 2348, "other": 1174, "ignored": 0, "reconnects": 0, "seconds": ',
        "1.002879",
        "0.9",
        "0.89",
    ),
    ("mysql/tiny", '"mean_ms": ', "3.405524", "3.40586", "3.40588"),
    ("mysql/tiny", '"commits": 4395, "pages_from_disk": ', "320", "321", "319"),
    ("mysql/tiny", '"seconds": 29970.427939, "busy_seconds": ', "30233.2", "30233.34", "30233.35"),
    ("mysql/tiny", '"seconds": 29970.427939, "busy_seconds": ', "30233.2", "30231.11", "30231.1"),
]


@pytest.mark.parametrize(("name", "before", "was", "taken", "refused"), EDGES)
def test_tolerances_end_where_they_should(name, before, was, taken, refused):
    text = "\n".join(BY_NAME[name].lines)
    assert before + was in text
    assert (
        BY_NAME[name].parse(text.replace(before + was, before + taken, 1).split("\n")) is not None
    )
    assert BY_NAME[name].parse(text.replace(before + was, before + refused, 1).split("\n")) is None


@pytest.mark.parametrize(
    ("name", "key", "taken", "refused"),
    [
        ("linpack/tiny", "min_trials", 14, 15),
        ("linpack/tiny", "min_seconds", 0.212535579, 0.2125358),
        ("randomaccess/tiny", "passes", 8, 9),
        ("pxz/tiny", "min_seconds", 1.526668, 1.526669),
        ("fio/tiny", "ramp_seconds", 0.2, 0.201),
    ],
)
def test_a_run_that_did_less_than_asked_is_refused(name, key, taken, refused):
    assert BY_NAME[name].parse(**{key: taken}) is not None
    assert BY_NAME[name].parse(**{key: refused}) is None


def mixed(reads, writes):
    """fio's log with so many operations in the mixed job."""
    log = BY_NAME["fio/tiny"]
    head, name, rest = "\n".join(log.lines).partition('{"point": "mixed-')
    start, end = rest.index("\n{\n"), rest.rindex("\n}\n")
    output = json.loads(rest[start : end + 2])
    for direction, count in (("read", reads), ("write", writes)):
        side = output["jobs"][0][direction]
        size = 4096 * count
        side |= {"io_bytes": size, "bw_bytes": 1000 * size / side["runtime"]}
        side["clat_ns"] |= {"N": count, "bins": {"1000": count}}
    return (
        head + name + rest[:start] + "\n" + json.dumps(output, indent=1) + rest[end + 2 :]
    ).split("\n")


@pytest.mark.parametrize(
    ("reads", "fits"), [(7390, True), (7410, False), (6610, True), (6590, False)]
)
def test_the_share_of_reads_may_vary_by_chance_and_two_percent(reads, fits):
    # Of 10,000 operations two standard deviations at most are 2 %.
    assert (BY_NAME["fio/tiny"].parse(mixed(reads, 10000 - reads)) is not None) == fits


def test_each_thread_of_fio_may_have_one_operation_without_its_latency():
    log = BY_NAME["fio/tiny"]
    text = "\n".join(mixed(7000, 3000))
    for more, fits in ((8, True), (9, False)):
        edited = text.replace('"N": 7000', f'"N": {7000 + more}').replace(
            '"1000": 7000', f'"1000": {7000 + more}'
        )
        assert (log.parse(edited.split("\n")) is not None) == fits


def test_a_run_that_was_shorter_than_asked_is_refused():
    log = BY_NAME["fio/tiny"]
    text = "\n".join(log.lines)
    longer = text.replace('"500ms"', '"550ms"').replace('"seconds": 0.5', '"seconds": 0.55')
    assert same(log.parse(longer.split("\n"), seconds=0.55), log.values)
    longer = text.replace('"500ms"', '"1000ms"').replace('"seconds": 0.5', '"seconds": 1')
    assert log.parse(longer.split("\n"), seconds=1) is None


def test_a_mix_of_other_shares_than_asked_is_refused():
    log = BY_NAME["fio/tiny"]
    before, name, mixed = "\n".join(log.lines).partition('"point": "mixed-')
    other = {"read": "write", "write": "read"}
    swapped = re.sub('"(read|write)" : {', lambda found: f'"{other[found[1]]}" : {{', mixed)
    assert swapped != mixed
    assert log.parse((before + name + swapped).split("\n")) is None


@pytest.mark.parametrize(("busy", "fits"), [(0, False), (0.5, True), (2.05, True), (2.5, False)])
def test_processors_cannot_be_idle_nor_busier_than_all_the_time(busy, fits):
    from kit.logs import processors

    seen = [
        {"seconds": 1, "busy_seconds": 10, "cpus": 2},
        {"seconds": 2, "busy_seconds": 10 + busy, "cpus": 2},
    ]
    if fits:
        assert processors(seen, 1) == (pytest.approx(busy), pytest.approx(busy / 2))
    else:
        with pytest.raises(BrokenLogError):
            processors(seen, 1)


def test_the_load_generator_may_be_busy_only_where_that_bounds_no_result():
    log = BY_NAME["auction/tiny"]
    at = {users: f'"probe-{number}"' for number, users in enumerate((200, 400, 800, 600), 1)}

    def busy(users):
        drove = f'{{"drove": {at[users]}'
        return [
            re.sub('(?<="busiest_share": )[0-9.]+', "0.95", x) if x.startswith(drove) else x
            for x in log.lines
        ]

    assert log.parse(busy(600)) is None
    assert same(log.parse(busy(400)), log.values)


def test_a_latency_counts_where_ten_are_due_in_a_lap_however_many_there_were():
    from kit.applications import Load

    operations = {"often": {"count": 7}, "seldom": {"count": 12}, "never": {"count": 0}}
    load = types.SimpleNamespace(operations=operations, users=20, seconds=10)
    mix = {"often": 10, "seldom": 9.9, "never": 80.1}
    assert list(Load.frequent(load, mix, cycle=2)) == ["often"]


# A cell's laps and systems

METRICS = {
    "rate": {"unit": "1/s", "statistic": "harmonic"},
    "time": {"unit": "s"},
    "memory": {"unit": "MB", "optional": True},
}


def numbers(lines, parameters):
    """A parser of lines METRIC UNIT NUMBER [NAME=FACTOR...]."""
    words = [line.split() for line in lines if line and not line.startswith("{")]
    return [
        Value(metric, unit, float(number), dict(factor.split("=") for factor in factors))
        for metric, unit, number, *factors in words
    ]


def of(text, commands=({"step": "run"},), parts=1, parse=numbers, metrics=METRICS):
    record = {"parameters": {}, "commands": list(commands), "system": {"parts": parts}}
    return [
        one
        for one, _ in values.of_laps(text.encode(errors="surrogateescape"), record, metrics, parse)
    ]


def test_values_are_in_the_order_of_the_metrics_and_each_in_that_of_the_log():
    found = of("time s 2 at=2\ntime s 1 at=1\nrate 1/s 3\n")
    assert found == [
        Value("rate", "1/s", 3),
        Value("time", "s", 2, {"at": "2"}),
        Value("time", "s", 1, {"at": "1"}),
    ]


LAPS = [{"step": "prepare"}, {"step": "run", "lap": 1}, {"step": "run", "lap": 2}]


def test_laps_are_condensed_to_their_means():
    text = '{"lap": 1}\nrate 1/s 1\ntime s 1\n{"lap": 2}\nrate 1/s 3\ntime s 3\n'
    assert of(text, LAPS) == [Value("rate", "1/s", 1.5), Value("time", "s", 2)]
    # Each counts, whatever its number.
    assert of(text.replace("2}", "1}"), LAPS) == of(text, LAPS)
    # What was printed before the laps belongs to each of them.
    assert of('time s 4\n{"lap": 1}\nrate 1/s 1\n{"lap": 2}\nrate 1/s 1\n', LAPS)[1] == Value(
        "time", "s", 4
    )


def test_of_a_percentile_the_median_of_the_laps_counts():
    laps = [{"step": "run", "lap": lap} for lap in (1, 2, 3)]
    metrics = {"p99": {"unit": "ms", "statistic": "percentile"}}
    text = "".join(
        f'{{"lap": {lap}}}\np99 ms {found}\n' for lap, found in ((1, 2), (2, 90), (3, 4))
    )
    found = of(text, laps, metrics=metrics)
    assert found == [Value("p99", "ms", 4)]
    # One that a lap has too few samples for is left out.
    assert of(text + "p99 ms 9 at=2\n", laps, metrics=metrics) == [Value("p99", "ms", 4)]
    # But one that has to be there is.
    with pytest.raises(BrokenLogError, match="no value of p99"):
        of(text.replace("p99 ms 90", "p99 ms 90 at=2"), laps, metrics=metrics)


ALL_LAPS = 'rate 1/s 1\ntime s 1\n{"lap": 1}\n{"lap": 2}\n'


@pytest.mark.parametrize(
    "text",
    [
        ALL_LAPS + "memory MB 1\n",
        ALL_LAPS + "time s 1 at=2\n",
    ],
)
def test_laps_that_differ_are_refused(text):
    assert of(ALL_LAPS, LAPS)
    with pytest.raises(BrokenLogError):
        of(text, LAPS)


def outputs(*systems):
    return "".join(
        f'{{"system": {system}}}\nrate 1/s {1 + (system or 0)}\ntime s 1 at=1\n'
        for system in systems
    )


def test_the_system_is_a_factor_where_several_ran_at_once():
    commands = [{"step": "run", "system": 0}, {"step": "run", "system": 1}]
    found = of(outputs(0, 1), commands, parts=2)
    assert [(one.metric, one.value, one.factors) for one in found] == [
        ("rate", 1, {"system": 0}),
        ("rate", 2, {"system": 1}),
        ("time", 1, {"at": "1", "system": 0}),
        ("time", 1, {"at": "1", "system": 1}),
    ]


@pytest.mark.parametrize("factors", ["at=1", None, {"at": None}, {"at": [1]}])
def test_factors_that_are_no_mapping_to_numbers_or_texts_are_refused(factors):
    parse = values.guarded(lambda lines, parameters: [Value("rate", "1/s", 1.0, factors)])
    with pytest.raises(BrokenLogError):
        of("", parse=parse, metrics={"rate": {"unit": "1/s"}})


def test_a_load_generator_reaches_all_systems():
    commands = [
        {"step": "prepare", "system": 0},
        {"step": "prepare", "system": 1},
        {"step": "run", "at": "client"},
    ]
    text = (
        'time s 1\n{"system": 0}\ntime s 7\n{"system": 1}\ntime s 8\n{"system": null}\nrate 1/s 5\n'
    )
    assert of(text, commands, parts=2) == [Value("rate", "1/s", 5), Value("time", "s", 1)]


def test_what_was_observed_of_the_host_belongs_to_each_system():
    def observed(lines, parameters):
        assert [line for line in lines if line.startswith("{")] == ['{"observed": "cpu"}'] * 2
        return numbers(lines, parameters)

    around = '{"system": null}\n{"observed": "cpu"}\n'
    commands = [{"step": "run", "system": 0}, {"step": "run", "system": 1}]
    assert len(of(around + outputs(0, 1) + around, commands, parts=2, parse=observed)) == 4


GOOD = "rate 1/s 1\ntime s 1\n"


@pytest.mark.parametrize(
    "text",
    [
        "rate 1/s 1\n",
        GOOD + "speed m/s 1\n",
        GOOD.replace("1/s 1", "1/min 1"),
        *(GOOD.replace("s 1", f"s {number}") for number in ("0", "-1", "nan", "inf")),
        GOOD + "time s 2\n",
        GOOD + "\0",
    ],
)
def test_values_that_are_not_those_of_the_metrics_are_refused(text):
    assert of(GOOD)
    with pytest.raises(BrokenLogError):
        of(text)


# Loading


@pytest.mark.parametrize("text", [None, "def parse(:\n", "import nothing_like_this\n", "1 / 0\n"])
def test_a_parser_that_cannot_be_loaded_is_told_by_its_file(tmp_path, text):
    folder = tmp_path / "workloads/own-one"
    folder.mkdir(parents=True)
    if text is not None:
        (folder / "parse.py").write_text(text)
    with pytest.raises(UserError, match=re.escape(str(folder / "parse.py"))):
        values.load_parser("own-one", str(tmp_path))


def test_parsers_need_the_standard_library_alone():
    code = (
        "from strata.measure import parsing; import sys; [*map(parsing.load_parser, sys.argv[1:])]"
    )
    names = sorted({log.workload for log in captured.LOGS})
    subprocess.run([sys.executable, "-S", "-c", code, *names], cwd=projects.ROOT, check=True)


def test_what_a_program_says_of_itself_is_found_or_refused():
    said = b'begun\n{"tool": "xz"}\n{"tool": "other"}\n{"huge_page_bytes": 7}\n{"huge_page_bytes": 9}\n'
    assert values.program(said) == {"program": {"tool": "xz", "huge_page_bytes": 9}}
    assert values.program(b'begun\n{"rate": 1}\n') == {}
    with pytest.raises(BrokenLogError, match="no JSON"):
        values.program(b'{"tool": "xz", broken}\n')


# Two turns, whose freezes were seen 600 µs after they were asked for.
TURNS = [[1000, 51000, 51600], [90000, 140000, 140600]]


@pytest.mark.parametrize(
    ("turns", "runs", "counted"),
    [
        # (begin, end) of each run, in microseconds; what counts of them all, None where they are refused.
        (TURNS, [(1200, 40000)], 38800),
        (TURNS, [(1200, 100000)], 49800 + 10000),
        # An end, or a begin, between the asking and the freeze; what is done there counts in no turn.
        (TURNS, [(1200, 51040)], 49800),
        (TURNS, [(1200, 140600)], 49800 + 50000),
        (TURNS, [(1200, 51040), (51050, 100000)], 49800 + 10000),
        (TURNS, [(1200, 51700)], None),
        (TURNS, [(60000, 100000)], None),
        (TURNS, [(1200, 140700)], None),
        (TURNS, [(500, 40000)], None),
        (TURNS, [(1200, 40000), (39000, 45000)], None),
        # As older logs have them.
        ([[1000, 51600], [90000, 140600]], [(1200, 140600)], 50400 + 50600),
        ([[1000, 51600], [90000, 140600]], [(1200, 51700)], None),
        ([[1000, 51000, 51600], [90000, 140600]], [(1200, 40000)], None),
        ([[1000, 51000, 50000]], [(1200, 40000)], None),
        ([[1000, 51000, 51600, 51700]], [(1200, 40000)], None),
        ([], [(1200, 40000)], None),
    ],
)
def test_of_a_run_in_turns_that_counts_for_which_it_went_on(turns, runs, counted):
    from kit.checks import BrokenLogError as Broken
    from kit.logs import Log, worked

    told = [{"seconds": 1e-6 * (ended - begun), "ended": ended} for begun, ended in runs]
    log, seconds = Log({"turns": [{"turns": turns}]}, []), sum(run["seconds"] for run in told)
    if counted is None:
        with pytest.raises(Broken):
            worked(log, told, seconds)
    else:
        assert worked(log, told, seconds) == pytest.approx(1e-6 * counted)


@pytest.mark.parametrize("name", ["linpack/turns", "pxz/turns"])
def test_a_log_whose_turns_end_before_the_freeze_has_shorter_runs(name):
    one = BY_NAME[name]
    *lines, last = one.lines
    turns = json.loads(last)["turns"]
    # The last run ends in the last turn, and before the freeze of it.
    asked = [[begun, ended - 500, ended] for begun, ended in turns[:-1]] + [
        [turns[-1][0], turns[-1][1], turns[-1][1]]
    ]
    found = one.parse([*lines, json.dumps({"turns": asked})])
    before, after = ({each.metric: each.value for each in values} for values in (one.values, found))
    assert before.keys() == after.keys()
    assert all(1 < after[metric] / before[metric] < 1.02 for metric in before)
