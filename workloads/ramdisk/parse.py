"""The workload fio on a RAM disk: the log and its values are those of fio."""

from fio.parse import parse

__all__ = ["parse"]
