"""Sets on the nodes of Slurm, as far as no Slurm is needed: what is asked of it, what is counted, what is refused."""

import json
import os
import shutil
from types import SimpleNamespace

import measured
import projects
import pytest
import yaml

from strata import doctor
from strata.archive.private import Private
from strata.base import places, process, run
from strata.base.errors import UserError
from strata.cell import record
from strata.experiment import plan, sets
from strata.host import capacity, node
from strata.image import cache, depot
from strata.results import accept, judge, made, products
from strata.snakemake import insides, nodes

PROFILE = projects.ROOT / "profiles/slurm/config.yaml"
RECIPE = "ab" * 32


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A project with three measured sets of two environments, each set on a node of its own; its plan."""
    measured.project(tmp_path / "p", monkeypatch, measured.page(workloads={"stream": {"elements": 20_000_000}}))
    experiment = json.loads((tmp_path / "p" / places.PLAN).read_text()) | {"spread": True}
    plan.write(experiment)
    for cell in sets.Order(experiment).cells():
        edit(cell, lambda told, name=f"n{cell[2]}": told.update(node={"name": name, "boot": None}))
    return experiment


def edit(cell, change):
    path = places.cell_path("raw", *cell, "json")
    with open(path) as file:
        told = json.load(file)
    change(told)
    with open(path, "w") as file:
        json.dump(told, file, indent=1)


def test_nodes_count_their_measurements_each_for_itself(results):
    cells = sets.Order(results).cells()
    for cell in cells:
        edit(cell, lambda told, place=1 + (cell[0] == "docker"): told["position"].update(actual=place))
    assert judge.faults(results, cells) == {}
    alone = {key: value for key, value in results.items() if key != "spread"}
    wrong = [words for found in judge.faults(alone, cells).values() for words in found]
    assert len(wrong) == 4
    assert all("its place in the order of measurement is that of" in words for words in wrong)
    # One of the counters is lost: that of the others plays no part.
    assert record.next_number("n1") == 3
    record.note_number(7, "n1")
    assert (record.next_number("n1"), record.next_number("n2"), record.next_number("new")) == (8, 3, 1)


def test_a_node_is_called_as_slurm_calls_it_elsewhere_as_its_host(monkeypatch):
    monkeypatch.delenv(node.SLURM, raising=False)
    assert node.facts()["name"] == os.uname().nodename
    monkeypatch.setenv(node.SLURM, "rack7-n3")
    assert node.facts()["name"] == "rack7-n3"
    monkeypatch.setattr(node, "BOOT", "/no/such")
    assert node.facts()["boot"] is None
    assert node.of_record({"node": {"name": "a"}}) == "a"
    assert [node.of_record(told) for told in (None, {}, {"node": "a"})] == [None, None, None]


def test_what_is_left_of_a_set_goes_to_the_node_of_the_rest(results):
    order = sets.Order(results)
    cell = ("docker", "stream", 2)
    assert nodes.options(order, cell, {cell}) == "--exclusive --nodelist=n2"
    # Where all of it is measured again any node will do.
    both = {("native", "stream", 2), cell}
    assert nodes.options(order, cell, both) == "--exclusive"
    os.unlink(places.cell_path("raw", "native", "stream", 2, "log"))
    assert nodes.options(order, cell, {cell}) == "--exclusive"


FACTS = {"cpus": os.cpu_count(), "memory_bytes": 8 * 10**9, "cache_bytes": 2**20}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cpus": 64}, f"CPUs: {FACTS['cpus']} here, 64 in results/plan.json"),
        ({"memory_bytes": 9 * 10**9}, "bytes of memory: 8000000000 here, 9000000000 in results/plan.json"),
        ({"cache_bytes": 5}, "bytes of last-level cache: 1048576 here, 5 in results/plan.json"),
    ],
)
def test_a_node_of_another_kind_is_refused_by_what_differs(changes, words):
    with pytest.raises(UserError, match=words):
        nodes.check({"machine": {**FACTS, **changes}}, FACTS)


def test_a_node_of_the_kind_is_taken_with_a_little_more_or_less_memory():
    nodes.check({"machine": FACTS}, FACTS)
    nodes.check({"machine": {**FACTS, "memory_bytes": 8.1 * 10**9, "cache_bytes": None}}, FACTS)


def test_a_part_of_a_node_is_refused(monkeypatch):
    monkeypatch.setattr(os, "sysconf", lambda name: 96)
    monkeypatch.setenv(node.SLURM, "n1")
    with pytest.raises(UserError, match="node n1: Slurm gives this job 2 of 96 CPUs; a set needs the whole node"):
        nodes.check({"machine": {**FACTS, "cpus": 96}}, {**FACTS, "cpus": 2})


def test_hardware_and_emulation_are_not_mixed():
    machine = {"available": True, "accelerator": "kvm"}
    experiment = {"environments": {"native": {"available": True}, "vm": machine}}
    nodes.check_accelerator(experiment, "kvm")
    with pytest.raises(UserError, match=r"vm is KVM in results/plan\.json, and VM \(TCG emulation\) here"):
        nodes.check_accelerator(experiment, "tcg")


def going(**changes):
    """A workflow of Snakemake's that sends its jobs elsewhere, by the profile but for some changes."""
    told = {"groups": {"cell": insides.SET}, "components": {insides.SET: 100}, "scope": True, "keep": True, **changes}
    return SimpleNamespace(
        remote_exec=False,
        local_exec=False,
        group_settings=SimpleNamespace(overwrite_groups=told["groups"], group_components=told["components"]),
        resource_scopes=SimpleNamespace(is_local=lambda name: told["scope"]),
        execution_settings=SimpleNamespace(keep_incomplete=told["keep"], keep_going=False),
        scheduling_settings=SimpleNamespace(max_jobs_per_timespan=SimpleNamespace(timespan=1)),
    )


