"""STREAM: the rate of each of the four kernels, over all trials and in the best one."""

from kit.checks import number, require, require_asked, require_close, require_equal
from kit.logs import Object, Value, read, value

# Bytes of an iteration: J. D. McCalpin, Memory bandwidth and machine balance in current high performance computers,
# IEEE TCCA Newsletter, 1995.
BYTES = {"copy": 16, "scale": 16, "add": 24, "triad": 24}


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """The rates, in GB/s."""
    log = read(lines, f" tool first( kernel){{{len(BYTES)}}} verified")
    [header], [check], kernels = log.objects["tool"], log.objects["verified"], log.objects["kernel"]
    require_equal("the program", header["tool"], "strata-stream")
    require_asked(header, parameters, "threads", "elements", "trials")
    require_equal("the kernels", [each["kernel"] for each in kernels], list(BYTES))
    good = check["verified"] is True and number(check, "error", zero=True) <= number(check, "limit")
    require(good, "the result was not verified")
    rates, best_rates = [], []
    for each in kernels:
        gigabytes = 1e-9 * BYTES[each["kernel"]] * header["elements"]
        seconds, best_seconds = number(each, "seconds"), number(each, "best_seconds")
        require_close("rate × time", number(each, "gbps") * seconds, gigabytes)
        require_close("best rate × time", number(each, "best_gbps") * best_seconds, gigabytes)
        ordered = best_seconds <= seconds <= number(each, "worst_seconds")
        require(ordered, "the mean of the trials is not between the best and the worst one")
        rates.append(value(each["kernel"], "GB/s", each["gbps"]))
        best_rates.append(value("best", "GB/s", each["best_gbps"], kernel=each["kernel"]))
    first = value("first", "GB/s", number(log.objects["first"][0], "first"))
    return [*rates, *best_rates, first]
