"""An archive of measured cells verifies; what was changed in it is found and named, whoever adjusted its checksums.

From measured logs to an archive, and from it to the same paper: real R, LaTeX, git and Snakemake.
"""

import csv
import hashlib
import importlib.resources
import io
import json
import os
import re
import shutil
import types
import zipfile

import layout
import measured
import pages
import projects
import pytest
import requests
import requests_cache
import urllib3
from measured import edit

from strata.archive import check, checksums, crate, make, metadata, remake, source, zip_file
from strata.experiment import plan, workload
from strata.results import outputs, validate
from strata.util.errors import MachineError, UserError

RECORD = "results/raw/docker/linpack/2.json"


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as context:
        context.delenv("STRATA_OWNER", raising=False)
        yield context
    workload.load.cache_clear()


@pytest.fixture(scope="module")
def packed(tmp_path_factory, patch):
    """An archive and its project, of a commit; its papers are only pretended."""
    folder = measured.project(tmp_path_factory.mktemp("archive") / "project", patch, commit=True)
    revision = projects.git(folder, "rev-parse", "HEAD")
    for path in folder.glob("results/raw/*/*/*.json"):
        edit(path, lambda record: record.update(source={"revision": revision, "changed": False}))
    measured.pretend(folder)
    make.make("archive.zip")
    return folder / "archive.zip"


@pytest.fixture
def unpacked(packed, tmp_path):
    return unpack(packed, tmp_path / "unpacked")


def unpack(archive, folder):
    folder.mkdir()
    zip_file.unpack_archive(str(archive), str(folder))
    return folder


