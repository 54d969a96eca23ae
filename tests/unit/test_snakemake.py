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


def test_pages_are_told_from_words_of_the_command_line_unless_another_workflow_hands_them_over(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    both = {"seed": 3, "scale": "smoke"}
    given = SimpleNamespace(overwrite_config=both, configfiles=[tmp_path / "p/a.yaml"], config={"seed": 3})
    workflow = SimpleNamespace(config_settings=given)
    assert insides.laid_over(workflow, "9.27.1", dict(both)) == (["p/a.yaml"], {"seed": 3})
    assert insides.laid_over(workflow, "9.27.1", {"seed": 4}) == ([], {"seed": 4})
    del given.configfiles
    with pytest.raises(UserError, match=r"workflow\.config_settings\.configfiles is not there"):
        insides.laid_over(workflow, "9.27.1", dict(both))


def test_a_limit_of_another_kind_is_told():
    with pytest.raises(UserError, match=r"job_rate_limiter\.timespan is not there"):
        insides.settle_scheduler(inside(limiter=SimpleNamespace(window=1)), "9.27.9")


def importing(main=False):
    """A workflow as Snakemake has it while a module is read: handlers that are told then are not its own."""
    workflow = SimpleNamespace(main=main, calls=[])
    workflow.modifier = SimpleNamespace(is_main_snakefile=lambda: workflow.main)

    def register(name):
        def handler(function):
            if workflow.main:
                setattr(workflow, f"_{name}", function)

        return handler

    for name in ("onstart", "onsuccess", "onerror"):
        setattr(workflow, name, register(name))
        setattr(workflow, f"_{name}", lambda log, name=name: workflow.calls.append(f"first {name}"))
    return workflow


def test_our_start_and_end_come_before_the_handlers_of_a_workflow_that_imports_this_one():
    workflow = importing()
    start, end = (lambda: workflow.calls.append("start")), (lambda: workflow.calls.append("end"))
    insides.join(workflow, "9.27.1", start, end)
    # Those that stood above the import, and those that stand below.
    workflow._onstart("log")
    assert workflow.calls == ["start", "first onstart"]
    workflow.main = True
    workflow.onsuccess(lambda log: workflow.calls.append(f"theirs {log}"))
    workflow._onsuccess("log")
    workflow._onerror("log")
    assert workflow.calls[2:] == ["end", "theirs log", "end", "first onerror"]


def test_nothing_is_joined_where_nobody_imports():
    workflow = importing(main=True)
    before = dict(vars(workflow))
    insides.join(workflow, "9.27.1", lambda: None, lambda: None)
    assert vars(workflow) == before


def test_the_folder_is_that_of_the_rules_and_must_be_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "project/rules").mkdir(parents=True)
    workflow = SimpleNamespace(current_basedir=tmp_path / "project/rules")
    monkeypatch.chdir(tmp_path / "project")
    assert insides.folder(workflow, "9.27.1") == str(tmp_path / "project")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=rf"this is {tmp_path}; add `--directory {tmp_path}/project`"):
        insides.folder(workflow, "9.27.1")
