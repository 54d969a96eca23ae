"""Redis at scale: requests per second of one server and of many, and the client's load."""

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

# Processes of the load generator for each server, as point.py starts them.
PROCESSES = 4
# Per cent of the requests that are GET, and the most by which the share may differ.
GETS, TOLERANCE = 75, 10
# Keys that point.py sets and reads through each set-up before its load: both must agree.
CHECKED = 64


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the values by `setup` and `servers`, and the speed-up of many servers over one.

    The points are in the order of the parameter `setups`, which always has a baseline.
    """
    setups = parameters["setups"]
    servers = len(parameters["ports"]) * int(parameters.get("systems") or 1)
    counts = [1 if setup == "baseline" else servers for setup in setups]
    orders = [f" point checked( server){{{count}}} total client end" for count in counts]
    points = read(lines, "".join(orders)).points
    values, rates = [], {}
    for point, setup, count in zip(points, setups, counts, strict=True):
        of_setup = measured(point, setup, count, parameters)
        rates[setup] = of_setup[0].value
        values += of_setup
    for setup in setups:
        if setup in ("scale-out", "pinned"):
            gain = rates[setup] / rates["baseline"]
            values.append(value("speedup", "×", gain, setup=setup, servers=servers))
    return values


def measured(point: Point, setup: str, count: int, parameters: Object) -> list[Value]:
    """Check one set-up, and return its values.

    count: number of its servers.
    The throughput comes first: :func:`parse` takes it from there.
    """
    head, [checked, *servers, total, client] = point.head, point.objects
    require_equal("the set-up", head["point"], setup)
    require(head["client"].startswith("redis-benchmark "), "this is not a log of redis-benchmark")
    connections = parameters["baseline_connections" if setup == "baseline" else "connections"]
    wanted = {"servers": count, "connections": connections // 2 if setup == "half" else connections}
    require_parameters(head, wanted, *wanted)
    require_parameters(head, parameters, "pipeline", "data_bytes", "keys")
    # Each key is in one server, and each server holds some.
    kept = checked["kept"]
    require_equal("the number of servers with keys", len(kept), count)
    require(min(kept) > 0, "a server holds none of the keys, so that it would take no part")
    require_equal("the keys that were tried", number(checked, "checked"), CHECKED)
    require_equal("the keys in all servers", sum(kept), CHECKED)
    require_numbered(servers, "server", 0)
    for server in servers:
        check_server(server, parameters["seconds"])
    require_close("the rate of all", number(total, "total"), sum(numbers(servers, "rate")))
    share = number(total, "get_share")
    reason = f"the share of GET should be {GETS} %, and is {share:.3g} %"
    require(abs(share - GETS) <= TOLERANCE, reason)
    require_parameters(client, {"processes": PROCESSES * count}, "processes")
    at = {"setup": setup, "servers": count}
    values = [
        value("throughput", "requests/s", total["total"], **at),
        value("get_share", "%", total["get_share"], **at),
    ]
    for name in ("driver_share", "proxy_share"):
        percent = number(client, name, zero=True)
        require(percent <= 105, f"{name} is more than all of the time")
        if percent > 0:
            values.append(value(name, "%", percent, **at))
    return values


def check_server(server: Object, seconds: float) -> None:
    """Raise BrokenLogError unless the counters of one server fit each other and show no failures.

    seconds: the least time between their two readings.
    """
    gets, sets = number(server, "gets"), number(server, "sets")
    require_equal("failed requests", number(server, "failed", zero=True), 0)
    enough = number(server, "seconds") >= seconds
    require(enough, f"a server was observed for less than {seconds} s")
    require_equal("the keys that a server looked up", server["hits"] + server["misses"], gets)
    require_close("a server's rate × time", number(server, "rate") * server["seconds"], gets + sets)
