"""An image of one's own, without Docker: its users, and the experiments that cannot have it."""

import projects
import pytest
from test_config import MACHINE

from strata.environments import docker
from strata.experiment import config, planning, recipe, workload
from strata.host.context import Context
from strata.image import own_image
from strata.measure.arguments import fill_command
from strata.util import paths
from strata.util.errors import UserError
from strata.util.files import write_json

PASSWD = "root:x:0:0:root:/root:/bin/sh\napp:x:1000:100:An app:/home/app:/bin/sh\nbroken\n"
GROUP = "root:x:0:\nusers:x:100:\nvideo:x:44:app,other\nwheel:x:10:app\n"


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("app", (1000, 100, [10, 44, 100], "/home/app")),
        ("1000", (1000, 100, [10, 44, 100], "/home/app")),
        ("app:video", (1000, 44, [44], "/home/app")),
        ("app:7", (1000, 7, [7], "/home/app")),
        ("4242", (4242, 0, [0], "/")),
        ("4242:users", (4242, 100, [100], "/")),
        ("root", (0, 0, [0], "/root")),
        ("nobody", None),
        ("app:nobody", None),
    ],
)
def test_a_user_is_the_one_that_docker_makes_of_it(text, resolved):
    user = own_image.resolve_user(text, PASSWD, GROUP)
    keys = ("uid", "gid", "groups", "home")
    assert (user and tuple(user[key] for key in keys)) == resolved


@pytest.fixture
def image(monkeypatch):
    """Docker has the image app:1, whatever is asked for."""

    def inspect(reference):
        return {"reference": reference, "Id": f"sha256:{reference}", "Config": {}}

    monkeypatch.setattr(docker, "inspect_image", inspect)


def planned(**over):
    stacks = {"native": ["chroot"], "vm": ["vm"], "lxc": ["lxc"]}
    settings = {
        "environments": {name: {"layers": layers} for name, layers in stacks.items()},
        "workloads": {"startup": None},
        "image": {"docker": "app:1"},
    }
    over = {**settings, **over}
    over["only"] = {"environments": [*stacks], "workloads": [*over["workloads"]]}
    return planning.build_plan(config.read_config(projects.on_host(**over)), MACHINE)


def test_what_cannot_run_it_is_not_available_and_its_name_is_in_the_plan(checkout, image):
    made = planned()
    environments = made["environments"]
    assert environments["native"]["available"]
    assert environments["vm"]["reason"] == "the image has no kernel and init"
    assert "USER and WORKDIR" in environments["lxc"]["reason"]
    assert made["image"]["release"] == "app:1"
    # Another image behind the same recipe of Strata's makes cells due.
    assert made["image"]["recipe"] != recipe.describe_image({"docker": "app:2"})["recipe"]


def test_a_paper_is_made_without_it_and_nothing_else(project, monkeypatch):
    def inspect(reference):
        raise UserError("Docker has no such image here")

    monkeypatch.setattr(docker, "inspect_image", inspect)
    project()
    planned = {"distribution": "docker", "release": "app:1", "recipe": "r"}
    write_json(paths.PLAN, {"image": planned})
    assert recipe.describe_image({"docker": "app:1"}) == planned | {"base": ""}
    with pytest.raises(UserError, match="no such image"):
        recipe.describe_image({"docker": "app:2"})


@pytest.mark.parametrize(
    ("over", "key", "remedy"),
    [
        ({"workloads": {"stream": None}}, "workloads.stream", "needs "),
        ({"workloads": {"redis": None}}, "workloads.redis", "redis-server"),
        ({"image": {"docker": "app:1", "release": "trixie"}}, "image.release", "leave release"),
        ({"image": {"docker": "a", "distribution": "debian"}}, "image.distribution", "or docker"),
        ({"image": {"docker": "-v"}}, "image.docker", "a Docker image of your own"),
        ({"image": {"docker": "a b"}}, "image.docker", "a Docker image of your own"),
    ],
)  # fmt: skip
def test_what_contradicts_it_is_refused_by_its_key(checkout, image, over, key, remedy):
    with pytest.raises(UserError) as caught:
        planned(**over)
    assert key in str(caught.value)
    assert remedy in str(caught.value)


