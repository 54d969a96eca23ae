import pytest
from test_sets import experiment

from strata.experiment import plan


def test_a_seed_is_shared_by_environments_and_differs_between_sets_and_workloads():
    seeds = {(workload, block): plan.cell_seed(experiment(), workload, block) for workload in "ab" for block in (1, 2)}
    assert len(set(seeds.values())) == 4
    assert all(0 <= seed < 2**31 for seed in seeds.values())


@pytest.mark.parametrize(
    ("path", "value", "same"),
    [
        (["seed"], 2, False),
        (["scale"], "standard", False),
        (["image", "recipe"], "other", False),
        (["environments", "native", "layers"], [{"native": {"option": 1}}], False),
        (["workloads", "a", "parameters", "size"], 2, False),
        (["workloads", "a", "cell", "steps", 0, "argv"], ["a", "-x"], False),
        (["workloads", "a", "cell", "steps", 0, "timeout"], 99, True),
        (["repetitions"], 30, True),
        (["environments", "docker", "layers"], [], True),
        (["workloads", "b", "parameters", "size"], 2, True),
    ],
)
def test_a_cell_is_measured_again_just_for_what_decides_its_result(path, value, same):
    before = experiment()
    after = experiment()
    inner = after
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    assert (plan.fingerprint(before, "native", "a") == plan.fingerprint(after, "native", "a")) is same