def sign(folder):
    """Description, crate and checksums as of whoever changed the contents knowingly."""
    told = json.loads((folder / "archive.json").read_text())
    facts = metadata.collect_facts(str(folder), {key: told[key] for key in metadata.GIVEN})
    (folder / "archive.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    (folder / "README.md").write_text(metadata.format_readme(facts))
    describe(folder)


def describe(folder):
    """Crate and checksums alone."""
    facts = json.loads((folder / "archive.json").read_text())
    (folder / crate.FILE).write_text(crate.format_crate(str(folder), facts))
    checksums.write_checksums(str(folder))


def verified(packed, archive):
    """What the command says where the archive's commit is known."""
    done = projects.run(packed.parent, "strata", "verify", str(archive))
    assert "Traceback" not in done.stderr
    assert done.returncode == (1 if done.stdout else 0)
    return done.stdout.splitlines(), done.stderr


def test_what_was_archived_verifies_packed_and_unpacked(packed, unpacked):
    for path in (packed, unpacked):
        found, said = verified(packed, path)
        assert (found, "good" in said, "note" in said) == ([], True, False)
    names = set(zip_file.list_files(str(unpacked)))
    for name in (
        "README.md", "LICENSE", "CITATION.cff", "SHA256SUMS", "ro-crate-metadata.json", "archive.json", "Snakefile",
        "paper/report.pdf", "paper/report.html", "results/plan.json", "results/plan.csv", "results/image.json",
        "results/image-manifest.json", "results/claims.csv", "results/tidy/stream.csv", "source/Snakefile",
        "source/config.yaml", "source/analysis/tables.R", "environment/python.txt", "environment/r.txt",
    ):  # fmt: skip
        assert name in names, name
    assert len([name for name in names if name.startswith("results/raw/")]) == 2 * 2 * 2 * 3
    for log in packed.parent.glob("results/raw/*/*/*"):
        assert (unpacked / log.relative_to(packed.parent)).read_bytes() == log.read_bytes()
    facts = json.loads((unpacked / "archive.json").read_text())
    assert (
        facts["source"]["swhid"]
        == f"swh:1:dir:{projects.git(packed.parent, 'rev-parse', 'HEAD^{tree}')}"
    )


def test_the_same_project_gives_the_same_bytes(packed, monkeypatch):
    monkeypatch.chdir(packed.parent)
    make.make("again.zip")
    assert (packed.parent / "again.zip").read_bytes() == packed.read_bytes()
    (packed.parent / "again.zip").unlink()


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_every_file_is_guarded(unpacked, damage):
    names = [name for name in zip_file.list_files(str(unpacked)) if name != checksums.NAME]
    for name in names:
        path = unpacked / name
        path.unlink() if damage == "missing" else path.write_bytes(path.read_bytes() + b"\n")
    found = check.find_faults(str(unpacked))
    assert [
        name for name in names if not any(said.startswith(f"{name}: {damage}") for said in found)
    ] == []


def test_a_file_that_was_added_or_is_a_link_is_found(unpacked):
    for name in ("results/raw/native/stream/99.log", "results/tidy/pxz.csv", "bin/tool"):
        (unpacked / name).parent.mkdir(exist_ok=True)
        (unpacked / name).write_text("added\n")
    link = unpacked / "results/summary.csv"
    link.rename(unpacked.parent / "summary.csv")
    link.symlink_to(unpacked.parent / "summary.csv")
    found = check.find_faults(str(unpacked))
    assert "results/raw/native/stream/99.log: added: SHA256SUMS does not list it" in found
    assert any(said.startswith("results/summary.csv: ") for said in found)


@pytest.mark.parametrize("first", ["0" * 64, None], ids=["other", "same"])
def test_a_file_that_is_listed_twice_is_found(unpacked, first):
    listed = unpacked / checksums.NAME
    [line] = [
        line for line in listed.read_text().splitlines() if line.endswith("  results/plan.csv")
    ]
    listed.write_text(f"{first or line[:64]}  results/plan.csv\n{listed.read_text()}")
    [found] = check.find_faults(str(unpacked))
    assert "results/plan.csv 2 times" in found


def rows(path, change):
    """Change a table's rows."""
    found = projects.table(path)
    change(found)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, found[0], quoting=csv.QUOTE_NONNUMERIC)
        writer.writeheader()
        writer.writerows(found)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (
            "results/claims.csv",
            lambda path: rows(path, lambda found: found[0].update(verdict="reproduced")),
        ),
        (
            "results/summary.csv",
            lambda path: path.write_text(path.read_text().replace("3", "4", 1)),
        ),
        ("results/tidy/stream.csv", lambda path: path.write_text("forged\n")),
        ("results/runs.csv", lambda path: path.unlink()),
    ],
)
def test_a_table_that_does_not_follow_from_the_logs_is_found_whatever_its_checksum(
    unpacked, name, change
):
    change(unpacked / name)
    sign(unpacked)
    found = check.find_faults(str(unpacked))
    assert [sentence.split(":")[0] for sentence in found] == [name]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (
            "README.md",
            lambda path: path.write_text(path.read_text().replace("Measured", "Well measured", 1)),
        ),
        (
            "archive.json",
            lambda path: edit(path, lambda facts: facts.update(description="All is well.")),
        ),
        ("archive.json", lambda path: edit(path, lambda facts: facts.update(partial=True))),
        ("archive.json", lambda path: edit(path, lambda facts: facts["measured"].update(cells=99))),
        ("archive.json", lambda path: edit(path, lambda facts: facts.update(format=2))),
        ("results/plan.json", lambda path: edit(path, lambda plan: plan.update(seed=7))),
        (
            "results/plan.json",
            lambda path: edit(path, lambda plan: plan.update(repetitions=10**12)),
        ),
        ("results/plan.json", lambda path: edit(path, lambda plan: plan.pop("workloads"))),
        (
            "results/image-manifest.json",
            lambda path: edit(path, lambda told: told["packages"].update(gcc="1")),
        ),
        ("LICENSE", lambda path: path.write_text("All rights reserved.\n")),
        (RECORD, lambda path: edit(path, lambda record: record.update(seed=1))),
        (RECORD, lambda path: edit(path, lambda record: record["log"].update(sha256="0" * 64))),
        (RECORD, lambda path: edit(path, lambda record: record.pop("system"))),
    ],
)
def test_what_contradicts_itself_is_found_though_its_checksum_fits(unpacked, name, change):
    change(unpacked / name)
    describe(unpacked)
    found = check.find_faults(str(unpacked))
    assert any(name.removesuffix(".json") in sentence for sentence in found), found


