"""Limits of time, which one setting stretches for hosts that are slower than hardware."""

import pytest

from strata.base import patience, process
from strata.base.errors import UserError
from strata.cell import record


def test_limits_hold_as_they_are_or_times_what_is_said(monkeypatch):
    monkeypatch.delenv(patience.NAME, raising=False)
    assert patience.stretched(30) == 30
    monkeypatch.setenv(patience.NAME, "6")
    assert patience.stretched(30) == 180


def test_a_record_tells_it_where_it_is_set():
    known = {field: 1 for field in record.FIELDS if field not in record.OPTIONAL}
    assert "patience" not in record.complete(known)
    assert record.complete({**known, "patience": 6})["patience"] == 6


def test_commands_of_the_machinery_and_measured_ones_get_that_time(monkeypatch, tmp_path):
    slow, limit = ["sleep", "0.5"], 0.1
    with pytest.raises(UserError, match=r"`sleep 0\.5` did not end within 0\.1 s"):
        process.capture(slow, timeout=limit)
    with open(tmp_path / "out", "wb") as output:
        assert process.run_together([slow], [output.fileno()], limit)[0][0] is None
        monkeypatch.setenv(patience.NAME, "100")
        assert process.run_together([slow], [output.fileno()], limit)[0][0] == 0
    assert process.capture(slow, timeout=limit).returncode == 0
