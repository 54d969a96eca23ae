"""STREAM: the rate of each of the four kernels, over all trials and in the best one."""

from kit.checks import get_number, require, require_close, require_equal, require_parameters
from kit.logs import Object, Value, build_value, read_objects

# Bytes that an iteration of each kernel reads and writes: J. D. McCalpin, Memory bandwidth and
# machine balance in current high performance computers, IEEE TCCA Newsletter, 1995.
BYTES = {"copy": 16, "scale": 16, "add": 24, "triad": 24}


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return rates in GB/s: each kernel's mean and best rate, and the rate of the first trial.

    The kernels are in the order of `BYTES`, and their names are those of metrics in workload.yaml.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    # stream.c prints the objects.
    log = read_objects(lines, f" tool first( kernel){{{len(BYTES)}}} verified")
    [header], [check], [first] = (log.objects[key] for key in ("tool", "verified", "first"))
    kernels = log.objects["kernel"]
    require_equal("the program", header["tool"], "strata-stream")
    require_parameters(header, parameters, "threads", "elements", "trials")
    require_equal("the kernels", [line["kernel"] for line in kernels], list(BYTES))
    error = get_number(check, "error", allow_zero=True)
    is_verified = check["verified"] is True and error <= get_number(check, "limit")
    require(is_verified, "the result was not verified")
    rates, best_rates = [], []
    for line in kernels:
        gigabytes = 1e-9 * BYTES[line["kernel"]] * header["elements"]
        seconds, best_seconds = get_number(line, "seconds"), get_number(line, "best_seconds")
        require_close("rate × time", get_number(line, "gbps") * seconds, gigabytes)
        require_close("best rate × time", get_number(line, "best_gbps") * best_seconds, gigabytes)
        is_ordered = best_seconds <= seconds <= get_number(line, "worst_seconds")
        require(is_ordered, "the mean of the trials is not between the best and the worst one")
        rates.append(build_value(line["kernel"], "GB/s", line["gbps"]))
        best_rates.append(build_value("best", "GB/s", line["best_gbps"], kernel=line["kernel"]))
    return [*rates, *best_rates, build_value("first", "GB/s", get_number(first, "first"))]