@pytest.mark.parametrize(
    "name", ["README.md", "analysis/tables.R", "workloads/stream/parse.py", "new.sh"]
)
def test_source_that_is_not_its_commits_is_found_though_all_else_fits(packed, unpacked, name):
    path = unpacked / "source" / name
    path.write_text(f"{path.read_text() if path.exists() else ''}\n# changed\n")
    describe(unpacked)
    found, _ = verified(packed, unpacked)
    assert "SWHID" in found[0]
    swhid = source.read_tree(str(unpacked / "source")).swhid
    edit(unpacked / "archive.json", lambda facts: facts["source"].update(swhid=swhid))
    sign(unpacked)
    found, _ = verified(packed, unpacked)
    assert [said.split(":")[0] for said in found] == [f"source/{name}"]


def test_a_changed_tree_and_records_of_another_commit_are_no_fault_and_named(packed, unpacked):
    path = unpacked / "source/README.md"
    path.write_text("Changed.\n")
    told = {"changed": ["README.md"], "swhid": source.read_tree(str(unpacked / "source")).swhid}
    edit(unpacked / "archive.json", lambda facts: facts["source"].update(told))
    for number, path in enumerate(sorted(unpacked.glob("results/raw/docker/*/*.json"))):
        of = (
            {"revision": "0b" * 20, "changed": number > 1}
            if number
            else {"revision": None, "changed": None}
        )
        edit(path, lambda record, of=of: record.update(source=of))
    sign(unpacked)
    found, said = verified(packed, unpacked)
    assert found == []
    readme = (unpacked / "README.md").read_text()
    for text in (
        "README.md differ from it",
        "1 of 12 runs were measured with a source of no known commit",
        f"5 of 12 runs were measured with the source of commit {'0b' * 20}, which is not that of the archive",
        f"4 of 12 runs were measured with the source of commit {'0b' * 20}, of which files were changed",
    ):
        assert text in said
        assert text in readme
    assert "has no commit" not in said
    edit(unpacked / "archive.json", lambda facts: facts["source"].update(revision="0a" * 20))
    sign(unpacked)
    found, said = verified(packed, unpacked)
    assert found == []
    assert f"has no commit {'0a' * 20}" in said


@pytest.mark.parametrize(
    "name", ["archive.json", "results/plan.json", "ro-crate-metadata.json", RECORD]
)
@pytest.mark.parametrize("content", [b"", b"[]", b'{"format": 4}', b"\xff\xfe", b"[" * 100_000])
def test_a_broken_file_is_a_finding_and_never_a_traceback(unpacked, name, content):
    (unpacked / name).write_bytes(content)
    checksums.write_checksums(str(unpacked))
    assert any(name in sentence for sentence in check.find_faults(str(unpacked)))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda facts: facts.pop("source"), "archive.json: source: missing"),
        (lambda facts: facts["source"].pop("packed"), "archive.json: source.packed: missing"),
        *(
            (
                lambda facts, text=text: facts["source"].update(revision=text, packed=False),
                "archive.json: source.revision: ",
            )
            for text in ("--output=taken", "HEAD", 7)
        ),
        (lambda facts: facts["source"].update(revision=None, packed=False), "No commit is named"),
        (
            lambda facts: facts["source"].update(revision="0a" * 20, packed=False),
            f"has no commit {'0a' * 20}",
        ),
    ],
)
def test_a_description_that_names_no_source_is_neither_verified_nor_rebuilt(
    packed, unpacked, tmp_path, change, says
):
    edit(unpacked / "archive.json", change)
    checksums.write_checksums(str(unpacked))
    done = projects.run(
        packed.parent, "strata", "rebuild", str(unpacked), "--to", str(tmp_path / "again")
    )
    assert (done.returncode, says in done.stderr) == (1, True), done.stderr
    assert "unshallow" not in done.stderr
    done = projects.run(packed.parent, "strata", "verify", str(unpacked))
    assert done.returncode == 1
    assert not list(packed.parent.rglob("taken"))


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        (None, None, None),
        (
            "environment/fonts.txt",
            lambda text: text.replace("DejaVu Sans", "Liberation Sans"),
            "Liberation Sans",
        ),
        ("environment/fonts.txt", None, "not named there"),
        (
            "environment/r.txt",
            lambda text: re.sub("(?m)^svglite .*", "svglite 0.1", text),
            "svglite 0.1 there",
        ),
        (
            "environment/tools.txt",
            lambda text: re.sub("(?m)^pandoc: .*", "pandoc: pandoc 0.1", text),
            "pandoc 0.1 there",
        ),
        (
            "environment/tools.txt",
            lambda text: re.sub("(?m)^docker: .*", "docker: 0.1", text),
            None,
        ),
    ],
)
def test_a_paper_that_was_made_with_what_this_machine_has_not_is_not_comparable(
    unpacked, tmp_path, name, change, says
):
    if name:
        path = unpacked / name
        path.write_text(change(path.read_text())) if change else path.unlink()
    again = tmp_path / "again"
    (again / "paper").mkdir(parents=True)
    for paper in outputs.PAPERS:
        (again / paper).write_text("another\n")
    found = remake.compare_products(str(unpacked), str(again), list(outputs.PAPERS))
    assert set(found.values()) == {remake.NOT_COMPARABLE if says else "different"}
    assert [says] * bool(says) == [
        says for text in metadata.list_differences(str(unpacked)) if says in text
    ]


