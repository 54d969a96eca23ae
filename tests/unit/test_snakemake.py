"""What the project asks of Snakemake: its version, its scheduler, and what has no interface."""

from types import SimpleNamespace

import projects
import pytest

from strata.base.errors import UserError
from strata.snakemake import insides

LIMITER = SimpleNamespace(timespan=1)


def inside(scheduler="strata", limiter=LIMITER):
    """A workflow of Snakemake's, as far as the project looks into it."""
    return SimpleNamespace(
        scheduling_settings=SimpleNamespace(scheduler=scheduler),
        scheduler=SimpleNamespace(job_rate_limiter=limiter),
        dag=SimpleNamespace(needrun_jobs=lambda: iter(["a job"])),
    )


@pytest.mark.parametrize("version", ["8.30.0", "9.16.3", "9.28.0", "10.0.0"])
def test_a_version_that_was_not_tried_is_refused_by_name(version):
    with pytest.raises(UserError, match=rf"this is Snakemake {version}, .* tried with 9\.17 to 9\.27; `make setup`"):
        insides.check_version(version)


def test_the_pinned_version_is_the_newest_of_the_range_the_tested_old_one_its_oldest_and_the_readme_says_both():
    for name, end in (("requirements.txt", insides.NEWEST), ("tests/oldest.txt", insides.OLDEST)):
        lines = (projects.ROOT / name).read_text().splitlines()
        [version] = [line.partition("==")[2] for line in lines if line.startswith("snakemake==")]
        insides.check_version(version)
        assert tuple(map(int, version.split(".")[:2])) == end
    oldest, newest = (".".join(map(str, end)) for end in (insides.OLDEST, insides.NEWEST))
    assert f"Snakemake {oldest} to {newest}" in (projects.ROOT / "README.md").read_text()


def test_the_limit_of_jobs_is_off_and_the_jobs_are_known():
    workflow = inside()
    insides.settle_scheduler(workflow, "9.27.1")
    assert workflow.scheduler.job_rate_limiter is None
    insides.settle_scheduler(inside(limiter=None), "9.27.1")
    assert insides.wanted(workflow, "9.27.1") == ["a job"]


@pytest.mark.parametrize(
    ("owner", "name", "asks"),
    [
        ("scheduling_settings", "scheduler", insides.settle_scheduler),
        ("scheduler", "job_rate_limiter", insides.settle_scheduler),
        ("dag", "needrun_jobs", insides.wanted),
    ],
)
def test_what_got_another_name_is_told_with_the_version(owner, name, asks):
    workflow = inside()
    vars(getattr(workflow, owner)).clear()
    with pytest.raises(UserError, match=rf"Snakemake 9\.27\.9 .* workflow\.{owner}\.{name} is not there"):
        asks(workflow, "9.27.9")


def test_a_limit_of_another_kind_is_told():
    with pytest.raises(UserError, match=r"job_rate_limiter\.timespan is not there"):
        insides.settle_scheduler(inside(limiter=SimpleNamespace(window=1)), "9.27.9")
