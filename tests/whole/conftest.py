"""Whole runs without Docker or virtual machines: real Snakemake, R and LaTeX on the bare host."""

import pytest


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    """Give tests a home folder and a lock of the machine of their own."""
    monkeypatch.setenv("STRATA_TEST_LOCK", str(tmp_path / "lock"))
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
