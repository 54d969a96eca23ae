"""Logs: the rate at which a container's output is taken."""

from kit.checks import get_number, require, require_close, require_equal
from kit.logs import Object, Value, build_value, read_objects


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the rate at which the container engine, or a reader, took the lines of logs.c.

    The rate is in lines/s.
    workload.yaml declares the metric.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    # logs.c prints the objects.
    log = read_objects(lines, " tool lines")
    [header], [total] = log.objects["tool"], log.objects["lines"]
    require_equal("the program", header["tool"], "strata-logs")
    require_equal("the bytes of a line", header["bytes"], 80)
    require(header["to"] in ("engine", "reader"), "the log does not say who took the lines")
    require_equal("the number of lines", total["lines"], parameters["count"])
    rate, seconds = get_number(total, "rate"), get_number(total, "seconds")
    require_close("rate × time", rate * seconds, total["lines"])
    return [build_value("rate", "lines/s", rate)]
