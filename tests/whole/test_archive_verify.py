"""An archive of measured cells verifies; a change anywhere in it is found and named."""

import hashlib
import json
import os
import types
import zipfile

import measured
import projects
import pytest

from strata.archive import check, container, make, sums
from strata.base.errors import UserError
from strata.experiment import workload


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """An archive and its project, in which tables and papers are only pretended."""
    with pytest.MonkeyPatch.context() as patch:
        folder = measured.project(tmp_path_factory.mktemp("archive") / "project", patch)
        measured.pretend(folder)
        make.make("archive.zip", False)
        yield folder / "archive.zip"
    workload.load.cache_clear()


@pytest.fixture
def unpacked(packed, tmp_path):
    folder = tmp_path / "unpacked"
    folder.mkdir()
    assert container.unpack(str(packed), str(folder)) == []
    return folder


def edit(path, change):
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def sign(folder):
    """Checksums and crate as of whoever changed the contents knowingly."""
    crate = folder / "ro-crate-metadata.json"
    value = json.loads(crate.read_text())
    for entity in value["@graph"]:
        path = folder / entity["@id"]
        if "sha256" in entity and path.is_file():
            entity["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    crate.write_text(json.dumps(value))
    sums.write(str(folder))


def test_what_was_archived_verifies_packed_and_unpacked(packed, unpacked):
    assert check.verify(str(packed)) == []
    assert check.verify(str(unpacked)) == []


def test_it_holds_what_a_review_needs(unpacked):
    names = set(container.files_below(str(unpacked)))
    for name in (
        "README.md", "LICENSE", "CITATION.cff", "SHA256SUMS", "ro-crate-metadata.json", "archive.json",
        "claims-map.csv", "paper/report.pdf", "paper/report.html", "results/plan.json",
        "results/plan.csv", "results/image.json", "results/image-manifest.json", "results/comparisons.csv",
        "results/claims.csv", "results/tidy/stream.csv", "results/summary.csv", "results/runs.csv",
        "results/SHA256SUMS", "source/Snakefile", "source/config.yaml", "source/analysis/tables.R", "image/recipe.json",
        "environment/python.txt", "environment/r.txt", "environment/tools.txt",
    ):  # fmt: skip
        assert name in names, name
    raw = [name for name in names if name.startswith("results/raw/")]
    assert len(raw) == 2 * 2 * 2 * 3
    assert not any(".venv" in name or "/tmp/" in name or name.startswith("results/logs") for name in names)
    made_of = json.loads((unpacked / "image/recipe.json").read_text())
    assert set(made_of["files"]) >= {"packer/provision.sh", "workloads/stream/src/stream.c"}


def test_the_same_project_gives_the_same_bytes(packed, monkeypatch):
    monkeypatch.chdir(packed.parent)
    make.make("again.zip", False)
    assert (packed.parent / "again.zip").read_bytes() == packed.read_bytes()
    (packed.parent / "again.zip").unlink()


def test_raw_logs_are_the_bytes_that_were_measured(packed, unpacked):
    for log in packed.parent.glob("results/raw/*/*/*"):
        assert (unpacked / log.relative_to(packed.parent)).read_bytes() == log.read_bytes()


# What says how all others are checked is damaged alone, and all others at once.
ALONE = ["SHA256SUMS", "results/plan.json", "archive.json", "ro-crate-metadata.json"]
ALONE += ["results/image.json"]


@pytest.mark.parametrize(
    "damaged", [*ALONE[:2], None, *(pytest.param(name, marks=pytest.mark.long) for name in ALONE[2:])]
)
def test_every_file_is_guarded(unpacked, damaged):
    others = [name for name in container.files_below(str(unpacked)) if name not in ALONE]
    names = [damaged] if damaged else others
    whole = {name: (unpacked / name).read_bytes() for name in names}
    for name, content in whole.items():
        (unpacked / name).write_bytes(content + b"\n")
    found = check.verify(str(unpacked))
    assert [name for name in names if not any(said.startswith(f"{name}: changed") for said in found)] == []
    for name in names:
        (unpacked / name).unlink()
    found = check.verify(str(unpacked))
    assert [name for name in names if not any(said.startswith(f"{name}: missing") for said in found)] == []


def test_a_file_that_was_added_is_found(unpacked):
    (unpacked / "results/raw/native/stream/99.log").write_text("added\n")
    found = check.verify(str(unpacked))
    assert "results/raw/native/stream/99.log: added: SHA256SUMS does not list it" in found
    assert "results/raw/native/stream/99.log: the plan does not hold its cell" in found


def test_a_link_among_the_files_is_found(unpacked):
    os.symlink("/etc/passwd", unpacked / "results/tidy/other.csv")
    assert "results/tidy/other.csv: it is a link or a special file, not a file" in check.verify(str(unpacked))


RECORD = "results/raw/docker/linpack/2.json"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda record: record.update(environment="native"), "its environment is"),
        (lambda record: record.update(seed=1), "its seed is 1"),
        (lambda record: record.update(scale="paper"), "its scale is"),
        (lambda record: record["parameters"].update(min_trials=4), "its parameters is"),
        (lambda record: record["parameters"].update(more=4), "its names of parameters is"),
        (lambda record: record["system"].update(layers=[]), "system.layers: is "),
        (lambda record: record["image"].update(recipe="0a"), "its image's recipe is"),
        (lambda record: record["image"].update(manifest_sha256="0a" * 32), "an image with other files"),
        (lambda record: record["commands"][0].update(exit=1), "commands.0.exit: is 1; must be 0"),
        (lambda record: record["commands"].clear(), "its steps are []"),
        (lambda record: record["commands"].append(record["commands"][0]), "its steps are"),
        (lambda record: record["system"].update(layers=[{"chroot": {}}]), "its layers are"),
        (lambda record: record.update(fingerprint="0" * 16), "its fingerprint is not the plan's"),
        (lambda record: record["checks"][0].update(passed=False), "checks.0.passed: is false"),
        (lambda record: record["position"].update(actual=1), "its place in the order of measurement"),
        (lambda record: record["log"].update(sha256="0" * 64), "it is not the log that"),
        (lambda record: record.pop("system"), "system: missing"),
        (lambda record: record.update(commands=7), "commands: is 7; must be a list"),
    ],
)
def test_a_record_that_does_not_fit_is_found_though_its_checksum_does(unpacked, change, says):
    edit(unpacked / RECORD, change)
    sign(unpacked)
    found = check.verify(str(unpacked))
    assert found
    assert all("docker/linpack/2" in sentence or "order of measurement" in sentence for sentence in found), found
    assert any(says in sentence for sentence in found), found


