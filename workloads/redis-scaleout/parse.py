"""Redis at scale: requests per second of one server and of many, and CPU usage at the client."""

from kit.checks import (
    get_number,
    get_numbers,
    require,
    require_close,
    require_equal,
    require_numbered,
    require_parameters,
)
from kit.logs import Object, Point, Value, build_value, read_objects

# Processes of the load generator for each server, as point.py starts them.
PROCESSES_OF_SERVER = 4
# The share (%) of the requests that are GET, and the largest accepted difference from it.
GET_SHARE = 75
GET_SHARE_TOLERANCE = 10
# The number of keys that point.py sets and reads through each set-up before its load; point.py has
# the same number.
CHECKED_KEYS = 64
# The largest CPU usage (%) that rounding and the times of two readings can explain.
MAX_CPU_PERCENT = 105


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the values by `setup` and `servers`, and the speed-up of many servers over one.

    The points are in the order of the parameter `setups`, which always has a baseline; point.py
    prints them.  workload.yaml declares the metrics.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    setups = parameters["setups"]
    servers = len(parameters["ports"]) * int(parameters["systems"])
    server_counts = [1 if setup == "baseline" else servers for setup in setups]
    orders = [f" point checked( server){{{count}}} total client end" for count in server_counts]
    points = read_objects(lines, "".join(orders)).points
    values, rates = [], {}
    for point, setup, count in zip(points, setups, server_counts, strict=True):
        check_settings(point, setup, count, parameters)
        rates[setup] = read_rate(point, count, parameters["seconds"])
        values += list_point_values(point, setup, count, rates[setup])
    for setup in setups:
        # `half` only shows whether servers or load generators are the bottleneck.
        if setup in ("scale-out", "pinned"):
            speedup = rates[setup] / rates["baseline"]
            values.append(build_value("speedup", "×", speedup, setup=setup, servers=servers))
    return values


def check_settings(point: Point, setup: str, servers: int, parameters: Object) -> None:
    """Raise BrokenLogError unless a point ran with the cell's settings, and all servers took part.

    point: the point of the set-up.
    setup: a value of the parameter `setups`.
    servers: number of servers of the set-up.
    parameters: the cell's parameters.
    A server takes part if it holds at least one of the checked keys.
    """
    # point.py prints the object of the checked keys first.
    head, key_check = point.head, point.objects[0]
    require_equal("the set-up", head["point"], setup)
    require(head["client"].startswith("redis-benchmark "), "this is not a log of redis-benchmark")
    connections = parameters["baseline_connections" if setup == "baseline" else "connections"]
    # The set-up "half" has half of the connections, rounded down as in point.py.
    if setup == "half":
        connections //= 2
    settings = {"servers": servers, "connections": connections}
    require_parameters(head, settings, *settings)
    require_parameters(head, parameters, "pipeline", "data_bytes", "keys")
    # The number of checked keys in each server; each key is in exactly one.
    key_counts = key_check["kept"]
    require_equal("the number of servers with keys", len(key_counts), servers)
    require(min(key_counts) > 0, "a server holds none of the keys, so that it would take no part")
    require_equal("the keys that were tried", get_number(key_check, "checked"), CHECKED_KEYS)
    require_equal("the keys in all servers", sum(key_counts), CHECKED_KEYS)


def read_rate(point: Point, servers: int, seconds: float) -> float:
    """Check the counts of a point, and return the requests per second of all its servers.

    servers: number of servers of the set-up.
    seconds: the least time between two readings of a server's counters.
    Raises BrokenLogError if counts contradict each other, or if the mix of requests is another one.
    """
    _, *lines, total, client = point.objects
    require_numbered(lines, "server", 0)
    for line in lines:
        check_server_counters(line, seconds)
    rate = get_number(total, "total")
    require_close("the rate of all", rate, sum(get_numbers(lines, "rate")))
    get_share = get_number(total, "get_share")
    reason = f"the share of GET should be {GET_SHARE} %, and is {get_share:.3g} %"
    require(abs(get_share - GET_SHARE) <= GET_SHARE_TOLERANCE, reason)
    require_parameters(client, {"processes": PROCESSES_OF_SERVER * servers}, "processes")
    return rate


def list_point_values(point: Point, setup: str, servers: int, rate: float) -> list[Value]:
    """Return the values of a set-up: throughput, share of GET, and CPU usage at the client (%).

    point: the point of the set-up.
    setup: a value of the parameter `setups`.
    servers: number of servers of the set-up.
    rate: requests per second of all servers.
    A usage of 0, for example of the proxies in a set-up without any, gives no value.
    Raises BrokenLogError if a usage is above `MAX_CPU_PERCENT`.
    """
    *_, total, client = point.objects
    factors = {"setup": setup, "servers": servers}
    values = [
        build_value("throughput", "requests/s", rate, **factors),
        build_value("get_share", "%", total["get_share"], **factors),
    ]
    for name in ("driver_share", "proxy_share"):
        percent = get_number(client, name, allow_zero=True)
        require(percent <= MAX_CPU_PERCENT, f"{name} is more than all of the time")
        if percent > 0:
            values.append(build_value(name, "%", percent, **factors))
    return values


def check_server_counters(server: Object, seconds: float) -> None:
    """Raise BrokenLogError unless the counters of a server agree and show no failed requests.

    server: point.py's object of the server, with the growth of each counter between two readings,
    and the `seconds` between these.
    seconds: the least accepted time between the readings.
    """
    gets, sets = get_number(server, "gets"), get_number(server, "sets")
    require_equal("failed requests", get_number(server, "failed", allow_zero=True), 0)
    is_long_enough = get_number(server, "seconds") >= seconds
    require(is_long_enough, f"a server was observed for less than {seconds} s")
    require_equal("the keys that a server looked up", server["hits"] + server["misses"], gets)
    require_close(
        "a server's rate × time", get_number(server, "rate") * server["seconds"], gets + sets
    )