def test_a_fault_of_ours_is_no_finding(packed, monkeypatch):
    def faulty(*words):
        return {}["nothing"]

    monkeypatch.setattr(metadata, "collect_facts", faulty)
    with pytest.raises(
        MachineError, match=r"could not be checked: Strata itself failed at .*KeyError"
    ):
        check.verify(str(packed))


def test_what_is_no_archive_is_an_error_that_says_so(packed, tmp_path):
    (found,) = check.find_faults(str(tmp_path))
    assert found.startswith("archive.json: missing")
    for path in ("none.zip", "Snakefile"):
        done = projects.run(packed.parent, "strata", "verify", path)
        assert done.returncode == (1 if os.path.exists(packed.parent / path) else 2)
        assert path in done.stderr
        assert "Traceback" not in done.stderr


@pytest.fixture
def project(packed, tmp_path, monkeypatch):
    folder = tmp_path / "project"
    shutil.copytree(packed.parent, folder)
    (folder / "archive.zip").unlink()
    monkeypatch.chdir(folder)
    workload.load.cache_clear()
    return folder


def test_an_archive_without_its_source_names_a_commit_and_is_of_it_alone(packed, project, tmp_path):
    make.make("light.zip", light=True)
    assert os.path.getsize("light.zip") < 500_000
    folder = unpack(project / "light.zip", tmp_path / "light")
    assert not (folder / "source").exists()
    found, said = verified(packed, folder)
    assert (found, "note" in said) == ([], False)
    edit(
        folder / "archive.json", lambda facts: facts["source"].update(swhid=f"swh:1:dir:{'0' * 40}")
    )
    sign(folder)
    found, _ = verified(packed, folder)
    assert "SWHID" in found[0]
    (project / "config.yaml").write_text((project / "config.yaml").read_text() + "\n")
    with pytest.raises(UserError, match="commit all changes first"):
        make.make("light.zip", light=True)