def test_sets_that_could_be_torn_are_refused():
    assert insides.is_spread(going(), "9.27.1")
    insides.settle_spread(going(), "9.27.1")
    for wrong in ({"groups": {}}, {"components": {}}, {"scope": False}, {"keep": False}):
        with pytest.raises(UserError, match="add `--workflow-profile profiles/slurm`"):
            insides.settle_spread(going(**wrong), "9.27.1")


def test_a_part_of_a_run_goes_on_after_a_failure_and_is_woken_for_nothing():
    workflow = going()
    insides.settle_part(workflow, "9.27.1")
    assert not workflow.execution_settings.keep_going
    workflow.remote_exec = True
    assert not insides.is_spread(workflow, "9.27.1")
    insides.settle_part(workflow, "9.27.1")
    assert workflow.execution_settings.keep_going
    assert workflow.scheduling_settings.max_jobs_per_timespan is None


def test_the_profile_says_what_is_asked_of_it_and_what_the_default_one_says():
    profile = yaml.safe_load(PROFILE.read_text())
    assert profile["groups"] == {"cell": insides.SET}
    assert profile["group-components"] == {insides.SET: insides.MOST_OF_SET}
    assert profile["set-resource-scopes"] == {"testbed": "local"}
    assert profile["default-resources"]["slurm_extra"].strip("'") == nodes.EXCLUSIVE
    default = yaml.safe_load((projects.ROOT / "profiles/default/config.yaml").read_text())
    for key in set(default) - {"latency-wait", "quiet"}:
        assert profile[key] == default[key]


