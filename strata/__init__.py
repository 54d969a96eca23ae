"""Strata: a reproducible comparison of virtual machines, containers and bare Linux.

Its rooms are the folders in :data:`ROOMS`.  A room calls only those before it; the commands stand above all of them.
"""

__version__ = "0.1.0"

# From the ground up: what each room is for stands in its ``__init__.py``.
ROOMS = (
    "base",
    "host",
    "vm",
    "layers",
    "client",
    "experiment",
    "image",
    "system",
    "cell",
    "results",
    "reanalysis",
    "archive",
)
