"""A plan that is sealed before the first run, and whether it was kept."""

import pytest

from strata.base.errors import UserError
from strata.experiment import seal

SOURCE = {"revision": "a" * 40, "changed": False}
PLAN = {"seed": 1, "environments": {"native": {}}, "workloads": {"stream": {}}}


def test_a_seal_tells_whether_the_plan_was_kept_whatever_its_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    assert seal.told(PLAN) is None
    found = seal.seal(PLAN, SOURCE)
    assert found["sha256"] == seal.digest({**PLAN, "source": SOURCE, "sealed": found})
    assert seal.told(PLAN)["kept"] is True
    assert seal.told({**PLAN, "seed": 2})["kept"] is False
    with pytest.raises(UserError, match="sealed already"):
        seal.seal(PLAN, SOURCE)


def test_a_plan_is_sealed_before_the_first_run_and_when_all_is_known(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="KVM"):
        seal.seal({**PLAN, "environments": {"vm": {"accelerator": None}}}, SOURCE)
    log = tmp_path / "results/raw/native/stream/1.log"
    log.parent.mkdir(parents=True)
    log.touch()
    with pytest.raises(UserError, match="before the first"):
        seal.seal(PLAN, SOURCE)