def test_a_missing_cell_makes_the_archive_partial_and_its_failure_goes_along(project, tmp_path):
    for kind in ("log", "json"):
        (project / f"results/raw/docker/stream/2.{kind}").unlink()
    measured.write_json(project / "results/failed/docker/stream/2.json", {"error": "it failed"})
    remake.make_tables(str(project), ["--partial"])
    (project / "results/tidy/pxz.csv").write_text("of a former plan\n")
    (project / "results/raw/native/pxz").mkdir()
    (project / "results/raw/native/pxz/1.log").write_text("of a former plan\n")
    make.make("archive.zip")
    folder = unpack(project / "archive.zip", tmp_path / "unpacked")
    facts = json.loads((folder / "archive.json").read_text())
    assert (facts["partial"], facts["missing"]) == (True, ["docker/stream/2"])
    assert (folder / "results/failed/docker/stream/2.json").exists()
    assert not list((folder / "results").rglob("*pxz*"))
    assert "1 planned cells are missing" in (folder / "README.md").read_text()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("paper/report.pdf", "paper/report.pdf: missing"),
        ("results/claims.csv", "results/claims.csv: missing"),
        ("results/raw/native/stream/1.json", "results/raw/native/stream/1.json: missing"),
        ("results/plan.json", "there is no plan yet"),
        (None, r"docker/linpack/2\.log: it is not the log"),
    ],
)
def test_what_would_not_verify_is_not_archived_and_named(project, name, says):
    (project / name).unlink() if name else edit(
        project / RECORD, lambda record: record["log"].update(bytes=7)
    )
    with pytest.raises(UserError, match=says):
        make.make("archive.zip")
    assert not (project / "archive.zip").exists()
    assert not os.listdir(project / "results/tmp")


def test_what_an_older_target_decided_changes_neither_tables_nor_archive(tmp_path, monkeypatch):
    asked = measured.page(repetitions={"min": 3, "max": 300, "target": "5%"})
    folder = measured.project(tmp_path / "project", monkeypatch, asked, commit=True)
    experiment = plan.read()
    none = dict.fromkeys(experiment["workloads"], 0)

    def tables():
        measured.pretend(folder)
        return {name: (folder / name).read_bytes() for name in outputs.tables(experiment)}

    measured.decide(folder, experiment, 3, none)
    alone = tables()
    older = {**experiment, "precision": {**experiment["precision"], "target": 0.5}}
    for round in (1, 11, 39):
        measured.decide(folder, older, round, none)
    (folder / "results/precision/7.json").write_text("[")
    assert tables() == alone
    make.make("archive.zip")
    found = unpack(folder / "archive.zip", tmp_path / "unpacked")
    assert os.listdir(found / "results/precision") == ["3.json"]
    assert check.find_faults(str(found)) == []


def test_what_the_paper_rests_on_and_git_does_not_track_is_refused(project):
    projects.git(
        project, "rm", "--quiet", "--cached", "workloads/stream/parse.py", "packer/provision.sh"
    )
    with pytest.raises(
        UserError, match=r"packer/provision\.sh, workloads/stream/parse\.py; `git add` them first"
    ):
        make.make("archive.zip")


def test_the_image_goes_along_without_its_tree_and_without_keys(project, tmp_path, monkeypatch):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    with pytest.raises(UserError, match="is not in "):
        make.make("archive.zip", True)
    name = json.loads((project / "results/plan.json").read_text())["image"]["recipe"]
    image = tmp_path / "home/images" / name
    (image / "tree/usr").mkdir(parents=True)
    (image / "tree/usr/file").write_text("x")
    for file in ("image.tar", "disk.qcow2", "key", "id_ed25519", "vm.pem", "vagrant_private_key"):
        (image / file).write_bytes(file.encode())
    (image / "vm-kvm").mkdir()
    (image / "vm-kvm/box.box").write_bytes(b"box")
    (image / "manifest.json").write_text(json.dumps(measured.MANIFEST))
    (image / "image.json").write_text((project / "results/image.json").read_text())
    make.make("archive.zip", True)
    folder = unpack(project / "archive.zip", tmp_path / "unpacked")
    assert sorted(os.listdir(folder / "image")) == [
        "disk.qcow2",
        "image.json",
        "image.tar",
        "manifest.json",
        "vm-kvm",
    ]
    assert os.listdir(folder / "image/vm-kvm") == ["box.box"]


def test_what_is_private_is_told_with_its_line_and_not_archived_until_it_is_allowed(
    project, monkeypatch
):
    monkeypatch.setattr(
        os, "uname", lambda: types.SimpleNamespace(nodename="quillbox", release="6")
    )
    log = project / "results/raw/native/stream/1.log"
    log.write_text("one\nmeasured on quillbox\n" + log.read_text())
    content = log.read_bytes()
    told = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    edit(log.with_suffix(".json"), lambda record: record.update(log=told))
    measured.pretend(project)
    place = "results/raw/native/stream/1.log:2"
    with pytest.raises(UserError, match=f"{place}: the name of a machine: quillbox"):
        make.make("archive.zip")
    assert not os.path.exists("archive.zip")
    for allowed in ("quillbox", place):
        make.make("archive.zip", False, [allowed])
        with zipfile.ZipFile("archive.zip") as archive:
            assert archive.read("results/raw/native/stream/1.log") == content
        os.unlink("archive.zip")


