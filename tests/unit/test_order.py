"""The jobs that are started next."""

import os
import random
import time
from types import SimpleNamespace

import pytest

from strata.base import progress
from strata.snakemake import order


def job(priority, **resources):
    return SimpleNamespace(priority=priority, scheduler_resources={"_cores": 1, "_nodes": 1, **resources})


def chosen(jobs, **available):
    return order.first(jobs, {"_nodes": 10**9, **available})


def test_the_first_of_the_plan_starts_alone_where_there_is_one_core():
    cells = [job(priority, testbed=1) for priority in (3, 9, 5)]
    assert chosen(cells, _cores=1, testbed=1) == [cells[1]]


def test_no_two_cells_start_together_but_what_else_fits_does():
    cells = [job(priority, testbed=1) for priority in (3, 9)]
    tables = [job(0), job(0)]
    assert chosen([*cells, *tables], _cores=3, testbed=1) == [cells[1], *tables]
    assert chosen([*cells, *tables], _cores=2, testbed=1) == [cells[1], tables[0]]
    assert chosen([*cells, *tables], _cores=2, testbed=0) == tables


def test_a_job_for_which_there_is_too_little_lets_others_go_first():
    wide, narrow = job(5), job(1)
    wide.scheduler_resources["_cores"] = 4
    assert chosen([wide, narrow], _cores=2) == [narrow]
    assert chosen([wide, narrow], _cores=4) == [wide]


def test_nothing_starts_without_a_core_or_a_job():
    assert chosen([job(1)], _cores=0) == []
    assert chosen([], _cores=4) == []


def test_nothing_follows_a_cell_that_a_person_ended(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    progress.begin(os.getpid(), [("bare", "noop", 1), ("bare", "noop", 2)], [("bare", "1"), ("bare", "2")])
    ready = [job(1), job(2)]
    assert order.following(ready, {"_cores": 1}) == [ready[1]]
    progress.interrupt()
    with pytest.raises(KeyboardInterrupt):
        order.following(ready, {"_cores": 1})


def test_ten_times_the_jobs_take_no_more_than_about_ten_times_as_long():
    def seconds(count):
        jobs = [job(priority, testbed=1) for priority in random.Random(1).sample(range(count), count)]
        begun = time.process_time()
        for _ in range(20):
            chosen(jobs, _cores=4, testbed=1)
        return time.process_time() - begun

    assert seconds(20000) < 40 * seconds(2000)
