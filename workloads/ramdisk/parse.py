"""The workload fio on a RAM disk, whose log differs from that of fio only in the file's path."""

from fio.parse import parse_jobs
from kit.logs import Object, Value


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the values of a log; see parse_jobs of the workload fio.

    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    return parse_jobs(lines, parameters, "/data/ramdisk.bin")
