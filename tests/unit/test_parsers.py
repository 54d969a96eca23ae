"""The workloads' parsers on captured logs, and the values of a cell with laps and systems."""

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
from strata.measure import parsing
from strata.measure.parsing import BrokenLogError, Value
from strata.util.errors import UserError

each_log = pytest.mark.parametrize("log", LOGS, ids=list(BY_NAME))


def declared(name):
    """The metrics of a workload, as they are in a plan."""
    declaration = projects.ROOT / f"workloads/{name}/workload.yaml"
    return yaml.safe_load(declaration.read_text())["metrics"]


def by_key(value):
    return value.key


def test_every_workload_has_captured_logs_and_no_other_folder_is_one(monkeypatch):
    monkeypatch.chdir(projects.ROOT)
    assert workload.list_workloads() == sorted({log.workload for log in LOGS})
    logs = projects.ROOT.glob("workloads/*/fixtures/*.log")
    assert {f"{path.parent.parent.name}/{path.stem}" for path in logs} == set(BY_NAME)


@each_log
def test_a_captured_log_holds_the_known_values(log):
    assert same(log.parse(), log.values)


@each_log
def test_the_values_are_those_of_the_declared_metrics(log):
    record = {"parameters": log.parameters, "commands": [{"step": "run"}]}
    # A small run does some operations too rarely to report them.
    more = dict(map(workload.parse_metric_pattern, log.parameters.get("patterns", [])))
    named = {**declared(log.workload), **more}
    metrics = {name: entry | {"optional": True} for name, entry in named.items()}
    parse = parsing.load_parser(log.workload)
    entries = parsing.parse_log("\n".join(log.lines).encode(), record, metrics, parse)
    values = [value for value, _, _ in entries]
    assert sorted(values, key=by_key) == sorted(log.parse(), key=by_key)
    order = [list(metrics).index(value.metric) for value in values]
    assert order == sorted(order)


@each_log
def test_line_endings_and_what_tools_print_beside_their_results_do_not_matter(log):
    for ending in ("\r", " ", "\t"):
        assert same(log.parse([line + ending for line in log.lines]), log.values)
    # Bytes that are no text come as lone surrogates.
    first, *rest = log.lines
    noisy = ["warning: clock skew", "", first, "[1] {not json", "\udcff\udcfe", *rest, "done."]
    assert same(log.parse(noisy), log.values)


@each_log
def test_the_log_of_another_workload_is_refused(log):
    for other in LOGS:
        if other.workload != log.workload:
            with_parameters = log._replace(parameters={**other.parameters, **log.parameters})
            assert with_parameters.parse(other.lines) is None


# Parameters that leave no trace in a log: ports, warm-ups, settings of a server, and limits that
# may not be reached.
TRACELESS = {
    "auction": """web_port broker_ports processes poll_seconds item_seconds buffer_bytes resolution
        confirmations most_users data_seed laps""",
    "calls": "laps",
    "cloudstone": """roles geocoder_ports database_ports ramp_seconds workers children buffer_bytes
        log_bytes mix_points loaded_users laps""",
    "command": "warmups laps limit",
    "dvdstore": "buffer_bytes laps",
    "files": "laps",
    "fio": "laps",
    "linpack": "min_trials min_seconds",
    "logs": "laps",
    "mysql": "port warmup_seconds",
    "netperf": "warmup_seconds port",
    "nuttcp": "warmup_seconds measures port data_ports paced_ports netserver_port server_cpu",
    "postgres": "port warmup_seconds laps",
    "quota": "laps",
    "ramdisk": "disk_bytes laps",
    "redis": "warmup_requests port server_cpu",
    "redis-scaleout": "pinned_ports stats_port settle_seconds laps",
    "web": "port server_cpu laps",
}


@each_log
def test_a_log_of_other_parameters_than_the_cell_s_is_refused(log):
    traceless = TRACELESS.get(log.workload, "").split()
    for key, value in log.parameters.items():
        if key == "patterns":
            # They decide what is read, not what runs.
            continue
        others: list = []
        if isinstance(value, int | float):
            others = [2 * value + 1]
        elif isinstance(value, list):
            others = [value[1:], [*value, value[0]]]
        for other in others:
            values = log.parse(**{key: other})
            assert (values is None) or (key in traceless and same(values, log.values)), key
        without = {name: other for name, other in log.parameters.items() if name != key}
        values = log._replace(parameters=without).parse()
        assert values is None or same(values, log.values)


