"""The configuration: what is laid over it, which plan follows on a machine, and what is refused."""

import subprocess
import sys

import projects
import pytest
import yaml
from snakemake.cli import parse_config

from strata.environments.common import registry
from strata.experiment import blocks, config, plan, planning
from strata.experiment.plan import compute_fingerprint
from strata.util.errors import UserError

MACHINE = {"cpus": 4, "mask": None, "memory_bytes": 16 * 2**30, "cache_bytes": 32 * 2**20}
DOCKER = {"docker": {"network": "host", "data": "volume"}}
CARD = {"address": "192.0.2.999/24"}


def planned(machine=MACHINE, **over):
    """Return the plan of config.yaml with these values laid over it."""
    return planning.build_plan(config.read_config(over), machine)


def refused(over, *keys):
    """Require that config.yaml with these values is refused by these keys; return the message."""
    with pytest.raises(UserError) as caught:
        planning.build_plan(config.read_config(over), MACHINE)
    for key in keys:
        assert f"config.yaml: {key}: " in str(caught.value)
    return str(caught.value)


def test_reading_the_configuration_needs_only_packages_of_snakemake():
    code = """import sys
from strata.experiment import claims, config
for name, module in sys.modules.items():
    if "-packages" in str(module.__dict__.get("__file__")):
        print(name.split(".")[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=projects.ROOT, capture_output=True, text=True, check=True
    )
    of_snakemake = {"yaml", "attr", "attrs", "jsonschema", "jsonschema_specifications"}
    of_snakemake |= {"referencing", "rpds", "idna", "typing_extensions"}
    imported = {name for name in done.stdout.split() if not name.startswith("_")}
    assert imported - of_snakemake == set()


# (values laid over config.yaml, the key that the message names)
MISTAKES = [
    ({"repetitions": {"min": 5, "max": 3}}, "repetitions.max"),
    ({"repetitions": {"min": 0}}, "repetitions.min"),
    ({"repetitions": {"target": "0%"}}, "repetitions.target"),
    ({"repetitions": {"budget": "0min"}}, "repetitions.budget"),
    ({"order": "sequential"}, "order"),
    ({"image": {"mirror": "https://x.org/debian\nDeb evil"}}, "image.mirror"),
    ({"environments": {"native": {"max": 5}}}, "environments.native.max"),
    ({"environments": {"native": {"label": "Docker "}}}, "environments.docker.label"),
    ({"environments": {"native": {"label": " \t"}}}, "environments.native.label"),
    ({"environments": {"docker": {"label": "Docker in {vm}"}}}, "environments.docker.label"),
    ({"environments": {"native": {"layers": ["chrot"]}}}, "environments.native.layers.0"),
    ({"environments": {"native": {"layers": ["chroot", "host"]}}}, "environments.native.layers.1"),
    ({"environments": {"native": {"layers": [DOCKER, "vm"]}}}, "environments.native.layers.1"),
    (
        {"environments": {"vm": {"layers": [{"vm": {"profile": "big"}}]}}},
        "environments.vm.layers.0.vm.profile",
    ),
    (
        {"vm": {"profiles": {"default": {"memory": {"tiny": "1MiB"}}}}},
        "vm.profiles.default.memory.tiny",
    ),
    ({"workloads": {"strem": {}}}, "workloads.strem"),
    ({"workloads": {"stream": {"elements": 10**15}}}, "workloads.stream.elements"),
    ({"workloads": {"pxz": {"corpus": "/no/such/enwik9"}}}, "workloads.pxz.corpus"),
    ({"not_emulated": ["strem"]}, "not_emulated.0"),
    ({"leave_out": {"docker": ["strem"]}}, "leave_out.docker.0"),
    ({"leave_out": {"dokcer": ["stream"]}}, "leave_out.dokcer"),
    ({"only": {"workloads": ["strem"]}}, "only.workloads.0"),
    ({"title": "two\nlines"}, "title"),
    ({"question": "x" * 151}, "question"),
    ({"about": " \n"}, "about"),
    ({"about": "a\x1b[31m"}, "about"),
    ({"interference": {"steal": "101%"}}, "interference.steal"),
    ({"image": {"mirror": "file:///no/such"}}, "image.mirror"),
    ({"published_raw": "/no/such"}, "published_raw"),
    ({"published_raw": "/etc/passwd"}, "published_raw"),
    ({"client": {"ssh": "x" * 301}}, "client.ssh"),
    ({"client": {"ssh": "user@-x"}}, "client.ssh"),
    ({"client": {"ssh": "other", "ssh_config": "/no/such"}}, "client.ssh_config"),
    ({"client": {"ssh": "other", "ssh_config": "/etc"}}, "client.ssh_config"),
    ({"client": {"rate": "9999999999gbit"}}, "client.rate"),
    (
        {"vm": {"profiles": {"tuned": {"passthrough": ["0000:03:10.0"], "card": CARD}}}},
        "vm.profiles.tuned.card.address",
    ),
]


@pytest.mark.parametrize(
    ("over", "key"), MISTAKES, ids=[f"{key}-{number}" for number, (_, key) in enumerate(MISTAKES)]
)
def test_a_mistake_is_refused_with_its_key(checkout, over, key):
    if key.startswith(("repetitions", "order")):
        over = {
            **over,
            "repetitions": {"min": 3, "max": 9, "target": "2%", **over.get("repetitions", {})},
        }
    refused(over, key)


def test_all_mistakes_are_reported_together_with_the_nearest_names(checkout):
    refused(
        {"sede": 1, "scale": "smok", "environments": {"native": {"lable": "x"}}}, "sede", "scale"
    )
    message = refused(
        {
            "workloads": {"strem": {}, "stream": {"elemens": 1}},
            "environments": {"native": {"layers": ["chrot"]}},
        },
        *("workloads.strem", "workloads.stream.elemens", "environments.native.layers.0"),
    )
    for name in ("'stream'", "'elements'", "'chroot'"):
        assert f"did you mean {name}?" in message


def test_check_reports_the_mistakes_of_all_files(project):
    loads = {"noop": {**projects.NOOP, "titel": "x"}, "other": projects.NOOP, "good": projects.NOOP}
    folder = project(projects.on_host(scale="smok"), workloads=loads)
    for parser in folder.glob("workloads/other/parse.*"):
        parser.unlink()
    done = projects.run(folder, "strata", "check")
    assert done.returncode == 1
    for place in (
        "config.yaml: scale",
        "workloads/noop/workload.yaml: titel",
        "workloads/other/parse.py",
    ):
        assert f"{place}: " in done.stderr
    assert "workloads/good" not in done.stderr
    assert "Traceback" not in done.stderr


def test_configuration_files_and_words_are_laid_over_config_yaml(checkout, tmp_path, monkeypatch):
    first = {
        "seed": 1,
        "environments": {
            "docker": {"layers": [{"docker": {**DOCKER["docker"], "cpuset-cpus": "0"}}]}
        },
    }
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(first))
    (tmp_path / "b.json").write_text(
        '{"scale": "standard", "workloads": {"stream": {"trials": 4}}}'
    )
    words = parse_config(
        ["seed=7", "partial=true", "workloads={stream: {trials: 5}, linpack: {sizes: [600]}}"]
    )
    over = config.merge_mappings(
        config.read_overrides([str(tmp_path / "a.yaml"), str(tmp_path / "b.json")], []), words
    )
    settings = config.read_config(over)
    assert (settings["seed"], settings["partial"], settings["scale"]) == (7, True, "standard")
    assert settings["workloads"]["stream"] == {"trials": 5}
    assert settings["workloads"]["linpack"] == {"sizes": [600]}
    # A number in quotes stays text where text is expected.
    assert settings["environments"]["docker"]["layers"][0]["docker"]["cpuset-cpus"] == "0"
    # Snakemake hands over config.yaml merged with everything that is laid over it.
    whole = config.merge_mappings(yaml.safe_load((checkout / "config.yaml").read_text()), over)
    assert planning.build_plan(config.read_config(whole), MACHINE) == planning.build_plan(
        settings, MACHINE
    )
    with pytest.raises(UserError, match=r"nowhere\.yaml: "):
        config.read_overrides(["nowhere.yaml"], [])


def test_a_mistake_is_named_by_the_file_that_holds_it(checkout, tmp_path):
    (tmp_path / "a.yaml").write_text("interference: {steal: lots}\nrepetitions: {min: 3, max: 2}\n")
    (tmp_path / "b.yaml").write_text("scael: tiny\nrepetitions: {max: 4}\n")
    names = [str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")]
    with pytest.raises(UserError) as caught:
        config.read_config(config.read_overrides(names, ["seed=-1", "only={workloads: [strem]}"]))
    lines = [line.split(": ") for line in str(caught.value).splitlines()]
    assert {line[1]: line[0] for line in lines} == {
        "interference.steal": names[0],
        "scael": names[1],
        "seed": "--config",
        "only.workloads.0": "--config",
    }


def test_paper_scale_follows_the_published_rules(checkout):
    large = {"cpus": 64, "mask": None, "memory_bytes": 256 * 2**30, "cache_bytes": 256 * 2**20}
    for machine, elements, sizes in (
        (MACHINE, 80_000_000, [41000]),
        (large, 4 * 256 * 2**20 // 8, [45000, 65000]),
    ):
        workloads = planned(machine, scale="paper")["workloads"]
        assert workloads["stream"]["parameters"]["elements"] == elements
        assert workloads["linpack"]["parameters"]["sizes"] == sizes
        assert bool(workloads["linpack"]["notes"]) is (machine is MACHINE)


def test_an_environment_that_is_not_available_keeps_its_place_and_its_reason(checkout, monkeypatch):
    monkeypatch.setattr(
        registry.load_layer_class("docker"), "explain_unavailability", lambda: "no Docker"
    )
    monkeypatch.setattr(
        registry.load_layer_class("vm"), "explain_unavailability", lambda: "no QEMU"
    )
    environments = planned()["environments"]
    assert [environments[name]["reason"] for name in ("docker", "vm-docker")] == [
        "no Docker",
        "no QEMU",
    ]
    assert "none can be measured" in refused({"only": {"environments": ["docker"]}}, "environments")


@pytest.mark.parametrize(
    ("memory", "kvm", "over", "message"),
    [
        # (the host's memory in GiB, whether KVM works, values of config.yaml, the message or None)
        (3.8, True, {}, "is 4GiB; this machine has 3.8 GiB: choose less"),
        (3.8, False, {}, None),
        (3.8, True, {"only": {"environments": ["native", "docker"]}}, None),
        (1.9, True, {"only": {"environments": ["native"]}, "scale": "tiny"}, None),
        (1.9, True, {"scale": "tiny"}, "is 2GiB; this machine has 1.9 GiB: choose less"),
        (64, True, {}, None),
        (64, True, {"workloads": {"stream": {"elements": 2 * 10**8}}}, None),
        (
            64,
            True,
            {
                "workloads": {"stream": {"elements": 2 * 10**8}},
                "vm": {"profiles": {"default": {"memory": "4GiB"}}},
            },
            "is 4GiB; stream takes 4.5 GiB of it: choose 5GiB",
        ),
        # The memory that is needed is more than the host has.
        (
            4.5,
            True,
            {"workloads": {"stream": {"elements": 17 * 10**7}}},
            "is 5GiB; this machine has 4.5 GiB",
        ),
        (
            64,
            True,
            {"workloads": {"stream": {"elements": 2 * 10**8}}, "leave_out": {"vm": ["stream"]}},
            None,
        ),
        (64, True, {"vm": {"profiles": {"unused": {"memory": "99999999GiB"}}}}, None),
    ],
)
def test_memory_of_virtual_machines_fits_the_host_and_the_workloads(
    checkout, monkeypatch, memory, kvm, over, message
):
    monkeypatch.setattr(
        registry.load_layer_class("vm"),
        "explain_unavailability",
        lambda: None if kvm else "no QEMU",
    )
    finding = {"accelerator": "kvm", "accelerator_reason": "tried"}
    monkeypatch.setattr("strata.vm.acceleration.read_known_accelerator", lambda: finding)
    over = {"only": {"environments": ["native", "vm"]}, **over}
    machine = {**MACHINE, "memory_bytes": int(memory * 2**30)}
    if message is None:
        assert planned(machine, **over)
    else:
        with pytest.raises(UserError, match=f"vm.profiles.default.memory: {message}"):
            planned(machine, **over)


def test_repetitions_are_a_number_or_follow_a_precision(checkout):
    over = {"min": 3, "max": 7, "target": "2.5%", "budget": "1.5h"}
    plan = planned(repetitions=over)
    assert plan["repetitions"] == 7
    rule = {"min": 3, "max": 7, "target": 0.025, "budget": 5400, "claims": True, "retries": 2}
    assert plan["precision"] == rule
    assert planned(repetitions={**over, "claims": False})["precision"]["claims"] is False
    assert "precision" not in planned(repetitions=4, interference={"action": "flag"})
    again = {"min": 4, "max": 12, "target": None, "budget": None, "retries": 2}
    assert planned(repetitions=4)["precision"] == again
    assert "precision" not in planned(repetitions=4, order="sequential")


def test_a_workload_that_every_environment_leaves_out_is_refused(checkout):
    only = {"environments": ["docker", "native"]}
    assert planned(only=only, leave_out={"docker": ["stream"]})
    with pytest.raises(UserError, match=r"^config\.yaml: leave_out\.stream: .* measure it in one"):
        planned(only=only, leave_out={"docker": ["stream"], "native": ["stream"]})


def test_only_narrows_an_experiment_to_some_environments_and_workloads(checkout):
    only = {"environments": ["docker", "native"], "workloads": ["stream"]}
    one = planned(only=only, not_emulated=["pxz"], leave_out={"vm": ["stream"], "docker": ["pxz"]})
    whole = planned(not_emulated=["stream"], leave_out={"docker": ["pxz"]})
    assert list(one["environments"]) == ["native", "docker"]
    assert list(one["workloads"]) == ["stream"]
    assert compute_fingerprint(one, "docker", "stream") == compute_fingerprint(
        whole, "docker", "stream"
    )
    # Words for the paper are in the plan, and decide no result.
    words = {"title": "Ours", "question": "Which?", "about": "One.\n\nTwo.\n"}
    named = planned(only=only, **words)
    assert words.items() <= named.items()
    assert compute_fingerprint(named, "docker", "stream") == compute_fingerprint(
        whole, "docker", "stream"
    )
    # A workload that is not measured at all is no omission.
    assert {"not_emulated", "leave_out"}.isdisjoint(one)
    assert (whole["not_emulated"], whole["leave_out"]) == (["stream"], {"docker": ["pxz"]})


def test_emulated_machines_have_a_size_of_their_own_and_native_beside_them(checkout, monkeypatch):
    monkeypatch.setattr(registry.load_layer_class("vm"), "explain_unavailability", lambda: None)
    monkeypatch.setattr(registry.load_layer_class("vm"), "explain_refusal", lambda *_: None)
    finding = {"accelerator": "tcg", "accelerator_reason": "tried"}
    monkeypatch.setattr("strata.vm.acceleration.read_known_accelerator", lambda: finding)
    made = planned()
    stream = made["workloads"]["stream"]
    beside = made["environments"][blocks.SMALL_REFERENCE]
    assert beside["layers"] == made["environments"]["native"]["layers"]
    for name in ("vm", blocks.SMALL_REFERENCE):
        assert plan.select_workload(made, name, "stream")["parameters"]["elements"] == 5000000
        assert plan.select_scale(made, name) == "tiny"
    assert plan.select_workload(made, "docker", "stream")["parameters"] == stream["parameters"]
    assert blocks.SMALL_REFERENCE not in planned(scale="tiny")["environments"]
    off = planned(emulation=False)["environments"]
    assert blocks.SMALL_REFERENCE not in off
    assert not off["vm"]["available"]
