"""Strata: a reproducible comparison of virtual machines, containers and bare Linux.

Its packages are its folders: the ``__init__.py`` of each says what it is for, and pyproject.toml
which may import which.
"""

__version__ = "1.0.0"