@pytest.mark.parametrize("name", ["workloads/stream/parse.py", "analysis/tables.R", "published/claims.json"])
def test_source_that_was_changed_is_found_though_its_checksum_fits(unpacked, name):
    path = unpacked / "source" / name
    path.write_text(path.read_text() + "\n")
    sign(unpacked)
    (named,) = check.verify(str(unpacked))
    assert named.startswith("archive.json: the SWHID of the source is ")


@pytest.mark.parametrize("name", ["results/blocks.csv", "results/tidy/stream.csv", "results/left_out.csv"])
def test_a_table_that_was_replaced_is_found_though_its_checksum_fits(unpacked, name):
    (unpacked / name).write_text("another\n")
    sign(unpacked)
    (found,) = check.verify(str(unpacked))
    assert found.startswith(f"{name}: changed: it is not the table that was made")
    (unpacked / name).unlink()
    sign(unpacked)
    assert f"{name}: missing" in check.verify(str(unpacked))


@pytest.mark.parametrize("content", [None, "", "x", "\xff"])
def test_tables_without_their_checksums_are_found(unpacked, content):
    path = unpacked / "results/SHA256SUMS"
    path.unlink() if content is None else path.write_bytes(content.encode("latin-1"))
    sign(unpacked)
    found = check.verify(str(unpacked))
    assert found
    assert all("SHA256SUMS" in sentence for sentence in found)


def of_systems(unpacked, number, change=lambda record: None):
    """What verification says once linpack ran in so many systems, a change to one of its records included."""
    edit(unpacked / "results/plan.json", lambda plan: plan["workloads"]["linpack"]["parameters"].update(systems=number))

    def several(record):
        del record["fingerprint"]
        record["parameters"]["systems"] = number
        record["system"]["parts"] = number
        record["commands"] = [
            {**command, "system": part} for command in record["commands"] for part in range(min(number, 2))
        ]

    for path in unpacked.glob("results/raw/*/linpack/*.json"):
        edit(path, several)
    edit(unpacked / RECORD, change)
    sign(unpacked)
    return check.verify(str(unpacked))


def test_cells_of_several_systems_verify(unpacked):
    assert of_systems(unpacked, 2) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda record: record["commands"].pop(), "its steps are"),
        (lambda record: record["commands"].reverse(), "its steps are"),
        (lambda record: record["commands"][0].pop("system"), "its steps are"),
        (lambda record: record["commands"][1].update(exit=1), "commands.1.exit: is 1; must be 0"),
        (lambda record: record["system"].update(parts=1), "its number of systems is 1, and the plan's is 2"),
        (lambda record: record["system"].pop("parts"), "system.parts: missing"),
    ],
)
def test_a_record_of_several_systems_that_does_not_fit_is_found(unpacked, change, says):
    found = of_systems(unpacked, 2, change)
    assert [sentence.split(":")[0] for sentence in found] == [RECORD]
    assert says in found[0]


