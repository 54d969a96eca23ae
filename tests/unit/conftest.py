import projects
import pytest

from strata.experiment import workload


@pytest.fixture
def checkout(monkeypatch):
    """The checkout itself as the working directory."""
    workload.load.cache_clear()
    monkeypatch.chdir(projects.ROOT)
    yield projects.ROOT
    workload.load.cache_clear()
