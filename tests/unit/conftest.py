import os
from unittest import mock

import pytest


@pytest.fixture(autouse=True)
def environment():
    """What a test, or a workflow that it reads, sets in the process's environment ends with the test."""
    with mock.patch.dict(os.environ):
        yield