# What follows needs the papers too.


@pytest.fixture(scope="module")
def paper(tmp_path_factory, patch):
    """A project whose tables and papers are made of logs and records, and its archives, with the source and without."""
    settings = measured.page(quiet={"action": "retry"})
    folder = measured.project(
        tmp_path_factory.mktemp("archived") / "project", patch, settings, commit=True
    )
    remake.make_tables(str(folder), [])
    remake.make_papers(str(folder))
    make.make("archive.zip")
    make.make("light.zip", light=True)
    return folder


def test_all_that_was_made_is_archived(paper, tmp_path):
    folder = unpack(paper / "archive.zip", tmp_path / "held")
    listed = set(outputs.made(validate.load(str(folder), "results/plan.json")))
    for place in (paper, folder):
        apart = ("raw/", "parsed/", "logs/", "tmp/", "plan.", "image")
        there = {name for name in zip_file.list_files(str(place)) if name.startswith("results/")}
        papers = {name for name in outputs.PAPERS if (place / name).exists()}
        assert {
            name for name in there if not name.removeprefix("results/").startswith(apart)
        } | papers == listed


def test_tables_and_papers_are_made_of_nothing_but_the_inputs_of_their_rules(paper, tmp_path):
    """What is no input would be changed without that anything is made again."""
    alone = tmp_path / "alone"
    alone.mkdir()
    rules = (projects.ROOT / "rules/common.smk").read_text()
    patterns = [
        name
        for words in re.findall(r"code\(\n?(.*?)\)", rules, re.DOTALL)
        for name in re.findall(r'"(.+?)"', words)
    ]
    assert "workloads/*/*.py" in patterns
    inputs = {name for pattern in patterns for name in paper.glob(pattern) if name.is_file()}
    inputs |= {
        paper / f"results/{name}" for name in remake.INPUTS if (paper / f"results/{name}").is_file()
    }
    inputs |= set(paper.glob("results/raw/*/*/*"))
    # Of the package the rules name what reads logs; the rest is how it is started.
    inputs |= set(paper.glob("strata/**/*.py")) | set(paper.glob("schemas/*.json"))
    for path in inputs:
        target = alone / path.relative_to(paper)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    remake.make_tables(str(alone), [])
    remake.make_papers(str(alone))
    for name in outputs.tables(validate.load(str(paper), "results/plan.json")):
        assert (alone / name).read_bytes() == (paper / name).read_bytes(), name


