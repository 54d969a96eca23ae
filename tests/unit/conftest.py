import os
from unittest import mock

import pytest


@pytest.fixture(autouse=True)
def environment():
    """Restore the environment of the process after each test."""
    with mock.patch.dict(os.environ):
        yield