# Edits of captured logs (a text that is replaced wherever it is), each of which is refused: a wrong
# result by the program itself, a contradiction to the rest of the log, or another unit.
REFUSED = {
    "auction/tiny": [
        ('"wrong": 0', '"wrong": 1'),
        ('"found": 400', '"found": 401'),
        ('"passed": true', '"passed": false'),
        ('"bids": 170}', '"bids": 171}'),
        ('"failing": []', '"failing": ["Login"]'),
        ('"bids": 10278', '"bids": 10277'),
        ('"mean_ms": ', '"mean_ms": 1'),
    ],
    "calls/tiny": [
        ('"tool": "strata-', '"tool": "'),
        ('"call": "again"', '"call": "touch"'),
        ('"count": 340000', '"count": 34000'),
        ("Seccomp:", "Cap:"),
    ],
    "cloudstone/tiny": [
        ('"broken": 0', '"broken": 1'),
        ('"busiest_share": 0.0399603', '"busiest_share": 0.95'),
        ('"person": 2505', '"person": 2506'),
        ('"busy_seconds": 54258.6', '"busy_seconds": 64258.6'),
        (
            '"comments_rating": 172, "broken": 0}\n{"done"',
            '"comments_rating": 173, "broken": 0}\n{"done"',
        ),
        ('"cpus": 2, "cycles": null}\n{"closed"', '"cpus": 3, "cycles": null}\n{"closed"'),
        ('"mean_ms": ', '"mean_ms": 1'),
    ],
    "command/tiny": [
        ('"run": 2', '"run": 3'),
        ('"kept": 1000', '"kept": 999'),
        ('"runs": 3', '"runs": 4'),
        ("rate = 12.5", "rate = fast"),
        ("rate = 12.5", "rate = 12.5.1"),
        ('"seconds": 0', '"seconds": 900'),
        ('{"done": true}', '{"done": false, "x": 1}'),
        ('"user_seconds": 0', '"user_seconds": "0"'),
    ],
    "dvdstore/tiny": [
        ('"lost": 0', '"lost": 1'),
        ('"fsync": "on"', '"fsync": "off"'),
        ('"new_cents": 21488762', '"new_cents": 21488761'),
        ('"busiest_share": 0.245383', '"busiest_share": 0.92'),
        ('"size": "small", "data_seed": 1, "users"', '"size": "medium", "data_seed": 1, "users"'),
        ('"orders": 552', '"orders": 551'),
        ('"searches": 1672', '"searches": 1671'),
        ('448, "sum_seconds": 1.30345837', '400, "sum_seconds": 1.163804'),
        ('"opcache": "on"', '"opcache": "off"'),
        ('"php": "8.4.28", "opcache": "on"}\n{"point"', '"php": "8.3", "opcache": "on"}\n{"point"'),
        ('"opened": 1', '"opened": 2'),
        (
            '{"checked": 1, "operations": ["login", "new"]}',
            '{"checked": 1, "operations": ["login"]}',
        ),
        ('"drove": "users-2"', '"drove": "users-4"'),
        ('{"end": "users-2"}', '{"end": "users-4"}'),
        ('"came": 4', '"came": 5'),
        ('"rate": 279.0', '"rate": 280.0'),
        ('"mean_ms": ', '"mean_ms": 1'),
    ],
    "files/tiny": [
        (
            '"files": 200, "bytes": 686951, "sha256": "66d9',
            '"files": 199, "bytes": 686951, "sha256": "66d9',
        ),
        ('"left": false', '"left": true'),
        ("tar (GNU tar)", "busybox"),
        ('"step": "stat"', '"step": "read"'),
        ("Linux", "linux"),
        ('"printed": [', '"printed": ["Linux", '),
        ('"seconds": 0.05141796', '"seconds": 0.0514198'),
    ],
    "fio/fsync": [
        ('"fsync" : "1"', '"fsync" : "0"'),
        ('"ioengine" : "psync"', '"ioengine" : "libaio"'),
    ],
    "fio/tiny": [
        ('"error" : 0', '"error" : 5'),
        ('"short_ios" : 0', '"short_ios" : 1'),
        ('"direct" : "1"', '"direct" : "0"'),
        ('"fio version" : "fio-3.39"', '"fio version" : "fio-3.38"'),
        ('"total_ios" : 0', '"total_ios" : 1'),
        ('"iodepth" : "2"', '"iodepth" : "1"'),
        ("fio-3.39", "dd-3.39"),
        (
            '"layout": "/data/fio.bin", "bytes": 134217728',
            '"layout": "/data/fio.bin", "bytes": 134217729',
        ),
        ('"sequential-fill"', '"seq-read-1"'),
        ('"max" : 8653388', '"max" : 18000000000'),
        ('"runtime" : 5', '"runtime" : 5000'),
    ],
    "linpack/slices": [
        ('"ended": 1795746225466643, ', ""),
    ],
    "linpack/tiny": [
        ('"verified": true', '"verified": false'),
        ('"residual": 0.001838', '"residual": 17'),
        ('"tool": "strata-', '"tool": "'),
        ('"n": 1000, "trials": 14', '"n": 2000, "trials": 14'),
        ('"n": 1000, "trial": 7', '"n": 900, "trial": 7'),
        ('"n": 1000', '"n": 2000'),
        ('"trial": 7', '"trial": 8'),
        ('"trials": 14', '"trials": 15'),
        ('"gb_per_second": 5.08067', '"gb_per_second": 5.09'),
        (
            '{"done": true}',
            '{"n": 1000, "trial": 1, "seconds": 0.020727677, "residual": 0}\n{"done": true}',
        ),
        ('"gflops_of_all": ', '"gflops_of_all": 1000'),
    ],
    "logs/tiny": [
        ('"tool": "strata-', '"tool": "'),
        ('"bytes": 80', '"bytes": 8'),
        ('"to": "engine"', '"to": "nobody"'),
        ('"lines": 20000', '"lines": 19999'),
        ('"rate": ', '"rate": 1'),
    ],
    "mysql/tiny": [
        ('"reconnects": 0', '"reconnects": 1'),
        ('"ignored": 0', '"ignored": 1'),
        ("Threads started!", "Threads started!\nFATAL: the server went away"),
        ('"commits": 3223', '"commits": 3222'),
        ('"commits": 3223, "pages_from_disk": 316', '"commits": 3223, "pages_from_disk": 317'),
        ('"encryption": "DISABLED"', '"encryption": "YES"'),
        ("-MariaDB-", "-MySQL-"),
        ('"rows_of_index": 10000', '"rows_of_index": 9999'),
        ('"rows_left_of_index": 10000', '"rows_left_of_index": 9999'),
        (
            '"threads": 2, "seed": 4834262, "transactions"',
            '"threads": 2, "seed": 4834263, "transactions"',
        ),
        ('"accounted": "read-only-2"', '"accounted": "read-only-8"'),
        ('"test": "read-only", "threads": 2', '"test": "read-write", "threads": 2'),
        ('"sum_ms": ', '"sum_ms": 1'),
    ],
    "netperf/tiny": [
        ("PROTOCOL=UDP", "PROTOCOL=TCP"),
        ("Netperf version", "nuttcp version"),
        ("PROTOCOL=UDP", "PROTOCOL=UDP\nPROTOCOL=UDP"),
        ("ELAPSED_TIME=1.00", "ELAPSED_TIME=0.50"),
        ('"point": "TCP_RR"', '"point": "UDP_RR"'),
        ("RECV_CALLS=", "RECV_CALLS=1"),
        ("MEAN_LATENCY=", "MEAN_LATENCY=9"),
        ("RT_LATENCY=", "RT_LATENCY=1"),
    ],
    "web/tiny": [
        ('"point": "100kB"', '"point": "small"'),
        ('"bytes": 100237', '"bytes": 99237'),
        ('"closed": 343', '"closed": 344'),
        ('"seconds": 0.203573', '"seconds": 0.103573'),
        ('"offered": 842.447841', '"offered": 1684.89568'),
        ('"paced": 169, "seconds": 0.199534', '"paced": 338, "seconds": 0.399068'),
        ('"p50": 0.143677', '"p50": 8.7'),
    ],
    "nuttcp/tiny": [
        ("megabytes=599.0000", "nuttcp: no server, classic_mode\nmegabytes=599.0000"),
        ("REMOTE_BYTES_XFERD=724303872", "REMOTE_BYTES_XFERD=124303872"),
        ("DIRECTION=Receive", "DIRECTION=Send"),
        ('"test": "TCP_STREAM"', '"test": "TCP_RR"'),
        ("rate_Mbps=7512.9494 tx_cpu", "rate_Mbps=7512.949\n4 tx_cpu"),
        ('"observed": "cpu"', '"observed": "gpu"'),
        (
            "megabytes=62.0517 real_seconds=1.04 rate_Mbps=499.9803",
            "megabytes=82.0517 real_seconds=1.04 rate_Mbps=661.8",
        ),
        (
            '2288.06, "steal_seconds": 4.46, "cpus": 2, "cycles": null',
            '2288.06, "steal_seconds": 4.46, "cpus": 2, "cycles": 5',
        ),
        ('"tool": "nuttcp-', '"tool": "iperf-'),
        ("megabytes=599.0000 real_seconds=1.00", "megabytes=59.0000 real_seconds=0.1"),
        ("megabytes=599.0000", "megabytes=590.0000"),
        ("THROUGHPUT=8443.19", "THROUGHPUT=8343.19"),
        ("rate_Mbps=", "rate_Mbps=1"),
        (" rx_cpu=", " cpu="),
    ],
    "postgres/tiny": [
        ("PostgreSQL 17", "MySQL 17"),
        ('"accounts" : 400000', '"accounts" : 399999'),
        ('"fsync" : "on"', '"fsync" : "off"'),
        ('"database_bytes" : 70792883', '"database_bytes" : 170792883'),
        ("query mode: prepared", "query mode: simple"),
        ("TPC-B (sort of)", "simple update"),
        ("number of failed transactions: 0", "number of failed transactions: 1"),
        ('{"history" : ', '{"history" : 1'),
        ("duration: 1 s", "duration: 2 s"),
        ("tps = ", "tps = 1"),
        ("latency average = 0.038", "latency average = 0.039"),
        ('"balances" : [', '"balances" : [1'),
    ],
    "pxz/slices": [
        ("[[1795746166022779, ", "[[1795746166078060, "),
        ("[[1795746166022779, ", "[["),
    ],
    "pxz/tiny": [
        ('"round_trip": true', '"round_trip": false'),
        ('"gcide"', '"given/data/enwik9"'),
        ('"tool": "xz ', '"tool": "gzip '),
        ('"level": 2, "bytes": 25165824', '"level": 2, "bytes": 25165823'),
        ('"bytes_of_all": 25165824', '"bytes_of_all": 25165825'),
        ('"passes": 1', '"passes": 2'),
        ('"pass": 1', '"pass": 2'),
    ],
    "quota/tiny": [
        ('"load": "80"', '"load": "50"'),
        ('"requests": 15', '"requests": 16'),
        ("[92.185, ", "["),
        ("[92.185, ", "[0.092185, "),
        ('"due_seconds": 0.66879', '"due_seconds": 6.6879'),
        ('"workers": 2', '"workers": 1'),
        ('"neighbour": "busy"', '"neighbour": "idle"'),
        ('"cpu_seconds": 1.2344', '"cpu_seconds": 0.12344'),
        ('"peak_bytes": 806912, "throttled": 3', '"peak_bytes": 806912, "throttled": 4'),
    ],
    "randomaccess/tiny": [
        ('"tool": "strata-', '"tool": "'),
        ('"verified": true', '"verified": false'),
        ('"wrong_share": 4.35e-06', '"wrong_share": 0.02'),
        ('"pass": 4', '"pass": 5'),
        ('"ended": 1795746139670875', '"ended": 1795746119670875'),
        ('"gups_of_all": 0.', '"gups_of_all": 0.000'),
    ],
    "redis-scaleout/tiny": [
        ('"failed": 0', '"failed": 1'),
        ('"kept": [55,9]', '"kept": [64,0]'),
        ('"point": "half"', '"point": "double"'),
        ("redis-benchmark ", "memtier "),
        ('"kept": [64]', '"kept": [32,32]'),
        ('"kept": [55,9]', '"kept": [55,8]'),
        ('{"server": 1,', '{"server": 2,'),
        ('"processes": 8', '"processes": 9'),
        ('"misses": 162', '"misses": 161'),
        ('"proxy_share": 4.9455', '"proxy_share": 105.5'),
        ('"seconds": 3.310042', '"seconds": 3310.042'),
        ('"checked": 64, "kept": [64]', '"checked": 63, "kept": [63]'),
    ],
    "redis/tiny": [
        ("failed_calls=0", "failed_calls=1"),
        ("rejected_calls=0", "rejected_calls=1"),
        ("cmdstat_get:calls=10000", "cmdstat_get:calls=9999"),
        ("keyspace_hits:", "keyspace_hits:1"),
        ("redis-benchmark ", "memtier "),
        ('"connections": 1, "pipeline": 1', '"connections": 1, "pipeline": 2'),
        ('"p95_latency_ms","p99_latency_ms"', '"p99_latency_ms","p95_latency_ms"'),
        ("cmdstat_get:calls=10000", "cmdstat_get:calls=10000\ncmdstat_del:calls=1"),
        ('"8354.22","', '"0","'),
        ('","0.116"', '","0.000116"'),
    ],
    "density/tiny": [
        ('"systems": 4, "loaded": 0', '"systems": 3, "loaded": 0'),
        ('"systems": 4, "loaded": 2', '"systems": 5, "loaded": 2'),
        ('"loaded": 4', '"loaded": 5'),
        ('"available_bytes": 16', '"available_bytes": -16'),
        ('"group_bytes": 5320704', '"group_bytes": "5320704"'),
    ],
    "start/tiny": [
        ('"first_seconds": 0.', '"first_seconds": 9.'),
        ('{"start": 4, "runtime": "lxc"', '{"start": 3, "runtime": "lxc"'),
        (
            '"together": 8, "runtime": "crun", "starts": 8',
            '"together": 8, "runtime": "crun", "starts": 4',
        ),
        ('{"done": true}', '{"done": false}'),
    ],
    "startup/tiny": [
        ('"created"', '"moon"'),
        ('"command_seconds": 0.079494', '"command_seconds": "1"'),
        ('"removal_seconds": 0.198', '"removal_seconds": 0'),
    ],
    "stream/tiny": [
        ('"verified": true', '"verified": false'),
        ('"error": 0', '"error": 1e-12'),
        ('{"done": true}', '{"done": false}'),
        ('"gbps": ', '"gbps": 1000'),
    ],
}
EDITS = [(name, *edit) for name, edits in REFUSED.items() for edit in edits]


