"""Whole ways without Docker or a machine: real Snakemake, R and LaTeX, on captured logs or on the bare host."""

import pytest


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    """Cells on the bare host neither wait for what is measured on this machine, nor keep it waiting, nor end it."""
    monkeypatch.setenv("STRATA_TEST_LOCK", str(tmp_path / "lock"))
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
