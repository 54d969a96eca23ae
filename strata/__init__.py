"""Strata: a reproducible comparison of virtual machines, containers and bare Linux."""

__version__ = "0.1.0"
