"""Which sets come next: widths and costs decide, up to target and budget."""

import math

import pytest

from strata.experiment import precision
from strata.experiment.precision import FIRST_STAGE, State


# R's qt(0.975, freedom).
@pytest.mark.parametrize(
    ("freedom", "wanted"),
    [(1, 12.7062047362), (2, 4.3026527297), (5, 2.5705818356), (19, 2.0930240544), (40, 2.0210753903)],
)
def test_student_is_that_of_r(freedom, wanted):
    assert precision.student(freedom) == pytest.approx(wanted, abs=1e-9)


def test_widths_need_two_runs_and_those_that_do_not_vary_have_none():
    assert precision.half_width([0.1]) == math.inf
    assert precision.half_width([0.1, 0.1]) == 0


def further(target=0.02, budget=None, left=math.inf, **states):
    return precision.further({load: State(*state) for load, state in states.items()}, target, budget, left)


def test_the_first_stage_is_the_same_whatever_the_widths():
    given = further(narrow=(3, 0, 300, 0.001, 5), wide=(3, 1, 300, 0.9, 5))
    assert given == {"narrow": FIRST_STAGE - 3, "wide": FIRST_STAGE - 4}


def test_the_widest_for_its_cost_comes_first_and_the_budget_ends_it():
    states = {"near": (20, 0, 300, 0.03, 10), "far": (20, 0, 300, 0.2, 10), "dear": (20, 0, 300, 0.2, 1000)}
    assert further(budget=3600, left=50, **states) == {"near": 0, "far": 5, "dear": 0}


def test_within_the_target_nothing_is_added_nor_to_what_could_not_be_measured():
    assert further(done=(20, 0, 300, 0.019, 5), none=(0, 0, 300, math.inf, 5)) == {"done": 0, "none": 0}
    assert further(target=None, fixed=(5, 0, 300, 0.5, 5)) == {"fixed": 0}


def test_a_round_doubles_the_sets_at_most():
    assert further(wide=(20, 0, 300, 0.5, 1)) == {"wide": 20}
    assert further(wide=(20, 0, 25, 0.5, 1)) == {"wide": 5}
