import copy
import json
import os
import shlex
import shutil

import projects
import pytest
import yaml

from strata.base import run
from strata.base.errors import UserError
from strata.experiment import config, workload
from strata.experiment.plan import fingerprint
from strata.snakemake.workflow import Workflow, laid_words, started_by

MACHINE = {"cpus": 4, "memory_bytes": 16 * 2**30, "cache_bytes": 32 * 2**20}


@pytest.fixture
def page(checkout):
    return yaml.safe_load((checkout / "config.yaml").read_text())


def complaint(tmp_path, data):
    path = tmp_path / "config.yaml"
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data))
    with pytest.raises(UserError) as caught:
        config.read(path=str(path))
    return str(caught.value)


def test_the_default_page_is_good_and_small(checkout):
    settings = config.read()
    assert settings["scale"] == "smoke"
    assert settings["repetitions"] == {"min": 3, "max": 300, "target": "2%", "claims": True, "budget": "25min"}
    assert settings["quiet"]["action"] == "retry"
    containers = ["docker", "docker-hostnet", "docker-layered", "docker-gvisor"]
    machines = ["vm", "vm-tuned", "vm-docker", "vm-docker-hostnet"]
    assert list(settings["environments"]) == ["native", *containers, *machines]
    assert settings["environments"]["native"]["layers"] == [{"chroot": {}}]
    assert set(settings["workloads"]) == {"pxz", "linpack", "stream", "randomaccess"}


# (where to put it, what, the key that the message names, a part of the remedy)
MISTAKES = [
    (["scale"], "smok", "scale:", "smoke, quick, paper"),
    (["scale"], 3, "scale:", "smoke, quick, paper"),
    (["repetitions"], 0, "repetitions:", "at least 1"),
    (["repetitions"], "five", "repetitions:", "a whole number"),
    (["repetitions"], 2.5, "repetitions:", "a whole number"),
    (["repetitions"], True, "repetitions:", "a whole number"),
    (["repetitions"], 10**6, "repetitions:", "at most 10000"),
    (["seed"], -1, "seed:", "at least 0"),
    (["seed"], None, "seed:", "a whole number"),
    (["repetition"], 5, "repetition:", "did you mean 'repetitions'?"),
    (["sede"], 5, "sede:", "did you mean 'seed'?"),
    (["image"], "debian", "image:", "a mapping"),
    (["image", "distribution"], "fedora", "image.distribution:", "host, debian, ubuntu"),
    (["image", "distro"], "host", "image.distro:", "did you mean 'distribution'?"),
    (["image", "release"], "../x", "image.release:", "must match"),
    (["image", "mirror"], "not an address", "image.mirror:", "must match"),
    (["environments"], {}, "environments:", "at least 1"),
    (["environments"], [], "environments:", "a mapping"),
    (["environments", "../up"], {"layers": ["chroot"]}, "environments.../up:", "must match"),
    (["environments", "two words"], {"layers": ["chroot"]}, "environments.two words:", "must match"),
    (["environments", "-dash"], {"layers": ["chroot"]}, "environments.-dash:", "must match"),
    (["environments", 'q"uote'], {"layers": ["chroot"]}, "environments.", "must match"),
    (["environments", "new\nline"], {"layers": ["chroot"]}, "environments.", "U+000A"),
    (["environments", "native"], {}, "environments.native.layers:", "missing"),
    (["environments", "native"], None, "environments.native:", "a mapping"),
    (["environments", "native", "layers"], [], "environments.native.layers:", "at least 1"),
    (["environments", "native", "layers"], ["chrot"], "environments.native.layers.0:", "did you mean 'chroot'?"),
    (["environments", "native", "layers"], [7], "environments.native.layers.0:", "the name of a layer"),
    (["environments", "native", "layers"], [{"a": 1, "b": 2}], "environments.native.layers.0:", "one name"),
    (["environments", "native", "layers"], ["docker"], "layers.0.docker.network:", "bridge or host"),
    (["environments", "native", "layers"], ["chroot", "chroot"], "layers.1:", "it stands on host"),
    (["environments", "native", "layers"], ["chroot", "host"], "layers.1:", "bottom of a stack"),
    (["environments", "native", "layers"], [{"chroot": {"numactl": "reboot"}}], "0.chroot.numactl:", "must match"),
    (["environments", "native", "layers"], [{"chroot": {"numactl": "--membind=0 --all"}}], "numactl:", "must match"),
    (["environments", "native", "lable"], "x", "environments.native.lable:", "did you mean 'label'?"),
    (["environments", "native", "max"], 5, "environments.native.max:", "left out"),
    (["environments", "docker", "max"], 1, "environments.docker.max:", "at least 2"),
    (["environments", "docker", "max"], "all", "environments.docker.max:", "a whole number"),
    (["environments", "native", "label"], "Docker", "label:", "each needs its own"),
    (
        ["environments", "docker", "layers"],
        [{"docker": {"network": "brige", "data": "volume"}}],
        "docker.network:",
        "bridge, host",
    ),
    (
        ["environments", "docker", "layers"],
        [{"docker": {"network": "host"}}],
        "docker.data:",
        "volume, layered or tmpfs",
    ),
    (["environments", "docker", "layers"], [{"docker": "host"}], "layers.0.docker:", "a mapping"),
    (["workloads"], {}, "workloads:", "at least 1"),
    (["workloads", "strem"], {}, "workloads.strem:", "did you mean 'stream'?"),
    (["workloads", "common"], {}, "workloads.common:", "there is no folder"),
    (["workloads", "../etc"], {}, "workloads.../etc:", "must match"),
    (["workloads", "stream"], "all", "workloads.stream:", "a mapping"),
    (["workloads", "stream"], {"element": 5}, "workloads.stream.element:", "did you mean 'elements'?"),
    (["workloads", "stream"], {"elements": 5}, "workloads.stream.elements:", "at least 1000"),
    (["workloads", "stream"], {"elements": "5; rm -rf /"}, "workloads.stream.elements:", "a whole number"),
    (["workloads", "linpack"], {"sizes": []}, "workloads.linpack.sizes:", "at least 1"),
    (["workloads", "linpack"], {"sizes": [1000, 1000]}, "workloads.linpack.sizes:", "once"),
    (["workloads", "pxz"], {"corpus": "/no/such/enwik9"}, "workloads.pxz.corpus:", "no such file"),
    (["workloads", "pxz"], {"level": 10}, "workloads.pxz.level:", "at most 9"),
    (["client"], "moon", "client:", "namespace"),
    (["partial"], "yes", "partial:", "true or false"),
]