@pytest.mark.parametrize("number", [0, 65, 10**12])
def test_a_number_of_systems_that_no_plan_has_is_found(unpacked, number):
    found = of_systems(unpacked, number)
    assert [name for name in found if name.startswith("results/plan.json: workloads.linpack.parameters.systems: is ")]


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("results/plan.json", lambda plan: plan.update(seed=7), "results/plan.csv: it is not the order"),
        (
            "results/plan.json",
            lambda plan: plan.update(repetitions=10**12),
            "repetitions: is 1000000000000; must be at most 10000",
        ),
        ("results/plan.json", lambda plan: plan.update(repetitions=4), "that it calls missing are not those"),
        ("results/plan.json", lambda plan: plan.pop("workloads"), "results/plan.json: workloads: missing"),
        ("results/plan.json", lambda plan: plan.update(format=2), "format: is 2"),
        ("archive.json", lambda facts: facts.update(format=1), "its format is 1"),
        ("archive.json", lambda facts: facts.update(partial=True), "that it calls missing are not those"),
        ("results/image-manifest.json", lambda listing: listing["packages"].update(gcc="1"), "it is not the manifest"),
        ("image/recipe.json", lambda told: told.update(recipe="0a"), "of another image than the plan's"),
    ],
)
def test_facts_that_contradict_each_other_are_found_though_their_checksums_fit(unpacked, name, change, says):
    edit(unpacked / name, change)
    sign(unpacked)
    found = check.verify(str(unpacked))
    assert any(says in sentence for sentence in found), found


@pytest.mark.parametrize("name", ["archive.json", "results/plan.json", "ro-crate-metadata.json", RECORD])
@pytest.mark.parametrize("content", [b"", b"[]", b"nonsense", b'{"format": 1}', b"\xff\xfe", b"[" * 100_000])
def test_a_broken_file_is_a_finding_and_never_a_traceback(unpacked, name, content):
    (unpacked / name).write_bytes(content)
    sums.write(str(unpacked))
    assert any(name in sentence for sentence in check.verify(str(unpacked)))


def test_a_folder_of_something_else_is_told_from_an_archive(tmp_path):
    assert check.verify(str(tmp_path)) == ["archive.json: missing; this is not an archive of Strata"]


def test_the_command_says_what_is_wrong_and_ends_with_one(packed, tmp_path):
    done = projects.run(packed.parent, "strata", "verify", "archive.zip")
    assert (done.returncode, done.stdout) == (0, "")
    assert "good" in done.stderr
    whole = packed.read_bytes()
    place = whole.index(b'"gbps"')
    bad = tmp_path / "bad.zip"
    bad.write_bytes(whole[:place] + b"'" + whole[place + 1 :])
    done = projects.run(packed.parent, "strata", "verify", str(bad))
    assert done.returncode == 1
    assert "results/raw/" in done.stdout
    assert "NOT good" in done.stderr
    for path in ("none.zip", "Snakefile"):
        done = projects.run(packed.parent, "strata", "verify", path)
        assert done.returncode == 1
        assert path in done.stderr
        assert "Traceback" not in done.stderr


def test_what_is_not_verified_is_not_rebuilt(unpacked, monkeypatch):
    monkeypatch.chdir(unpacked.parent)
    (unpacked / "README.md").write_text("changed\n")
    done = projects.run(unpacked.parent, "strata", "rebuild", str(unpacked), "--to", "made")
    assert done.returncode == 1
    assert "README.md: changed" in done.stderr
    assert not (unpacked.parent / "made").exists()


