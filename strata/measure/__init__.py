"""Measure cells: run commands in systems, observe the machine, and write logs and records."""
