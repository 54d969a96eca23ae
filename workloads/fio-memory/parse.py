"""The workload fio on a disk in memory: the log and its values are those of fio."""

from fio.parse import parse

__all__ = ["parse"]
