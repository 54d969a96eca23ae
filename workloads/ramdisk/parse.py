"""The workload fio on a RAM disk: its log differs from that of fio by the name of the file."""

from fio.parse import parse_jobs
from kit.logs import Object, Value


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the values of a log, as the parser of fio describes them.

    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    return parse_jobs(lines, parameters, "/data/ramdisk.bin")
