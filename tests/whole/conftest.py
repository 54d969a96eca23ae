"""Whole ways without Docker or a machine: real Snakemake, R and LaTeX, on captured logs or on the bare host."""

import pytest


@pytest.fixture(autouse=True)
def own_lock(tmp_path, monkeypatch):
    """Cells on the bare host neither wait for a measurement on this machine nor keep one waiting."""
    monkeypatch.setenv("STRATA_TEST_LOCK", str(tmp_path / "lock"))
