"""What of Snakemake's messages reaches a person, and what a dry run says of the cells."""

import logging
from collections.abc import Callable

from snakemake_interface_logger_plugins.common import LogEvent

NOISE = (
    *("Select jobs to execute", "Execute ", "Using shell: ", "Conda environments: ignored"),
    # Of every job that goes to a node, which it has for itself.
    *("No wall time information given", "No job memory information"),
)


class News(logging.Filter):
    """Lets messages through that tell something which the cells' own lines do not.

    forecast: gives what a dry run says beside Snakemake's counts of jobs; None where the run is none.
    logger: Snakemake's own.
    """

    def __init__(self, logger: logging.Logger, forecast: Callable[[], str | None]) -> None:
        super().__init__()
        self._logger = logger
        self._forecast: Callable[[], str | None] | None = forecast

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a message is one of those; Snakemake's counts of jobs, which come twice, are followed by ours."""
        if self._forecast and getattr(record, "event", None) == LogEvent.RUN_INFO:
            text, self._forecast = self._forecast(), None
            if text:
                self._logger.info(text)
        return not record.getMessage().startswith(NOISE)