def test_a_folder_that_is_there_is_not_overwritten_by_a_rebuild(packed, tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made/mine").write_text("x")
    done = projects.run(tmp_path, "strata", "rebuild", str(packed), "--to", "made")
    assert done.returncode == 1
    assert "is there already" in done.stderr


@pytest.fixture
def project(tmp_path, monkeypatch):
    folder = measured.project(tmp_path / "project", monkeypatch)
    measured.pretend(folder)
    return folder


def test_a_missing_cell_makes_the_archive_partial_and_its_failure_goes_along(project, tmp_path):
    for kind in ("log", "json"):
        (project / f"results/raw/docker/stream/2.{kind}").unlink()
    measured.write_json(project / "results/failed/docker/stream/2.json", {"error": "it failed"})
    make.make("archive.zip", False)
    assert check.verify("archive.zip") == []
    folder = tmp_path / "unpacked"
    folder.mkdir()
    container.unpack("archive.zip", str(folder))
    facts = json.loads((folder / "archive.json").read_text())
    assert (facts["partial"], facts["missing"]) == (True, ["docker/stream/2"])
    assert (folder / "results/failed/docker/stream/2.json").exists()
    assert "1 planned cells are missing" in (folder / "README.md").read_text()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("paper/report.pdf", "paper/report.pdf: missing"),
        ("results/claims.csv", "results/claims.csv: missing"),
        ("results/raw/native/stream/1.json", "results/raw/native/stream/1.json: missing"),
        ("results/plan.json", "there is no plan yet"),
    ],
)
def test_what_lacks_is_an_error_that_names_it(project, name, says):
    (project / name).unlink()
    with pytest.raises(UserError, match=says):
        make.make("archive.zip", False)
    assert not (project / "archive.zip").exists()
    assert not os.listdir(project / "results/tmp")


def test_what_would_not_verify_is_not_archived(project):
    edit(project / RECORD, lambda record: record["log"].update(bytes=7))
    with pytest.raises(UserError, match=r"docker/linpack/2\.log: it is not the log"):
        make.make("archive.zip", False)
    assert not (project / "archive.zip").exists()


def test_results_of_a_workload_that_the_plan_no_longer_holds_stay_out(project):
    (project / "results/tidy/pxz.csv").write_text("old\n")
    raw = project / "results/raw/native/pxz/1.log"
    raw.parent.mkdir()
    raw.write_text("old\n")
    make.make("archive.zip", False)
    assert check.verify("archive.zip") == []
    with zipfile.ZipFile("archive.zip") as archive:
        assert not {"results/raw/native/pxz/1.log", "results/tidy/pxz.csv"} & set(archive.namelist())


def test_the_image_goes_along_without_its_tree_and_without_keys(project, tmp_path, monkeypatch):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    name = json.loads((project / "results/plan.json").read_text())["image"]["recipe"]
    image = tmp_path / "home/images" / name
    (image / "tree/usr").mkdir(parents=True)
    (image / "tree/usr/file").write_text("x")
    for file in ("image.tar", "disk.qcow2", "key", "id_ed25519", "vm.pem", "private_key.box/../vagrant_private_key"):
        (image / os.path.basename(file)).write_bytes(file.encode())
    (image / "vm-kvm").mkdir()
    (image / "vm-kvm/box.box").write_bytes(b"box")
    (image / "vm-kvm/id_rsa.box").write_bytes(b"a key that is called like a box")
    (image / "manifest.json").write_text(json.dumps(measured.MANIFEST))
    (image / "image.json").write_text((project / "results/image.json").read_text())
    make.make("archive.zip", True)
    assert check.verify("archive.zip") == []
    folder = tmp_path / "unpacked"
    folder.mkdir()
    container.unpack("archive.zip", str(folder))
    found = sorted(os.listdir(folder / "image"))
    assert found == ["disk.qcow2", "image.json", "image.tar", "manifest.json", "recipe.json", "vm-kvm"]
    assert os.listdir(folder / "image/vm-kvm") == ["box.box"]
    assert (folder / "image/image.tar").read_bytes() == b"image.tar"


def test_an_image_that_is_not_in_the_cache_is_an_error_that_says_so(project, tmp_path, monkeypatch):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    with pytest.raises(UserError, match=r"is not in .* run `python3 -m strata image`"):
        make.make("archive.zip", True)


def test_what_is_private_is_told_with_its_line_and_not_archived_until_it_is_allowed(project, monkeypatch):
    monkeypatch.setattr(os, "uname", lambda: types.SimpleNamespace(nodename="quillbox", release="6"))
    log = project / "results/raw/native/stream/1.log"
    log.write_text("one\nmeasured on quillbox\n" + log.read_text())
    content = log.read_bytes()
    told = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    edit(log.with_suffix(".json"), lambda record: record.update(log=told))
    measured.pretend(project)
    place = "results/raw/native/stream/1.log:2"
    with pytest.raises(UserError, match=f"{place}: the name of a machine: quillbox"):
        make.make("archive.zip", False)
    assert not os.path.exists("archive.zip")
    for allowed in ("quillbox", place):
        make.make("archive.zip", False, [allowed])
        assert check.verify("archive.zip") == []
        with zipfile.ZipFile("archive.zip") as archive:
            assert archive.read("results/raw/native/stream/1.log") == content
        os.unlink("archive.zip")
