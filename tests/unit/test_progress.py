"""What is said of what takes long."""

import time

import pytest

from strata.base import progress


def test_a_long_step_says_what_runs_and_for_how_long(capsys):
    with progress.step("image", "building it", every=0.05):
        time.sleep(0.3)
    first, *between, last = capsys.readouterr().err.splitlines()
    assert first == "image: building it …"
    assert between
    assert set(between) == {"image: building it: 0 s so far …"}
    assert last == "image: building it: 0 s"


def test_a_step_that_failed_is_not_said_to_have_ended(capsys):
    with pytest.raises(ValueError, match="out of order"), progress.step("image", "building it"):
        raise ValueError("out of order")
    assert capsys.readouterr().err == "image: building it …\n"
