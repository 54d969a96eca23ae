"""Each stack of layers can be measured, or is refused by its key before anything is up."""

import itertools

import projects
import pytest

from strata.environments.common import registry
from strata.experiment import config, planning
from strata.util.errors import UserError

MACHINE = {"cpus": 2, "mask": None, "memory_bytes": 64 * 2**30, "cache_bytes": 2**20}
OPTIONS = {
    "brake": {"share": 0.1},
    "docker": {"network": "bridge", "data": "volume"},
    "podman": {"network": "host", "data": "layered"},
}


def planned(stack, **more):
    """The plan's entry of an environment with these layers, which all can be made here."""
    page = {"environments": {"e": {"layers": stack}}, "repetitions": 1, **more}
    return planning.build_plan(config.read_config(projects.on_host(**page)), MACHINE)[
        "environments"
    ]["e"]


def attempt(stack, **more):
    """Return (message, None) where the plan refuses a stack, or else (None, its entry)."""
    try:
        return None, planned(stack, **more)
    except UserError as error:
        return str(error), None


@pytest.mark.parametrize("depth", [1, 2, pytest.param(3, marks=pytest.mark.long)])
def test_every_stack_is_planned_or_refused_by_its_key(checkout, monkeypatch, depth):
    """The workload has servers in the stack and a client outside of it."""
    for name in registry.list_layer_names():
        monkeypatch.setattr(registry.load_layer_class(name), "explain_unavailability", lambda: None)
        monkeypatch.setattr(registry.load_layer_class(name), "explain_refusal", lambda *_: None)
    accepted = set()
    for names in itertools.product(registry.list_layer_names(), repeat=depth):
        stack = [{name: OPTIONS.get(name, {})} for name in names]
        message, entry = attempt(stack, workloads={"redis": {}})
        if message is not None:
            assert message.startswith("config.yaml: environments.e.layers"), names
            continue
        layers = [name for layer in entry["layers"] for name in layer]
        assert layers == [name for name in names if name != "host"]
        accepted.add(names)
    top = {names[-1] for names in accepted}
    assert (
        top
        == {
            1: {"chroot", "docker", "lxc", "podman", "vm"},
            2: {"brake", "chroot", "docker", "lxc", "pasta", "podman", "slirp4netns", "vm"},
            3: {"brake", "docker", "pasta", "slirp4netns"},
        }[depth]
    )


def test_what_runs_nothing_of_the_image_has_neither_client_nor_data_set(checkout):
    assert planned(["host"], workloads={"stream": {}})["available"]
    with pytest.raises(UserError) as caught:
        planned(["host"], workloads={"redis": {}})
    for text in (
        "config.yaml: environments.e.layers: ",
        "redis",
        "chroot",
        "leave_out: {e: [redis]}",
    ):
        assert text in str(caught.value)


def test_a_disk_in_memory_is_for_stacks_that_keep_their_data_on_the_host(checkout, monkeypatch):
    for name in ("docker", "vm"):
        layer = registry.load_layer_class(name)
        monkeypatch.setattr(layer, "explain_unavailability", lambda: None)
        monkeypatch.setattr(layer, "explain_refusal", lambda *_: None)
    volume, layered = (
        {"docker": {**OPTIONS["docker"], "data": data}} for data in ("volume", "layered")
    )
    more = {"workloads": {"ramdisk": {}}, "only": {"environments": ["e"]}}
    for stack in (["chroot"], ["chroot", "pasta"], [volume]):
        assert planned(stack, **more)["available"]
    for stack in ([layered], [{"vm": {}}, volume]):
        with pytest.raises(
            UserError, match=r"environments\.e\.layers: .*leave_out: {e: \[ramdisk\]}"
        ):
            planned(stack, **more)


def test_the_image_holds_what_the_layers_of_all_environments_need(checkout):
    stacks = {"bare": ["chroot"], "joined": ["chroot", "pasta"]}
    environments = {name: {"layers": layers} for name, layers in stacks.items()}
    only = {"environments": ["bare"]}
    page = projects.on_host(environments=environments, only=only, workloads={"stream": {}})
    assert config.read_config(page)["image"]["packages"] == ["passt"]
    page["environments"] = {"bare": environments["bare"]}
    assert "packages" not in config.read_config(page)["image"]
