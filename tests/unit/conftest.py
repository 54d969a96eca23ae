import os
from unittest import mock

import projects
import pytest

from strata.experiment import workload


@pytest.fixture(autouse=True)
def environment():
    """What a test, or a workflow that it reads, sets in the process's environment ends with the test."""
    with mock.patch.dict(os.environ):
        yield


@pytest.fixture
def checkout(monkeypatch):
    """The checkout itself as the working directory."""
    workload.load.cache_clear()
    monkeypatch.chdir(projects.ROOT)
    yield projects.ROOT
    workload.load.cache_clear()