@pytest.mark.parametrize(("name", "old", "new"), EDITS)
def test_errors_and_changed_units_are_refused(name, old, new):
    text = "\n".join(BY_NAME[name].lines)
    assert old in text
    assert BY_NAME[name].parse(text.replace(old, new).split("\n")) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("12.5", 12.5), ("1.25e1", 12.5), (".5", 0.5), ("3.", 3), ("nan", None), ("inf", None),
     ("1_250", None), ("1e999", None), ("1,250", None), ("٣", None)],
)  # fmt: skip
def test_a_metric_of_a_command_is_a_decimal_number(text, number):
    log = BY_NAME["command/tiny"]
    lines = [line.replace("rate = 12.5", f"rate = {text}") for line in log.lines]
    values = log.parse(lines, patterns=[r"rate=rate = (\S+)"])
    rates = [value.value for value in values or [] if value.metric == "rate"]
    assert rates == ([] if number is None else [number])


# A number of a captured log, another that is still taken in its place, and one just beyond the
# tolerance.
EDGES = [
    ("cloudstone/tiny", '"late_seconds": ', "0.000661993917", "0", "0.101"),
    ("stream/tiny", '"gbps": ', "53.5125", "53.5128", "53.5134"),
    ("stream/tiny", '"gbps": ', "53.5125", "53.5122", "53.5116"),
    ("stream/tiny", '"error": ', "0", "1.1e-13", "1.2e-13"),
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
    log, text = BY_NAME[name], "\n".join(BY_NAME[name].lines)
    assert before + was in text
    for number, good in ((taken, True), (refused, False)):
        edited = text.replace(before + was, before + number, 1)
        assert (log.parse(edited.split("\n")) is not None) == good


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
def test_a_run_that_did_less_than_its_parameters_say_is_refused(name, key, taken, refused):
    assert BY_NAME[name].parse(**{key: taken}) is not None
    assert BY_NAME[name].parse(**{key: refused}) is None


def mixed(reads, writes):
    """The lines of fio's log with so many operations in the mixed job."""
    log = BY_NAME["fio/tiny"]
    head, name, rest = "\n".join(log.lines).partition('{"point": "mixed-')
    start, end = rest.index("\n{\n"), rest.rindex("\n}\n")
    output = json.loads(rest[start : end + 2])
    for direction, count in (("read", reads), ("write", writes)):
        side = output["jobs"][0][direction]
        size = 4096 * count
        side |= {"io_bytes": size, "bw_bytes": 1000 * size / side["runtime"]}
        side["clat_ns"] |= {"N": count, "bins": {"1000": count}}
    edited = f"{rest[:start]}\n{json.dumps(output, indent=1)}{rest[end + 2 :]}"
    return (head + name + edited).split("\n")


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
        edited = text.replace('"N": 7000', f'"N": {7000 + more}')
        edited = edited.replace('"1000": 7000', f'"1000": {7000 + more}')
        assert (log.parse(edited.split("\n")) is not None) == fits


def test_a_run_that_was_shorter_than_its_parameters_say_is_refused():
    log = BY_NAME["fio/tiny"]
    text = "\n".join(log.lines)
    longer = text.replace('"500ms"', '"550ms"').replace('"seconds": 0.5', '"seconds": 0.55')
    assert same(log.parse(longer.split("\n"), seconds=0.55), log.values)
    longer = text.replace('"500ms"', '"1000ms"').replace('"seconds": 0.5', '"seconds": 1')
    assert log.parse(longer.split("\n"), seconds=1) is None


@pytest.mark.parametrize(("busy", "fits"), [(0, False), (0.5, True), (2.05, True), (2.5, False)])
def test_processors_cannot_be_idle_nor_busier_than_all_the_time(busy, fits):
    from kit.logs import read_cpu_usage

    seen = [
        {"seconds": 1, "busy_seconds": 10, "cpus": 2},
        {"seconds": 2, "busy_seconds": 10 + busy, "cpus": 2},
    ]
    if fits:
        assert read_cpu_usage(seen, 1) == (pytest.approx(busy), pytest.approx(busy / 2))
    else:
        with pytest.raises(BrokenLogError):
            read_cpu_usage(seen, 1)


def test_the_load_generator_may_be_busy_only_where_that_bounds_no_result():
    log = BY_NAME["auction/tiny"]
    users_of_probes = (200, 400, 800, 600)

    def busy_lines(users):
        drove = f'{{"drove": "probe-{users_of_probes.index(users) + 1}"'
        lines = []
        for line in log.lines:
            busy = re.sub('(?<="busiest_share": )[0-9.]+', "0.95", line)
            lines.append(busy if line.startswith(drove) else line)
        return lines

    assert log.parse(busy_lines(600)) is None
    assert same(log.parse(busy_lines(400)), log.values)


def test_a_latency_counts_where_ten_are_expected_in_a_lap_however_many_there_were():
    from kit.applications import LoadResults

    operations = {"often": {"count": 7}, "seldom": {"count": 12}, "never": {"count": 0}}
    load = types.SimpleNamespace(operations=operations, users=20, seconds=10)
    mix = {"often": 10, "seldom": 9.9, "never": 80.1}
    assert list(LoadResults.select_frequent_operations(load, mix, cycle=2)) == ["often"]


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


def parsed(text, commands=({"step": "run"},), parts=1, parse=numbers, metrics=METRICS):
    """The values of a cell's log."""
    record = {"parameters": {}, "commands": list(commands), "system": {"count": parts}}
    log = text.encode(errors="surrogateescape")
    return [value for value, _, _ in parsing.parse_log(log, record, metrics, parse)]


def test_values_are_in_the_order_of_the_metrics_and_each_in_that_of_the_log():
    values = parsed("time s 2 at=2\ntime s 1 at=1\nrate 1/s 3\n")
    assert values == [
        Value("rate", "1/s", 3),
        Value("time", "s", 2, {"at": "2"}),
        Value("time", "s", 1, {"at": "1"}),
    ]


LAPS = [{"step": "prepare"}, {"step": "run", "lap": 1}, {"step": "run", "lap": 2}]
LAP_1, LAP_2 = (f'{{"lap": {lap}, "how": "whole"}}\n' for lap in (1, 2))
SLICED = LAP_1.replace("whole", "slices") + "rate 1/s 7\ntime s 7\n"


def test_laps_are_averaged():
    text = f"{LAP_1}rate 1/s 1\ntime s 1\n{LAP_2}rate 1/s 3\ntime s 3\n"
    assert parsed(text, LAPS) == [Value("rate", "1/s", 1.5), Value("time", "s", 2)]
    # Each counts, whatever its number.
    assert parsed(text.replace('"lap": 2', '"lap": 1'), LAPS) == parsed(text, LAPS)
    # What was printed before the laps belongs to each of them.
    text = f"time s 4\n{LAP_1}rate 1/s 1\n{LAP_2}rate 1/s 1\n"
    assert parsed(text, LAPS)[1] == Value("time", "s", 4)


def test_runs_in_slices_and_whole_runs_have_values_of_their_own():
    sliced = SLICED + '{"slices": []}\n'
    text = sliced + f"{LAP_1}rate 1/s 1\ntime s 1\n" + f"{LAP_2}rate 1/s 3\ntime s 3\n" + sliced
    record = {"parameters": {}, "commands": LAPS}
    values = parsing.parse_log(text.encode(), record, METRICS, numbers)
    assert [(value.metric, value.value, way, laps) for value, way, laps in values] == [
        ("rate", pytest.approx(7), "slices", [7, 7]),
        ("rate", 1.5, "whole", [1, 3]),
        ("time", 7, "slices", [7, 7]),
        ("time", 2, "whole", [1, 3]),
    ]


def test_of_a_percentile_the_median_of_the_laps_counts():
    laps = [{"step": "run", "lap": lap} for lap in (1, 2, 3)]
    metrics = {"p99": {"unit": "ms", "statistic": "percentile"}}
    text = "".join(
        f'{{"lap": {lap}, "how": "whole"}}\np99 ms {ms}\n' for lap, ms in ((1, 2), (2, 90), (3, 4))
    )
    assert parsed(text, laps, metrics=metrics) == [Value("p99", "ms", 4)]
    # One that a lap has too few samples for is left out.
    assert parsed(text + "p99 ms 9 at=2\n", laps, metrics=metrics) == [Value("p99", "ms", 4)]
    # A value that is not optional is missed.
    with pytest.raises(BrokenLogError, match="no value of p99"):
        parsed(text.replace("p99 ms 90", "p99 ms 90 at=2"), laps, metrics=metrics)


ALL_LAPS = f"rate 1/s 1\ntime s 1\n{LAP_1}{LAP_2}"


@pytest.mark.parametrize(
    "text",
    [
        ALL_LAPS + "memory MB 1\n",
        ALL_LAPS + "time s 1 at=2\n",
        # A run in slices says when each of them was, and no other run does.
        ALL_LAPS + '{"slices": []}\n',
        SLICED,
    ],
)
def test_laps_that_differ_are_refused(text):
    assert parsed(ALL_LAPS, LAPS)
    with pytest.raises(BrokenLogError):
        parsed(text, LAPS)


def outputs(*systems):
    """A log with the output of each of these systems."""
    return "".join(
        f'{{"system": {system}}}\nrate 1/s {1 + (system or 0)}\ntime s 1 at=1\n'
        for system in systems
    )


def test_the_system_is_a_factor_where_several_ran_at_once():
    commands = [{"step": "run", "system": 0}, {"step": "run", "system": 1}]
    values = parsed(outputs(0, 1), commands, parts=2)
    assert values[:2] == [
        Value("rate", "1/s", 1, {"system": 0}),
        Value("rate", "1/s", 2, {"system": 1}),
    ]
    assert [value.factors for value in values[2:]] == [
        {"at": "1", "system": system} for system in (0, 1)
    ]


@pytest.mark.parametrize("factors", ["at=1", None, {"at": None}, {"at": [1]}])
def test_factors_that_are_no_mapping_to_numbers_or_texts_are_refused(factors):
    parse = parsing.guard_parser(lambda lines, parameters: [Value("rate", "1/s", 1.0, factors)])
    with pytest.raises(BrokenLogError):
        parsed("", parse=parse, metrics={"rate": {"unit": "1/s"}})


def test_a_load_generator_reaches_all_systems():
    commands = [
        {"step": "prepare", "system": 0},
        {"step": "prepare", "system": 1},
        {"step": "run", "at": "client"},
    ]
    text = (
        'time s 1\n{"system": 0}\ntime s 7\n{"system": 1}\ntime s 8\n{"system": null}\nrate 1/s 5\n'
    )
    assert parsed(text, commands, parts=2) == [Value("rate", "1/s", 5), Value("time", "s", 1)]


def test_what_was_observed_of_the_host_belongs_to_each_system():
    def observed(lines, parameters):
        assert [line for line in lines if line.startswith("{")] == ['{"observed": "cpu"}'] * 2
        return numbers(lines, parameters)

    around = '{"system": null}\n{"observed": "cpu"}\n'
    commands = [{"step": "run", "system": 0}, {"step": "run", "system": 1}]
    assert len(parsed(around + outputs(0, 1) + around, commands, parts=2, parse=observed)) == 4


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
    assert parsed(GOOD)
    with pytest.raises(BrokenLogError):
        parsed(text)


# Loading


@pytest.mark.parametrize("text", [None, "def parse(:\n", "import nothing_like_this\n", "1 / 0\n"])
def test_a_parser_that_cannot_be_loaded_is_told_by_its_file(tmp_path, text):
    folder = tmp_path / "workloads/own-one"
    folder.mkdir(parents=True)
    if text is not None:
        (folder / "parse.py").write_text(text)
    with pytest.raises(UserError, match=re.escape(str(folder / "parse.py"))):
        parsing.load_parser("own-one", str(tmp_path))


def test_parsers_need_the_standard_library_alone():
    code = (
        "from strata.measure import parsing; import sys; [*map(parsing.load_parser, sys.argv[1:])]"
    )
    names = sorted({log.workload for log in captured.LOGS})
    subprocess.run([sys.executable, "-S", "-c", code, *names], cwd=projects.ROOT, check=True)


def test_a_program_s_facts_are_found_or_refused():
    log = b'begun\n{"tool": "xz"}\n{"tool": "other"}\n{"huge_page_bytes": 7}\n'
    log += b'{"huge_page_bytes": 9}\n'
    assert parsing.find_program_facts(log) == {"program": {"tool": "xz", "huge_page_bytes": 9}}
    assert parsing.find_program_facts(b'begun\n{"rate": 1}\n') == {}
    with pytest.raises(BrokenLogError, match="not JSON"):
        parsing.find_program_facts(b'{"tool": "xz", broken}\n')


# Two slices, whose freezes were seen 600 µs after they were requested.
SLICES = [[1000, 51000, 51600], [90000, 140000, 140600]]


@pytest.mark.parametrize(
    ("slices", "runs", "counted"),
    [
        # (begin, end) of each run, and the time that counts, in µs; None: they are refused.
        (SLICES, [(1200, 40000)], 38800),
        (SLICES, [(1200, 100000)], 49800 + 10000),
        # An end, or a begin, between the request and the freeze: work there counts in no slice.
        (SLICES, [(1200, 51040)], 49800),
        (SLICES, [(1200, 140600)], 49800 + 50000),
        (SLICES, [(1200, 51040), (51050, 100000)], 49800 + 10000),
        (SLICES, [(1200, 51700)], None),
        (SLICES, [(60000, 100000)], None),
        (SLICES, [(1200, 140700)], None),
        (SLICES, [(500, 40000)], None),
        (SLICES, [(1200, 40000), (39000, 45000)], None),
        ([[1000, 51000, 50000]], [(1200, 40000)], None),
        ([], [(1200, 40000)], None),
    ],
)
def test_the_time_of_a_run_in_slices_counts_for_which_it_went_on(slices, runs, counted):
    from kit.checks import BrokenLogError as Broken
    from kit.logs import Log, compute_worked_seconds

    runs = [{"seconds": 1e-6 * (ended - begun), "ended": ended} for begun, ended in runs]
    log, seconds = Log({"slices": [{"slices": slices}]}, []), sum(run["seconds"] for run in runs)
    if counted is None:
        with pytest.raises(Broken):
            compute_worked_seconds(log, runs, seconds)
    else:
        assert compute_worked_seconds(log, runs, seconds) == pytest.approx(1e-6 * counted)


@pytest.mark.parametrize("name", ["linpack/slices", "pxz/slices"])
def test_a_log_whose_slices_end_before_the_freeze_has_shorter_runs(name):
    log = BY_NAME[name]
    *lines, last = log.lines
    *slices, final = json.loads(last)["slices"]
    # The last run ends in the last slice, and before its freeze.
    earlier = [[begun, requested - 500, frozen] for begun, requested, frozen in slices]
    shorter = log.parse([*lines, json.dumps({"slices": [*earlier, final]})])
    before = {value.metric: value.value for value in log.values}
    after = {value.metric: value.value for value in shorter}
    assert before.keys() == after.keys()
    assert all(1 < after[metric] / before[metric] < 1.02 for metric in before)