@pytest.mark.parametrize(
    ("path", "value", "key", "remedy"), MISTAKES, ids=[str(m[0]) + repr(m[1])[:20] for m in MISTAKES]
)
def test_a_mistake_is_told_with_file_key_and_remedy(page, tmp_path, path, value, key, remedy):
    data = copy.deepcopy(page)
    inner = data
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    message = complaint(tmp_path, data)
    assert f"{tmp_path}/config.yaml: " in message
    assert key in message
    assert remedy in message


@pytest.mark.parametrize("key", ["scale", "repetitions", "seed", "environments", "workloads"])
def test_a_missing_key_is_named(page, tmp_path, key):
    del page[key]
    assert f"config.yaml: {key}: missing" in complaint(tmp_path, page)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("scale: smoke\nscale: paper\n", 'line 2, column 1: not valid YAML: found duplicate key "scale"'),
        ("scale: [smoke\n", "line 2"),
        ("- a\n- b\n", "must be a mapping"),
        ("", "must be a mapping of keys to values, not empty"),
        ("1: 2\n", "is not text"),
        ("a: !!python/object/apply:os.system [true]\n", "line 1"),
        ("scale: \x07\n", "not valid YAML"),
    ],
)
def test_what_is_no_page_is_refused_with_its_place(checkout, tmp_path, text, part):
    assert part in complaint(tmp_path, text)


