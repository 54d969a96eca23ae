"""STREAM: the best rate of each of the four kernels."""

from kit.checks import number, require, require_close, require_equal, require_parameters
from kit.logs import Object, Value, read, value

# Bytes of an iteration: J. D. McCalpin, Memory bandwidth and machine balance in current high performance computers,
# IEEE TCCA Newsletter, 1995.
BYTES = {"copy": 16, "scale": 16, "add": 24, "triad": 24}


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """The rates, in GB/s."""
    log = read(lines, f" tool first( kernel){{{len(BYTES)}}} verified")
    [header], [check], kernels = log.objects["tool"], log.objects["verified"], log.objects["kernel"]
    require_equal("the program", header["tool"], "strata-stream")
    require_parameters(header, parameters, "threads", "elements", "trials")
    require_equal("the kernels", [each["kernel"] for each in kernels], list(BYTES))
    good = check["verified"] is True and number(check, "error", zero=True) <= number(check, "limit")
    require(good, "the result was not verified")
    for each in kernels:
        gigabytes = 1e-9 * BYTES[each["kernel"]] * header["elements"]
        require_close("rate × time", number(each, "gbps") * number(each, "best_seconds"), gigabytes)
    first = value("first", "GB/s", number(log.objects["first"][0], "first"))
    return [*(value(each["kernel"], "GB/s", each["gbps"]) for each in kernels), first]
