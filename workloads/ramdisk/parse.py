"""The workload fio on a RAM disk: its log differs from that of fio by the name of the file."""

from fio import parse as fio
from kit.logs import Object, Value


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the values of a log of fio, whose parser describes them, on the RAM disk.

    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    return fio.parse(lines, parameters, file="/data/ramdisk.bin")