def test_a_file_that_is_not_text_is_refused(checkout, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_bytes(b"scale: \xff\xfe\n")
    with pytest.raises(UserError, match="not UTF-8"):
        config.read(path=str(path))


def test_overrides_are_laid_over_the_page_and_checked(checkout):
    settings = config.read({"workloads": {"stream": {"trials": 3}}})
    assert settings["workloads"]["stream"] == {"trials": 3}
    assert "pxz" in settings["workloads"]
    with pytest.raises(UserError, match='scale: is "huge"'):
        config.read({"scale": "huge"})


def test_words_of_the_command_line_mean_what_they_would_in_the_file():
    words = {"partial": "true", "seed": "-3", "workloads": {"stream": {"trials": "5", "list": ["1.5", "a1"]}}}
    assert config.typed(words) == {
        "partial": True,
        "seed": -3,
        "workloads": {"stream": {"trials": 5, "list": [1.5, "a1"]}},
    }
    assert config.typed({"a": "007", "b": None, "c": 5, "d": "5 GB"}) == {"a": "007", "b": None, "c": 5, "d": "5 GB"}


def test_what_is_in_quotes_in_a_further_page_is_text_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("workloads: {x: {cpus: '0', ten: 010, yes: no}}\nseed: 1\n")
    (tmp_path / "b.json").write_text('{"workloads": {"x": {"ten": 11, "name": "true"}}}')
    found = config.laid_over(["a.yaml", "b.json"], {"seed": "7", "workloads": {"x": {"more": "0"}}})
    inner = {"cpus": "0", "ten": 11, "yes": "no", "name": "true", "more": 0}
    assert found == {"workloads": {"x": inner}, "seed": 7}
    assert config.laid_over([], {"seed": "7"}) == {"seed": 7}
    (tmp_path / "b.json").write_text("a: 1\na: 2\n")
    with pytest.raises(UserError, match=r"b\.json: line 2"):
        config.laid_over(["a.yaml", "b.json"], {})
    (tmp_path / "b.json").write_text("5: 1\n")
    with pytest.raises(UserError, match=r"b\.json: 5: the key 5 is not text"):
        config.laid_over(["b.json"], {})


def test_a_size_that_does_not_fit_is_refused_before_anything_starts(checkout):
    settings = config.read({"workloads": {"linpack": {"sizes": [65000]}}})
    with pytest.raises(UserError, match=r"workloads.linpack.sizes: .* needs 33.8 GB of memory"):
        config.experiment(settings, MACHINE)


def test_paper_scale_follows_the_published_rules(checkout):
    plan = config.experiment(config.read({"scale": "paper"}), MACHINE)
    assert plan["workloads"]["stream"]["parameters"]["elements"] == 80_000_000
    assert plan["workloads"]["randomaccess"]["parameters"]["log2"] == 30
    assert plan["workloads"]["linpack"]["parameters"]["sizes"] == [41000]
    assert "45,000 (16.2 GB)" in plan["workloads"]["linpack"]["notes"][0]
    assert plan["workloads"]["pxz"]["parameters"]["bytes"] == 10**9
    large = {"cpus": 64, "memory_bytes": 256 * 2**30, "cache_bytes": 256 * 2**20}
    plan = config.experiment(config.read({"scale": "paper"}), large)
    assert plan["workloads"]["linpack"]["parameters"]["sizes"] == [45000, 65000]
    assert plan["workloads"]["stream"]["parameters"]["elements"] == 4 * 256 * 2**20 // 8


def test_an_environment_that_cannot_be_had_keeps_its_place_and_its_reason(checkout, monkeypatch):
    from strata.layers.docker import Docker
    from strata.layers.vm import Vm

    monkeypatch.setattr(Docker, "unavailable", classmethod(lambda cls: "Docker is not installed"))
    monkeypatch.setattr(Vm, "unavailable", classmethod(lambda cls: "QEMU is not installed"))
    plan = config.experiment(config.read(), MACHINE)
    assert plan["environments"]["docker"]["available"] is False
    assert plan["environments"]["docker"]["reason"] == "Docker is not installed"
    assert plan["environments"]["vm-docker"]["reason"] == "QEMU is not installed"


def test_native_runs_where_numactl_puts_it_if_that_is_there(checkout, monkeypatch):
    settings = config.read()
    settings["environments"]["native-pinned"] = {"label": "Pinned", "layers": [{"chroot": {"numactl": "--membind=0"}}]}
    for there in ("/usr/bin/numactl", None):
        monkeypatch.setattr(
            shutil, "which", lambda name, path=None, there=there: there if name == "numactl" else "/bin/sh"
        )
        entry = config.experiment(settings, MACHINE)["environments"]["native-pinned"]
        assert entry["available"] == (there is not None)
        assert entry["layers"] == [{"chroot": {"numactl": "--membind=0"}}]
    assert entry["reason"] == "numactl is not installed: install the distribution's package of that name"
    assert config.experiment(settings, MACHINE)["environments"]["native"]["layers"] == [{"chroot": {}}]


def test_no_environment_at_all_is_an_error(project):
    project()
    settings = config.read()
    settings["environments"]["bare"]["layers"] = [{"docker": {"network": "host", "data": "volume"}}]
    from strata.layers.docker import Docker

    original = Docker.unavailable
    Docker.unavailable = classmethod(lambda cls: "not here")
    try:
        with pytest.raises(UserError, match="none can be measured"):
            config.experiment(settings, MACHINE)
    finally:
        Docker.unavailable = original


WORKLOAD_MISTAKES = [
    ({"metrics": {}}, "metrics: is empty"),
    ({"metrics": {"rate": {"label": "R", "unit": "1/s", "better": "more"}}}, 'metrics.rate.better: is "more"'),
    (
        {"metrics": {"p99": {"label": "P", "unit": "ms", "better": "lower", "statistic": "median"}}},
        'metrics.p99.statistic: is "median"',
    ),
    ({"titel": "x"}, "titel: unknown key; did you mean 'title'?"),
    ({"run": [{"argv": ["a", "{nubmer}"], "timeout": 1}]}, "did you mean 'number'?"),
    ({"run": [{"argv": ["a"], "timeout": 0}]}, "run.0.timeout: must be seconds"),
    ({"run": [{"argv": "a b", "timeout": 1}]}, 'run.0.argv: is "a b"; must be a list'),
    ({"checks": []}, "checks: is empty"),
    ({"packages": ["a b; rm"]}, "packages.0"),
    (
        {"parameters": {"number": {"about": "x", "schema": {"type": "integer"}, "value": {"rule": "cpu"}}}},
        "did you mean 'cpus'?",
    ),
    ({"parameters": {"number": {"about": "x", "schema": {"type": "intger"}, "value": 1}}}, "is not a JSON Schema"),
    (
        {"parameters": {"number": {"about": "x", "schema": {}, "smoke": 1}}},
        "parameters.number: must have either value, or",
    ),
]


@pytest.mark.parametrize(("change", "part"), WORKLOAD_MISTAKES)
def test_a_mistake_in_a_workload_is_told_with_its_file(project, change, part):
    project(workloads={"noop": {**projects.NOOP, **change}})
    with pytest.raises(UserError) as caught:
        workload.load("noop")
    assert "workloads/noop/workload.yaml: " in str(caught.value)
    assert part in str(caught.value)


def test_the_command_line_shows_a_message_and_no_traceback(project):
    folder = project(projects.on_host(scale="smok"))
    done = projects.run(folder, "strata", "check")
    assert done.returncode == 1
    assert done.stderr == 'strata: config.yaml: scale: is "smok"; must be one of smoke, quick, paper\n'


ADAPTIVE_MISTAKES = [
    ({"min": 5, "max": 3, "target": "5%"}, "repetitions.max: is 3; must be at least min, 5"),
    ({"min": 1, "max": 3, "target": "5%"}, "repetitions.min: is 1; must be at least 2"),
    ({"min": 2, "max": 3, "target": 5}, "repetitions.target: is 5; must be text"),
    ({"min": 2, "max": 3, "target": "0%"}, "repetitions.target: is 0%"),
    ({"min": 2, "max": 3}, "repetitions.target: missing; it is half-width"),
    ({"min": 2, "max": 3, "target": "5%", "cap": 9}, "repetitions.cap: unknown key"),
    ({"min": 2, "max": 3, "target": "5%", "budget": "0min"}, "repetitions.budget: is 0min; must be more than 0s"),
    ({"min": 2, "max": 3, "target": "5%", "budget": "25"}, 'repetitions.budget: is "25"; must match'),
]


@pytest.mark.parametrize(("value", "part"), ADAPTIVE_MISTAKES)
def test_repetitions_to_a_precision_are_checked(page, tmp_path, value, part):
    assert part in complaint(tmp_path, {**page, "repetitions": value})


def test_repetitions_to_a_precision_plan_up_to_the_cap(checkout):
    over = {"min": 3, "max": 7, "target": "2.5%", "budget": None}
    plan = config.experiment(config.read({"repetitions": over}), MACHINE)
    assert plan["repetitions"] == 7
    planned = {"min": 3, "max": 7, "target": 0.025, "budget": None, "retries": 2}
    assert plan["precision"] == {**planned, "claims": True}
    alone = config.experiment(config.read({"repetitions": {**over, "claims": False}}), MACHINE)
    assert alone["precision"] == planned


def test_there_are_no_more_sets_than_one_of_those_compared_with_native_is_in(checkout):
    def sets_of(names, repetitions):
        over = {"repetitions": repetitions, "only": {"environments": names}}
        return config.experiment(config.read(over), MACHINE)

    asked = {"min": 3, "max": 90, "target": "2%", "budget": None}
    both = sets_of(["native", "docker", "docker-gvisor"], asked)
    assert (both["precision"]["max"], both["repetitions"]) == (90, 90)
    assert {name: entry.get("max") for name, entry in both["environments"].items()} == {
        "native": None,
        "docker": None,
        "docker-gvisor": 5,
    }
    assert sets_of(["native", "docker-gvisor"], asked)["precision"]["max"] == 5
    assert sets_of(["docker-gvisor"], asked)["repetitions"] == 5
    assert sets_of(["native", "docker-gvisor"], {**asked, "min": 7})["precision"]["max"] == 7
    assert sets_of(["native", "docker-gvisor"], 9)["precision"]["min"] == 5
    assert sets_of(["native"], asked)["precision"]["max"] == 90


def test_a_budget_is_in_seconds_and_a_fixed_number_of_sets_measures_again_only_where_that_is_asked_for(checkout):
    planned = config.experiment(config.read({"repetitions": {"budget": "1.5h"}}), MACHINE)
    assert planned["precision"]["budget"] == 5400
    fixed = {"repetitions": 4, "quiet": {"action": "flag"}}
    assert "precision" not in config.experiment(config.read(fixed), MACHINE)
    again = config.experiment(config.read({"repetitions": 4}), MACHINE)
    assert again["precision"] == {"min": 4, "max": 12, "target": None, "budget": None, "retries": 2}
    assert "precision" not in config.experiment(config.read({"repetitions": 4, "order": "sequential"}), MACHINE)


VM = {"bare": {"layers": ["host"]}, "machine": {"label": "{vm}, big", "layers": [{"vm": {"profile": "big"}}]}}


def with_vm(profiles, environments=None):
    return projects.on_host(environments=environments or VM, vm={"profiles": profiles}, workloads={"pxz": None})


@pytest.mark.parametrize(
    ("profiles", "key", "words"),
    [
        ({"bigg": {}}, "environments.machine.layers.0.vm.profile", "did you mean 'bigg'?"),
        ({"big": {"memory": "4GB"}}, "vm.profiles.big.memory", "must match"),
        ({"big": {"pinn": True}}, "vm.profiles.big.pinn", "did you mean 'pin'?"),
        ({"big": {"disk_io": "fast"}}, "vm.profiles.big.disk_io", "must be one of default, threads, native, io_uring"),
        ({"big": {"passthrough": ["03:10.0"]}}, "vm.profiles.big.passthrough.0", "must match"),
        ({"big": {"cpus": 0}}, "vm.profiles.big.cpus", "at least 1"),
        ({"big": {"memory": {"smoke": "2GiB"}}}, "vm.profiles.big.memory.quick", "missing"),
        ({}, "vm.profiles", "at least 1"),
    ],
)
def test_a_mistake_in_a_profile_is_told(tmp_path, monkeypatch, profiles, key, words):
    monkeypatch.chdir(projects.make(tmp_path / "p", with_vm(profiles)))
    with pytest.raises(UserError) as told:
        config.read()
    assert f"config.yaml: {key}: " in str(told.value)
    assert words in str(told.value)


@pytest.mark.parametrize(
    ("accelerator", "label"), [("kvm", "KVM, big"), ("tcg", "VM (TCG emulation), big"), (None, "VM, big")]
)
def test_a_machine_is_called_what_it_is(tmp_path, monkeypatch, accelerator, label):
    monkeypatch.chdir(projects.make(tmp_path / "p", with_vm({"big": {"cpus": 2, "memory": "1GiB"}})))
    finding = {"accelerator": accelerator, "accelerator_reason": "tried"}
    monkeypatch.setattr("strata.vm.acceleration.known", lambda: finding)
    monkeypatch.setattr("strata.layers.vm.Vm.unavailable", classmethod(lambda cls: None))
    monkeypatch.setattr("strata.host.distribution.os_release", lambda: {"ID": "debian", "VERSION_CODENAME": "bookworm"})
    facts = {"cpus": 2, "memory_bytes": 2**34, "cache_bytes": None}
    entry = config.experiment(config.read(), facts)["environments"]["machine"]
    assert entry["label"] == label
    assert entry["accelerator"] == accelerator
    assert entry["accelerator_reason"] == "tried"
    options = entry["layers"][0]["vm"]
    assert options["settings"]["cpus"] == 2
    assert options["accelerator"] == accelerator


def test_docker_stands_on_a_machine_and_a_machine_on_the_host_alone(tmp_path, monkeypatch):
    stack = [{"docker": {"network": "host", "data": "volume"}}, "vm"]
    monkeypatch.chdir(projects.make(tmp_path / "p", projects.on_host(environments={"odd": {"layers": stack}})))
    with pytest.raises(UserError, match="'vm' cannot stand on 'docker'; it stands on host"):
        config.read()


EIGHT = """
scale: smoke
repetitions: {min: 9, max: 3, target: 5%}
sede: 1
environments:
  native: {label: 5, layers: [docker: {network: host, data: volume}, chroot]}
  machine: {layers: [vm: {profile: big}]}
vm: {profiles: {bigg: {pinn: true}, small: {memory: 1MiB}}}
workloads: {stream: {trials: 1, elemets: 5}, moon: {}, good: {}, broken: {}}
only: {environments: [nativ]}
client: {rate: 0bit}
"""
BROKEN = {
    "run": [
        {"argv": ["nosuch.sh", "{numbre}"], "timeout": 20},
        {"argv": ["/bin/true"], "timeout": -1},
        {"argv": ["/opt/strata/bin/nosuch"], "timeout": 5},
    ],
    "figures": [{"name": "a", "kind": "sweep", "metric": "rat", "along": "conections"}, {"name": "b"}],
    "titel": "x",
}


def test_all_that_is_wrong_is_told_in_one_pass(tmp_path, monkeypatch):
    workloads = {"good": projects.NOOP, "broken": {**projects.NOOP, **BROKEN}, "bare": projects.NOOP}
    folder = projects.make(tmp_path / "p", {}, workloads, copy=True)
    shutil.copytree(projects.ROOT / "workloads/stream", folder / "workloads/stream")
    (folder / "config.yaml").write_text(EIGHT)
    (folder / "workloads/bare/parse.R").unlink()
    (folder / "workloads/broken/parse.R").write_text(
        "parse_brokn <- function(lines, p) measured('a', 'connections=4')\n"
    )
    (folder / "workloads/broken/build.sh").write_text('cp there.sh "$1"\n')
    published = json.loads((folder / "published/claims.json").read_text())
    published["claims"][1] |= {"published": {"value": "3 %", "unnit": "x"}, "publication": "imb2014"}
    published["claims"][2] = "no object"
    (folder / "published/claims.json").write_text(json.dumps(published))
    name = published["claims"][1]["id"]
    monkeypatch.chdir(folder)
    workload.load.cache_clear()
    done = projects.run(folder, "strata", "check")
    assert done.returncode == 1
    told = "\n".join(line.removeprefix("strata: ") for line in done.stderr.splitlines())
    for beginning in [
        "config.yaml: repetitions.max: is 3; must be at least min, 9",
        "config.yaml: sede: unknown key; did you mean 'seed'?",
        "config.yaml: seed: missing",
        "config.yaml: environments.native.label: is 5; must be text",
        "config.yaml: environments.native.layers.1: 'chroot' cannot stand on 'docker'",
        "config.yaml: environments.machine.layers.0.vm.profile: 'big' is no profile",
        "config.yaml: vm.profiles.bigg.pinn: unknown key; did you mean 'pin'?",
        "config.yaml: vm.profiles.small.memory: is 1MiB; must be at least 256MiB",
        "config.yaml: workloads.stream.trials: is 1; must be at least 2",
        "config.yaml: workloads.stream.elemets: unknown parameter; did you mean 'elements'?",
        "config.yaml: workloads.moon: there is no folder",
        "config.yaml: only.environments.0: 'nativ' is none of environments; did you mean 'native'?",
        'config.yaml: client.rate: is "0bit"; must match ^[1-9][0-9]*(kbit|mbit|gbit)$ (a rate above 0, such as 1gbit)',
        "workloads/broken/workload.yaml: titel: unknown key; did you mean 'title'?",
        "workloads/broken/workload.yaml: run.1.timeout: must be seconds",
        "workloads/broken/workload.yaml: run.0.argv: '{numbre}' names no parameter; did you mean 'number'?",
        "workloads/broken/workload.yaml: run.0.argv.0: is 'nosuch.sh', a program of the workload's own",
        "workloads/broken/workload.yaml: run.2.argv.0: there is no workloads/common/nosuch.sh",
        "workloads/broken/workload.yaml: figures.0.metric: 'rat' is no metric",
        "workloads/broken/workload.yaml: figures.0.along: 'conections' is no factor that parse.R gives; did you mean",
        "workloads/broken/workload.yaml: figures.1.kind: missing",
        "workloads/broken: parse.R: does not define parse_broken(lines, parameters)",
        "workloads/bare: parse.R: missing; must define parse_bare(lines, parameters)",
        f'published/claims.json: claims.1.published.value ({name}): is "3 %"; must be a number',
        f"published/claims.json: claims.1.published.unnit ({name}): unknown key; did you mean 'unit'?",
        f"published/claims.json: claims.1.publication ({name}): 'imb2014' is none of publications; did you mean",
        'published/claims.json: claims.2: is "no object"; must be a mapping',
    ]:
        assert beginning in told
    assert not any(line.startswith("workloads/good") for line in told.splitlines())


@pytest.mark.parametrize("label", ["Na\u200btive", "Docker\u2800", "\u3164", "Docker\u2003x", "\ufeffNative"])
def test_a_label_holds_no_character_that_is_not_seen(page, tmp_path, label):
    page["environments"]["native"]["label"] = label
    assert "environments.native.label: holds the character U+" in complaint(tmp_path, page)


@pytest.mark.parametrize("label", ["Docker ", "Docker\u00a0", " Docker", "\uff24ocker"])
def test_labels_that_look_alike_are_told(page, tmp_path, label):
    page["environments"]["native"]["label"] = label
    assert "is also that of docker; each needs its own" in complaint(tmp_path, page)


def test_what_emulated_machines_leave_out_is_a_workload_of_the_page(checkout):
    assert "not_emulated" not in config.experiment(config.read(), MACHINE)
    settings = config.read({"not_emulated": ["stream"]})
    assert config.experiment(settings, MACHINE)["not_emulated"] == ["stream"]
    # What is not measured at all is left out by nobody.
    narrowed = config.read({"not_emulated": ["stream"], "only": {"workloads": ["linpack"]}})
    assert "not_emulated" not in config.experiment(narrowed, MACHINE)
    with pytest.raises(UserError, match=r"not_emulated.0: 'strem' is none of workloads; did you mean 'stream'\?"):
        config.read({"not_emulated": ["strem"]})


def test_only_some_environments_and_workloads_can_be_asked_for(checkout):
    whole = config.read()
    only = {"environments": ["docker", "native"], "workloads": ["stream"]}
    settings = config.read({"only": only})
    assert list(settings["environments"]) == ["native", "docker"]
    assert list(settings["workloads"]) == ["stream"]
    assert config.read({"only": {"workloads": ["stream"]}})["environments"] == whole["environments"]
    one, all_of_it = (config.experiment(chosen, MACHINE) for chosen in (settings, whole))
    cells = [fingerprint(plan, "docker", "stream") for plan in (one, all_of_it)]
    assert cells[0] == cells[1]
    with pytest.raises(UserError, match=r"only.workloads.0: 'strem' is none of workloads; did you mean 'stream'\?"):
        config.read({"only": {"workloads": ["strem"]}})
    with pytest.raises(UserError, match=r"only\.workloads: is empty"):
        config.read({"only": {"workloads": []}})


def test_only_is_understood_on_the_command_line(project, monkeypatch):
    from snakemake.cli import parse_config

    for name in ("PATH", "PYTHONPATH"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    environments = {"bare": {"layers": ["host"]}, "other": {"layers": ["host"]}}
    folder = project(projects.on_host(environments=environments))
    words = parse_config(["only={environments: [other]}"])
    assert Workflow(words, str(folder)).environments == ["other"]


def test_hints_name_snakemake_as_it_was_started(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.executable", f"{tmp_path}/.venv/bin/python")
    for program, shown in [
        (".venv/bin/snakemake", ".venv/bin/snakemake"),
        (f"{tmp_path}/.venv/bin/snakemake", ".venv/bin/snakemake"),
        ("/opt/my tools/snakemake", "'/opt/my tools/snakemake'"),
        (f"{tmp_path}/lib/snakemake/__main__.py", ".venv/bin/python -m snakemake"),
        ("/usr/bin/pytest", ".venv/bin/snakemake"),
    ]:
        assert started_by(program) == shown
    (tmp_path / "snakemake").write_text("#!/bin/sh\n")
    (tmp_path / "snakemake").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert started_by(f"{tmp_path}/snakemake") == "snakemake"


def test_a_resumed_run_is_told_what_earlier_ones_left_of_the_budget(project, monkeypatch):
    for name in ("PATH", "PYTHONPATH"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    precision = {"min": 2, "max": 9, "target": "5%", "budget": "10min"}
    folder = project(projects.on_host(repetitions=precision, quiet={"action": "flag"}))
    told = []
    monkeypatch.setattr("strata.base.progress.begin", lambda *given: told.append(given[-1]))
    monkeypatch.setattr("strata.snakemake.interrupts.pass_on", lambda: None)
    raw = folder / "results/raw/bare/noop"
    for measured, spent in ((0, None), (90.5, None), (0, 250.0), (0, 700.0)):
        if measured:
            # It was ended before anything was decided.
            raw.mkdir(parents=True)
            (raw / "1.json").write_text(json.dumps({"seconds": measured}))
        if spent is not None:
            (folder / "results/precision").mkdir(exist_ok=True)
            state = {"noop": {"again": [], "more": 3}}
            text = json.dumps({"block": 2, "enough": False, "spent_seconds": spent, "workloads": state})
            (folder / "results/precision/2.json").write_text(text)
        experiment = Workflow({}, str(folder))
        experiment.begin([])
        os.close(experiment._lock)
    assert told == [600.0, 509.5, 350.0, 0.0]


def test_what_lay_over_the_page_is_typed_again_for_a_single_cell(monkeypatch):
    monkeypatch.setenv(run.OVER, "")
    assert run.again("a.log").endswith("snakemake --cores 1 a.log")
    given = {"only": {"environments": ["vm"]}, "seed": 7, "partial": True}
    words = laid_words(["everything.yaml", "my own.yaml"], given)
    assert shlex.split(words) == [
        *("--configfile", "everything.yaml", "my own.yaml"),
        *("--config", 'only={"environments": ["vm"]}', "seed=7", "partial=True"),
    ]
    assert laid_words([], {}) == ""
    monkeypatch.setenv(run.OVER, laid_words(["everything.yaml"], {}))
    assert run.again("a.log").endswith("snakemake --cores 1 --configfile everything.yaml -- a.log")