def rebuilt(project, archive, folder):
    """What `rebuild` ends with, and the state of each product, where there is neither Docker nor QEMU.

    Programs of those names are there, and tell when they are called.
    """
    tools = folder / "bin"
    tools.mkdir()
    names = (
        "docker",
        "dockerd",
        "packer",
        "mmdebstrap",
        "vagrant",
        "virsh",
        "qemu-system-x86_64",
        "qemu-img",
        "sudo",
    )
    for name in names:
        (tools / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {folder}/called\nexit 127\n')
        (tools / name).chmod(0o755)
    variables = {"PATH": f"{tools}:{os.environ['PATH']}", "STRATA_HOME": str(folder / "home")}
    again = folder / "again"
    done = projects.run(project, "strata", "rebuild", str(archive), "--to", str(again), **variables)
    assert not (folder / "called").exists()
    assert not (folder / "home").exists()
    assert "Traceback" not in done.stderr
    return done, dict(line.split(maxsplit=1)[::-1] for line in done.stdout.splitlines()), again


def test_the_paper_is_the_same_from_a_commit_where_there_is_neither_docker_nor_qemu(
    paper, tmp_path
):
    done, states, again = rebuilt(paper, paper / "light.zip", tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    assert {"results/tidy/stream.csv", "results/claims.csv", "paper/report.pdf"} <= set(states)
    assert set(states.values()) == {"identical"}
    for name in states:
        assert (again / name).read_bytes() == (paper / name).read_bytes(), name
    done = projects.run(tmp_path, "strata", "rebuild", str(paper / "light.zip"), "--to", str(again))
    assert done.returncode == 1
    assert "is there already" in done.stderr


@pytest.mark.long
def test_a_rebuild_says_which_file_is_another_and_makes_all_others_the_same(paper, tmp_path):
    """The archive is one of whose files some do not follow from its logs, though all its checksums fit."""
    folder = unpack(paper / "archive.zip", tmp_path / "forged")
    for name in ("results/summary.csv", "paper/report.html"):
        (folder / name).write_text((folder / name).read_text().replace("3", "4", 1))
    done = projects.run(paper, "strata", "rebuild", str(folder), "--to", str(tmp_path / "made"))
    assert done.returncode == 1
    assert "results/summary.csv: changed" in done.stderr
    assert not (tmp_path / "made").exists()
    sign(folder)
    done, states, _ = rebuilt(paper, folder, tmp_path)
    assert done.returncode == 1
    assert {name for name, state in states.items() if state != "identical"} == {
        "results/summary.csv",
        "paper/report.html",
    }
    shutil.copy(paper / "results/summary.csv", folder / "results/summary.csv")
    sign(folder)
    found = check.find_faults(str(folder), papers=True)
    assert [said.split(":")[0] for said in found] == ["paper/report.html"]


def test_the_small_archive_follows_from_its_logs():
    projects.good(projects.ROOT, "strata", "verify", "docs/small.zip")


def test_the_small_archive_is_rebuilt_by_the_commit_that_it_names(tmp_path):
    small = projects.ROOT / "docs/small.zip"
    if not small.exists():
        pytest.skip("`make gallery` makes it")
    assert small.stat().st_size <= 500_000
    if projects.git(projects.ROOT, "rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("this clone has no history")
    projects.good(tmp_path, "strata", "rebuild", str(small))
    assert (tmp_path / "small-rebuilt/paper/report.pdf").exists()


class Answers(requests.adapters.BaseAdapter):
    """Answers from the RO-Crate library's own copy of the vocabulary, in place of a network.

    The copy is of a later version, in which the terms of Bioschemas have other addresses than in 1.1.
    """

    def send(self, request, **_):
        response = requests.Response()
        response.status_code, response.request, response.url = 200, request, request.url
        response.headers["Content-Type"] = "application/ld+json"
        vocabulary = importlib.resources.files("rocrate") / "data/ro-crate.jsonld"
        body = io.BytesIO(
            vocabulary.read_bytes().replace(b"bioschemas.org/terms/", b"bioschemas.org/")
        )
        response.raw = urllib3.HTTPResponse(body=body, preload_content=False, status=200)
        return response

    def close(self):
        pass


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("archive", ["archive.zip", "light.zip"])
def test_the_crate_is_valid_by_the_published_validator(paper, tmp_path, archive):
    from rocrate_validator import services
    from rocrate_validator.models import Severity, ValidationSettings

    session = requests_cache.CachedSession(str(tmp_path / "cache"))
    session.mount("https://", Answers())
    session.get(f"https://w3id.org/ro/crate/{crate.VERSION}/context")
    session.close()
    folder = unpack(paper / archive, tmp_path / "crate")
    for profile in (f"ro-crate-{crate.VERSION}", "workflow-run-crate"):
        result = services.validate(
            ValidationSettings(
                rocrate_uri=str(folder),
                profile_identifier=profile,
                requirement_severity=Severity.REQUIRED,
                offline=True,
                cache_path=tmp_path / "cache.sqlite",
            )
        )
        assert [issue.message for issue in result.get_issues()] == [], profile


def test_the_paper_keeps_its_layout(paper):
    assert layout.findings(paper / "paper/report.pdf") == []


def test_the_page_is_for_everybody(paper):
    with pages.chromium() as driver:
        assert pages.findings(driver, paper / "paper/report.html") == []