def test_the_programs_of_a_portable_workload_are_brought_along(project, image):
    own = {**projects.NOOP, "packages": ["gcc"], "run": [{"argv": ["run.sh"], "timeout": 9}]}
    made = project()
    folder = made / "workloads/own"
    projects.write_yaml(folder / "workload.yaml", own)
    assert workload.list_image_needs("own") == ["gcc", "run.sh"]
    settings = {"docker": "app:1", "workloads": ["own"]}
    before = recipe.describe_image(settings)["recipe"]
    workload.read_declaration.cache_clear()
    projects.write_yaml(folder / "workload.yaml", {**own, "portable": True})
    assert workload.list_image_needs("own") == []
    (folder / "run.sh").write_text("#!/bin/sh\ntrue\n")
    (folder / "build.sh").write_text('cp run.sh "$1"\n')
    assert recipe.describe_image(settings)["recipe"] != before
    assert recipe.list_image_files(settings) == ["workloads/own/build.sh", "workloads/own/run.sh"]
    programs = own_image.build_programs(["own"], str(made / "programs"))
    assert [*programs] == ["opt/strata/workloads/own/run.sh"]
    (folder / "build.sh").write_text("echo no compiler; exit 1\n")
    with pytest.raises(UserError, match=r"own/build.sh: .*apt-get install gcc[^$]*no compiler"):
        own_image.build_programs(["own"], str(made / "again"))


@pytest.mark.parametrize(
    ("argv", "entrypoint", "filled"),
    [
        (["{entrypoint}", "/app", "{n}"], ["tini", "--"], ["tini", "--", "/app", "1"]),
        (["{entrypoint}", "app"], [], ["app"]),
        (["run", "{entrypoint}"], ["a", "b"], ["/opt/strata/workloads/w/run", "a", "b"]),
    ],
)
def test_an_entrypoint_is_as_many_words_as_it_has(argv, entrypoint, filled):
    assert fill_command(argv, {"n": 1, "entrypoint": entrypoint}, "w") == filled


def test_programs_have_the_variables_of_the_image_and_no_others():
    run = {"variables": ["PATH=/bin", "A=b"]}
    own = Context("x", "/x", {"folder": "/y", "run": run})
    assert own.wrap_with_variables(["true"]) == ["env", "-i", "PATH=/bin", "A=b", "true"]
    assert "A=b" not in Context("x", "/x", {"folder": "/y"}).wrap_with_variables(["true"])


@pytest.mark.parametrize(
    ("image", "settings", "reason"),
    [
        ({"docker": "app:1"}, {}, None),
        ({"docker": "app:1"}, {"Env": ["A=1"]}, "its ENV is not that of app:1"),
        ({"docker": "app:1"}, {"User": "app"}, "its USER is not that of app:1"),
        ({"docker": "app:1"}, {"WorkingDir": "/app"}, "its WORKDIR is not that of app:1"),
        ({"docker": "app:1"}, {"Entrypoint": ["/run"]}, "its ENTRYPOINT is not that of app:1"),
        ({"docker": "app:1"}, {"Volumes": {"/a": {}}}, "its VOLUME is not that of app:1"),
        ({}, {}, "needs image.docker"),
    ],
)
def test_another_version_of_the_image_runs_only_as_the_first(monkeypatch, image, settings, reason):
    def inspect(reference):
        config = settings if reference == "app:2" else {"Env": [], "User": ""}
        return {"reference": reference, "Id": f"sha256:{reference}", "Config": config}

    monkeypatch.setattr(docker, "inspect_image", inspect)
    options = {"network": "bridge", "data": "volume", "image": "app:2"}
    resolved = docker.Layer.resolve_options(options, {"image": image})
    assert docker.Layer.restore_options(resolved) == options
    refused = resolved["image"].get("refused")
    assert (
        reason in refused
        if reason
        else (refused, resolved["image"]["id"])
        == (
            None,
            "sha256:app:2",
        )
    )