def test_every_job_on_a_node_has_an_owner_of_its_own(monkeypatch):
    monkeypatch.setenv(run.OWNER, f"{os.getppid()}:{process.start_time(os.getppid())}")
    monkeypatch.delenv(run.JOB, raising=False)
    run.begin()
    assert run.owner()["pid"] == os.getppid()
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv(run.JOB, "")
    monkeypatch.delenv(run.JOB)
    run.begin(part=True)
    assert run.owner()["pid"] == os.getpid()
    # A step of the job belongs to its first process.
    monkeypatch.setenv(run.OWNER, f"{os.getppid()}:{process.start_time(os.getppid())}")
    run.begin(part=True)
    assert run.owner()["pid"] == os.getppid()
    monkeypatch.setenv("SLURM_JOB_ID", "13")
    run.begin(part=True)
    assert run.owner()["pid"] == os.getpid()
    monkeypatch.delenv(run.JOB)


def test_cells_that_were_measured_on_nodes_stay_of_nodes(project):
    folder = project()
    assert projects.run(folder, "strata", "plan").returncode == 0
    told = json.loads((folder / places.PLAN).read_text())
    assert "spread" not in told
    (folder / places.PLAN).write_text(json.dumps({**told, "spread": True}))
    assert projects.run(folder, "strata", "plan").returncode == 0
    assert json.loads((folder / places.PLAN).read_text()) == {**told, "spread": True}
    assert plan.fingerprint(told, "bare", "noop") == plan.fingerprint({**told, "spread": True}, "bare", "noop")


def test_the_table_of_nodes_is_made_only_where_there_are_several(results):
    assert "nodes" in made.State(results).products()
    alone = {key: value for key, value in results.items() if key != "spread"}
    assert "nodes" not in made.State(alone).products()
    with_nodes, without = (products.of_experiment(one, ["stream"]) for one in (results, alone))
    assert set(with_nodes) - set(without) == {"nodes"}
    assert set(with_nodes["paper/report.pdf"].reads) - set(without["paper/report.pdf"].reads) == {"results/nodes.csv"}


def test_a_refused_log_is_not_measured_again_on_the_machine_that_makes_the_tables(results):
    asked = []
    cell = ("docker", "stream", 2)

    def parse(cells):
        return {one: "no" for one in cells if one == cell}

    accept.accept(results, ["stream"], None, parse=parse, measure=asked.append)
    assert asked == []
    assert not os.path.exists(places.cell_path("raw", *cell, "log"))
    assert os.path.exists(places.cell_path("failed", *cell, "log"))


def test_an_image_is_packed_once_and_brought_to_a_node_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "here"))
    with pytest.raises(UserError, match=f"the image {RECIPE[:12]} is not in"):
        depot.put(RECIPE)
    folder = tmp_path / "here/images" / RECIPE
    (folder / "tree/bin").mkdir(parents=True)
    (folder / "tree/bin/sh").symlink_to("dash")
    (folder / "tree/bin/dash").write_text("x")
    (folder / "tree/bin/dash").chmod(0o4755)
    for name in ("image.json", "manifest.json", "stamp.json"):
        (folder / name).write_text("{}" if name != "image.json" else '{"id": "f00"}')
    # A machine's disk lies in libvirt's pool and belongs to a box; a light machine's lies beside the image.
    for kind, volume in (("kvm", tmp_path / "here/vm/pool/disk"), ("light", folder / "vm-light/root.qcow2")):
        (folder / f"vm-{kind}").mkdir()
        volume.parent.mkdir(parents=True, exist_ok=True)
        volume.write_text(kind)
        facts = {"box": f"box-{kind}", "volume": {"path": str(volume)}}
        (folder / f"vm-{kind}/disk.json").write_text(json.dumps(facts))
    (tmp_path / "here/vm/vagrant/boxes/box-kvm/0").mkdir(parents=True)
    os.link(tmp_path / "here/vm/pool/disk", tmp_path / "here/vm/vagrant/boxes/box-kvm/0/box.img")
    depot.put(RECIPE)
    seen = os.stat(depot.path(RECIPE))
    assert seen.st_mode & 0o777 == 0o600
    depot.put(RECIPE)
    assert os.stat(depot.path(RECIPE)).st_ino == seen.st_ino
    # Disks are found by their places.
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "node"))
    with pytest.raises(UserError, match="STRATA_HOME has to be the same on all nodes"):
        depot.take(RECIPE)
    shutil.move(tmp_path / "here", tmp_path / "first")
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "here"))
    depot.take(RECIPE)
    found = cache.require(RECIPE)
    there = tmp_path / "here/images" / RECIPE
    assert found["folder"] == str(there)
    volume, box = tmp_path / "here/vm/pool/disk", tmp_path / "here/vm/vagrant/boxes/box-kvm/0/box.img"
    assert volume.read_text() == "kvm"
    assert volume.stat().st_ino == box.stat().st_ino
    assert (there / "vm-light/root.qcow2").read_text() == "light"
    assert (there / "tree/bin/dash").stat().st_mode & 0o7777 == 0o4755
    assert os.readlink(there / "tree/bin/sh") == "dash"
    # What was noted of the files is of another disk: they are read again.
    assert not (there / "stamp.json").exists()
    os.unlink(depot.path(RECIPE))
    depot.take(RECIPE)
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "third"))
    with pytest.raises(UserError, match=r"neither in .* nor packed as results/image/"):
        depot.take(RECIPE)
    os.makedirs(depot.FOLDER, exist_ok=True)
    with open(depot.path(RECIPE), "w") as file:
        file.write("no archive")
    with pytest.raises(UserError, match="`tar` failed"):
        depot.take(RECIPE)
    assert [name for name in os.listdir(tmp_path / "third/images") if not name.endswith(".lock")] == []


