"""Strata: a reproducible comparison of virtual machines, containers and bare Linux.

Its rooms are its folders; what each is for stands in its ``__init__.py``, and which may import which in pyproject.toml.
"""

__version__ = "1.0.0"
