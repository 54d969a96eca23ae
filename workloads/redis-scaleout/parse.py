"""Redis at scale: requests per second of one server and of many, and who took the processors' time."""

from kit.checks import (
    number,
    numbers,
    require,
    require_close,
    require_equal,
    require_numbered,
    require_parameters,
)
from kit.logs import Object, Point, Value, read, value

# Processes of the load generator for each server.
PROCESSES = 4
# Keys that are set and read through each set-up before its load.
CHECKED = 64
# Per cent of the requests that are GET, and how far off it may be.
GETS, TOLERANCE = 75, 10


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """The values of all set-ups (`setup`, `servers`), and what many servers gain over one."""
    setups = parameters["setups"]
    servers = len(parameters["ports"]) * int(parameters.get("systems") or 1)
    counts = [1 if setup == "baseline" else servers for setup in setups]
    points = read(
        lines, "".join(f" point checked( server){{{count}}} total client end" for count in counts)
    ).points
    found, rates = [], {}
    for point, setup, count in zip(points, setups, counts, strict=True):
        values = measured(point, setup, count, parameters)
        rates[setup] = values[0].value
        found += values
    for setup in [setup for setup in setups if setup in ("scale-out", "pinned")]:
        found.append(
            value("speedup", "×", rates[setup] / rates["baseline"], setup=setup, servers=servers)
        )
    return found


def measured(point: Point, setup: str, count: int, parameters: Object) -> list[Value]:
    """The values of one set-up, of which the throughput is the first."""
    head, [checked, *servers, total, client] = point.head, point.objects
    require_equal("the set-up", head["point"], setup)
    require(head["client"].startswith("redis-benchmark "), "this is not a log of redis-benchmark")
    connections = parameters["baseline_connections" if setup == "baseline" else "connections"]
    wanted = {"servers": count, "connections": connections // 2 if setup == "half" else connections}
    require_parameters(head, wanted, *wanted)
    require_parameters(head, parameters, "pipeline", "data_bytes", "keys")
    # Each key lies in one server, and each server holds some.
    require_equal("the number of servers with keys", len(checked["kept"]), count)
    require(
        min(checked["kept"]) > 0, "a server holds none of the keys, so that it would take no part"
    )
    require_equal("the keys that were tried", number(checked, "checked"), CHECKED)
    require_equal("the keys in all servers", sum(checked["kept"]), CHECKED)
    require_numbered(servers, "server", 0)
    for server in servers:
        check_server(server, parameters["seconds"])
    require_close("the rate of all", number(total, "total"), sum(numbers(servers, "rate")))
    share = number(total, "get_share")
    require(
        abs(share - GETS) <= TOLERANCE, f"the share of GET should be {GETS} %, and is {share:.3g} %"
    )
    require_parameters(client, {"processes": PROCESSES * count}, "processes")
    at = {"setup": setup, "servers": count}
    found = [
        value("throughput", "requests/s", total["total"], **at),
        value("get_share", "%", total["get_share"], **at),
    ]
    for name in ("driver_share", "proxy_share"):
        percent = number(client, name, zero=True)
        require(percent <= 105, f"{name} is more than all of the time")
        if percent > 0:
            found.append(value(name, "%", percent, **at))
    return found


def check_server(server: Object, seconds: float) -> None:
    """Check the counters of one server."""
    gets, sets = number(server, "gets"), number(server, "sets")
    require_equal("failed requests", number(server, "failed", zero=True), 0)
    require(
        number(server, "seconds") >= seconds, f"a server was looked at for less than {seconds} s"
    )
    require_equal("the keys that a server looked up", server["hits"] + server["misses"], gets)
    require_close("a server's rate × time", number(server, "rate") * server["seconds"], gets + sets)