def test_an_archive_tells_nodes_apart_by_other_names(tmp_path):
    private = Private(str(tmp_path), {"plain"}, nodes=[f"host-{letter}.lab" for letter in "cab"])
    told, found = private.of_object([{"node": {"name": f"host-{letter}.lab", "boot": None}} for letter in "abc"], set())
    assert [one["node"]["name"] for one in told] == ["REDACTED-HOST-1", "REDACTED-HOST-2", "REDACTED-HOST-3"]
    assert found["REDACTED-HOST"] == 3
    assert private.of_log("from host-b.lab to host-bb.lab")[0] == "from REDACTED-HOST-2 to host-bb.lab"
    # Also a name that must stay where it is a word of the project's.
    private = Private(str(tmp_path), {"plain"}, nodes=["plain", *(f"x{number}" for number in range(10))])
    told, _ = private.of_object({"node": {"name": "plain", "boot": None}}, set())
    assert told["node"]["name"] == "REDACTED-HOST-01"
    assert private.of_log("a plain word")[0] == "a plain word"


@pytest.fixture
def there(tmp_path, monkeypatch):
    """Programs of Slurm's that print a text, and whether Snakemake's executor is here."""

    def build(printed, status=0, executor=True):
        for name in ("sbatch", "sinfo"):
            (tmp_path / name).write_text(f"#!/bin/sh\nprintf '{printed}'\nexit {status}\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        found = SimpleNamespace() if executor else None
        monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: found)
        return doctor._slurm({**capacity.facts(), "cpus": 4})

    return build


def test_the_doctor_tells_of_slurm(there, monkeypatch, tmp_path):
    mark, words = there("n1 idle 4 8000\nn2 alloc 4 8000\nn3 down* 4 8000\n")
    assert (mark, words.partition(";")[0]) == (doctor.GOOD, "3 nodes, 2 of them up")
    mark, words = there("n1 idle 4 8000\nn2 idle 8 8000\n")
    assert mark == doctor.LACKING
    assert "n2 are not as this machine" in words
    assert "requirements-slurm.txt" in there("", executor=False)[1]
    assert "sinfo tells of no nodes" in there("", status=1)[1]
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert doctor._slurm({"cpus": 4})[0] == doctor.LACKING
