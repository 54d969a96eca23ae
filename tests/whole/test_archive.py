"""An archive verifies, and every change of it is found, whoever adjusted its checksums.

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
from archives import change, describe, sign, unpack
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
    workload.read_declaration.cache_clear()


@pytest.fixture(scope="module")
def packed(tmp_path_factory, patch):
    """An archive and its project, of a commit; its papers are only pretended."""
    folder = measured.project(tmp_path_factory.mktemp("archive") / "project", patch, commit=True)
    revision = projects.git(folder, "rev-parse", "HEAD")
    for path in folder.glob("results/raw/*/*/*.json"):
        edit(path, lambda record: record.update(source={"revision": revision, "changed": False}))
    measured.pretend(folder)
    make.write_archive("archive.zip")
    return folder / "archive.zip"


@pytest.fixture
def unpacked(packed, tmp_path):
    return unpack(packed, tmp_path / "unpacked")


@pytest.fixture
def project(packed, tmp_path, monkeypatch):
    folder = tmp_path / "project"
    shutil.copytree(packed.parent, folder)
    (folder / "archive.zip").unlink()
    monkeypatch.chdir(folder)
    workload.read_declaration.cache_clear()
    return folder


def verify(packed, archive):
    """What the command prints where the archive's commit is known: findings, and the rest."""
    done = projects.run(packed.parent, "strata", "verify", str(archive))
    assert "Traceback" not in done.stderr
    assert done.returncode == (1 if done.stdout else 0)
    return done.stdout.splitlines(), done.stderr


HELD = """
README.md LICENSE CITATION.cff SHA256SUMS ro-crate-metadata.json archive.json Snakefile
paper/report.pdf paper/report.html results/plan.json results/plan.csv results/image.json
results/image-manifest.json results/claims.csv results/tidy/stream.csv source/Snakefile
source/config.yaml source/analysis/tables.R environment/python.txt environment/r.txt
"""


def test_an_archive_verifies_packed_and_unpacked_and_holds_every_log(packed, unpacked):
    for path in (packed, unpacked):
        findings, printed = verify(packed, path)
        assert (findings, "good" in printed, "note" in printed) == ([], True, False)
    names = set(zip_file.list_files(str(unpacked)))
    for name in HELD.split():
        assert name in names, name
    assert len([name for name in names if name.startswith("results/raw/")]) == 2 * 2 * 2 * 3
    for log in packed.parent.glob("results/raw/*/*/*"):
        assert (unpacked / log.relative_to(packed.parent)).read_bytes() == log.read_bytes()
    facts = json.loads((unpacked / "archive.json").read_text())
    tree = projects.git(packed.parent, "rev-parse", "HEAD^{tree}")
    assert facts["source"]["swhid"] == f"swh:1:dir:{tree}"


def test_the_same_project_gives_the_same_bytes(packed, monkeypatch):
    monkeypatch.chdir(packed.parent)
    make.write_archive("again.zip")
    assert (packed.parent / "again.zip").read_bytes() == packed.read_bytes()
    (packed.parent / "again.zip").unlink()


def test_every_file_is_guarded(packed, tmp_path):
    """Each was changed, is missing, was added, is a link, or is listed twice."""
    for damage in ("changed", "missing"):
        folder = unpack(packed, tmp_path / damage)
        names = [name for name in zip_file.list_files(str(folder)) if name != checksums.NAME]
        for name in names:
            path = folder / name
            path.unlink() if damage == "missing" else path.write_bytes(path.read_bytes() + b"\n")
        findings = check.find_archive_faults(str(folder))
        assert [
            name
            for name in names
            if not any(finding.startswith(f"{name}: {damage}") for finding in findings)
        ] == []
    folder = unpack(packed, tmp_path / "added")
    added = ["results/raw/native/stream/99.log", "results/tidy/pxz.csv", "bin/tool"]
    for name in added:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("added\n")
    link = folder / "results/summary.csv"
    link.rename(tmp_path / "summary.csv")
    link.symlink_to(tmp_path / "summary.csv")
    findings = check.find_archive_faults(str(folder))
    assert [finding.split(":")[0] for finding in findings] == sorted(
        [*added, str(link.relative_to(folder))]
    )
    for first in ("0" * 64, None):
        folder = unpack(packed, tmp_path / f"twice-{first}")
        listed = folder / checksums.NAME
        [line] = re.findall("(?m)^.*  results/plan.csv$", listed.read_text())
        listed.write_text(f"{first or line[:64]}  results/plan.csv\n{listed.read_text()}")
        [finding] = check.find_archive_faults(str(folder))
        assert "results/plan.csv 2 times" in finding


def replace(old, new):
    """A change of the first occurrence in a file."""
    return lambda content: content.replace(old.encode(), new.encode(), 1)


def reproduce(content):
    """The first claim of a table reproduced."""
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    rows[0]["verdict"] = "reproduced"
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], quoting=csv.QUOTE_NONNUMERIC)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


@pytest.mark.parametrize(
    ("name", "new"),
    [
        ("results/claims.csv", reproduce),
        ("results/summary.csv", replace("3", "4")),
        ("results/tidy/stream.csv", b"forged\n"),
        ("results/runs.csv", None),
    ],
)
def test_a_table_that_does_not_follow_from_the_logs_is_found_whatever_its_checksum(
    unpacked, name, new
):
    change(unpacked / name, "", new) if new else (unpacked / name).unlink()
    sign(unpacked)
    assert [finding.split(":")[0] for finding in check.find_archive_faults(str(unpacked))] == [name]


@pytest.mark.parametrize(
    ("name", "keys", "new"),
    [
        ("README.md", "", replace("Measured", "Well measured")),
        ("LICENSE", "", b"All rights reserved.\n"),
        ("archive.json", "description", "All is well."),
        ("archive.json", "partial", True),
        ("archive.json", "measured.cells", 99),
        ("archive.json", "format", 2),
        ("results/plan.json", "seed", 7),
        ("results/plan.json", "repetitions", 10**12),
        ("results/plan.json", "workloads", ...),
        ("results/image-manifest.json", "packages.gcc", "1"),
        (RECORD, "seed", 1),
        (RECORD, "log.sha256", "0" * 64),
        (RECORD, "system", ...),
    ],
)
def test_a_contradiction_is_found_though_its_checksum_fits(unpacked, name, keys, new):
    change(unpacked / name, keys, new)
    describe(unpacked)
    findings = check.find_archive_faults(str(unpacked))
    assert any(name.removesuffix(".json") in finding for finding in findings), findings


@pytest.mark.parametrize(
    "name", ["README.md", "analysis/tables.R", "workloads/stream/parse.py", "new.sh"]
)
def test_source_that_is_not_its_commits_is_found_though_all_else_fits(packed, unpacked, name):
    change(unpacked / "source" / name, "", lambda content: content + b"\n# changed\n")
    describe(unpacked)
    findings, _ = verify(packed, unpacked)
    assert "SWHID" in findings[0]
    swhid = source.read_tree(str(unpacked / "source")).swhid
    change(unpacked / "archive.json", "source.swhid", swhid)
    sign(unpacked)
    findings, _ = verify(packed, unpacked)
    assert [finding.split(":")[0] for finding in findings] == [f"source/{name}"]


def test_a_changed_tree_and_records_of_another_commit_are_no_fault_and_named(packed, unpacked):
    (unpacked / "source/README.md").write_text("Changed.\n")
    swhid = source.read_tree(str(unpacked / "source")).swhid
    for keys, new in (("source.changed", ["README.md"]), ("source.swhid", swhid)):
        change(unpacked / "archive.json", keys, new)
    for number, path in enumerate(sorted(unpacked.glob("results/raw/docker/*/*.json"))):
        origin = {"revision": "0b" * 20, "changed": number > 1}
        change(path, "source", origin if number else {"revision": None, "changed": None})
    sign(unpacked)
    findings, printed = verify(packed, unpacked)
    assert findings == []
    readme = (unpacked / "README.md").read_text()
    other = f"the source of commit {'0b' * 20}"
    for text in (
        "README.md differs from it",
        "1 of 12 runs were measured with a source of no known commit",
        f"5 of 12 runs were measured with {other}, which is not that of the archive",
        f"4 of 12 runs were measured with changed files of {other}",
    ):
        assert text in printed
        assert text in readme
    assert "has no commit" not in printed
    change(unpacked / "archive.json", "source.revision", "0a" * 20)
    sign(unpacked)
    findings, printed = verify(packed, unpacked)
    assert (findings, f"has no commit {'0a' * 20}" in printed) == ([], True)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"source": ...}, "archive.json: source: missing"),
        ({"source.packed": ...}, "archive.json: source.packed: missing"),
        ({"source.packed": False, "source.revision": "HEAD"}, "archive.json: source.revision: "),
        ({"source.packed": False, "source.revision": 7}, "archive.json: source.revision: "),
        ({"source.packed": False, "source.revision": None}, "No commit is named"),
        ({"source.packed": False, "source.revision": "0a" * 20}, f"has no commit {'0a' * 20}"),
    ],
)
def test_a_description_that_names_no_source_is_neither_verified_nor_rebuilt(
    packed, unpacked, tmp_path, changes, says
):
    for keys, new in changes.items():
        change(unpacked / "archive.json", keys, new)
    checksums.write_checksums(str(unpacked))
    for words in (("rebuild", "--to", str(tmp_path / "again")), ("verify",)):
        done = projects.run(packed.parent, "strata", *words, str(unpacked))
        assert done.returncode == 1
        if words[0] == "rebuild":
            assert says in done.stderr
            assert "unshallow" not in done.stderr


FONTS, R, TOOLS = (f"environment/{name}.txt" for name in ("fonts", "r", "tools"))


@pytest.mark.parametrize(
    ("name", "pattern", "new", "says"),
    [
        (None, "", "", None),
        (FONTS, "DejaVu Sans", "Liberation Sans", "Liberation Sans"),
        (FONTS, "", None, "not named there"),
        (R, "^svglite .*", "svglite 0.1", "svglite 0.1 there"),
        (TOOLS, "^pandoc: .*", "pandoc: pandoc 0.1", "pandoc 0.1 there"),
        (TOOLS, "^docker: .*", "docker: 0.1", None),
    ],
)
def test_a_paper_that_was_made_with_other_software_is_not_comparable(
    unpacked, tmp_path, name, pattern, new, says
):
    if new is None:
        (unpacked / name).unlink()
    elif name:
        text = (unpacked / name).read_text()
        (unpacked / name).write_text(re.sub(f"(?m){pattern}", new, text))
    again = tmp_path / "again"
    (again / "paper").mkdir(parents=True)
    for paper in outputs.PAPERS:
        (again / paper).write_text("another\n")
    states = remake.compare_outputs(str(unpacked), str(again), list(outputs.PAPERS))
    assert set(states.values()) == {remake.NOT_COMPARABLE if says else "different"}
    differences = [
        text for text in metadata.list_software_differences(str(unpacked)) if says and says in text
    ]
    assert len(differences) == bool(says)


def test_a_fault_of_ours_is_no_finding(packed, monkeypatch):
    monkeypatch.setattr(metadata, "collect_facts", lambda *_: {}["nothing"])
    reason = r"could not be checked: Strata itself failed at .*KeyError"
    with pytest.raises(MachineError, match=reason):
        check.verify_archive(str(packed))


def test_a_file_that_is_no_archive_is_an_error_that_names_it(packed, tmp_path):
    [finding] = check.find_archive_faults(str(tmp_path))
    assert finding.startswith("archive.json: missing")
    for path, status in (("none.zip", 1), ("Snakefile", 1)):
        done = projects.run(packed.parent, "strata", "verify", path)
        assert done.returncode == status
        assert path in done.stderr
        assert "Traceback" not in done.stderr


def test_an_archive_without_its_source_names_a_commit_and_is_of_it_alone(packed, project, tmp_path):
    make.write_archive("light.zip", without_source=True)
    assert os.path.getsize("light.zip") < 500_000
    folder = unpack(project / "light.zip", tmp_path / "light")
    assert not (folder / "source").exists()
    findings, printed = verify(packed, folder)
    assert (findings, "note" in printed) == ([], False)
    change(folder / "archive.json", "source.swhid", f"swh:1:dir:{'0' * 40}")
    sign(folder)
    findings, _ = verify(packed, folder)
    assert "SWHID" in findings[0]
    (project / "config.yaml").write_text((project / "config.yaml").read_text() + "\n")
    with pytest.raises(UserError, match="commit all changes first"):
        make.write_archive("light.zip", without_source=True)


def test_a_missing_cell_makes_the_archive_partial_and_its_failure_goes_along(project, tmp_path):
    for kind in ("log", "json"):
        (project / f"results/raw/docker/stream/2.{kind}").unlink()
    measured.write_json(project / "results/failed/docker/stream/2.json", {"error": "it failed"})
    remake.compute_tables(str(project), partial=True)
    (project / "results/tidy/pxz.csv").write_text("of a former plan\n")
    (project / "results/raw/native/pxz").mkdir()
    (project / "results/raw/native/pxz/1.log").write_text("of a former plan\n")
    make.write_archive("archive.zip")
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
def test_a_project_that_would_not_verify_is_not_archived(project, name, says):
    (project / name).unlink() if name else change(project / RECORD, "log.bytes", 7)
    with pytest.raises(UserError, match=says):
        make.write_archive("archive.zip")
    assert not (project / "archive.zip").exists()
    assert not os.listdir(project / "results/tmp")


def test_decisions_for_an_older_target_change_neither_tables_nor_archive(tmp_path, monkeypatch):
    settings = measured.page(repetitions={"min": 3, "max": 300, "target": "5%"})
    folder = measured.project(tmp_path / "project", monkeypatch, settings, commit=True)
    experiment = plan.read_plan()
    none = dict.fromkeys(experiment["workloads"], 0)

    def tables():
        measured.pretend(folder)
        return {name: (folder / name).read_bytes() for name in outputs.list_table_paths(experiment)}

    measured.decide(folder, experiment, 3, none)
    alone = tables()
    older = {**experiment, "precision": {**experiment["precision"], "target": 0.5}}
    for round in (1, 11, 39):
        measured.decide(folder, older, round, none)
    (folder / "results/precision/7.json").write_text("[")
    assert tables() == alone
    make.write_archive("archive.zip")
    archived = unpack(folder / "archive.zip", tmp_path / "unpacked")
    assert os.listdir(archived / "results/precision") == ["3.json"]
    assert check.find_archive_faults(str(archived)) == []


def test_files_that_the_paper_rests_on_and_git_does_not_track_are_refused(project):
    names = ["packer/provision.sh", "workloads/stream/parse.py"]
    projects.git(project, "rm", "--quiet", "--cached", *names)
    with pytest.raises(UserError, match=f"{', '.join(names)}; `git add` them first"):
        make.write_archive("archive.zip")


def test_the_image_goes_along_without_its_tree_and_without_keys(project, tmp_path, monkeypatch):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path / "home"))
    with pytest.raises(UserError, match="is not in "):
        make.write_archive("archive.zip", True)
    name = json.loads((project / "results/plan.json").read_text())["image"]["recipe"]
    image = tmp_path / "home/images" / name
    (image / "tree/usr").mkdir(parents=True)
    (image / "vm-kvm").mkdir()
    contents = ["image.tar", "disk.qcow2", "vm-kvm/box.box"]
    for file in (*contents, "tree/usr/file", "key", "id_ed25519", "vm.pem", "vagrant_private_key"):
        (image / file).write_text(file)
    (image / "manifest.json").write_text(json.dumps(measured.MANIFEST))
    (image / "image.json").write_text((project / "results/image.json").read_text())
    make.write_archive("archive.zip", True)
    folder = unpack(project / "archive.zip", tmp_path / "unpacked")
    archived = zip_file.list_files(str(folder / "image"))
    assert archived == sorted([*contents, "image.json", "manifest.json"])


def test_private_text_is_named_with_its_line_and_not_archived_until_it_is_allowed(
    project, monkeypatch
):
    host = types.SimpleNamespace(nodename="quillbox", release="6")
    monkeypatch.setattr(os, "uname", lambda: host)
    log = project / "results/raw/native/stream/1.log"
    log.write_text("one\nmeasured on quillbox\n" + log.read_text())
    content = log.read_bytes()
    digest = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    change(log.with_suffix(".json"), "log", digest)
    # An image of the user's own has variables, too.
    image = project / "results/image.json"
    facts = image.read_text()
    image.write_text(json.dumps({**json.loads(facts), "run": {"variables": ["A=quillbox"]}}))
    measured.pretend(project)
    place = "results/raw/native/stream/1.log:2"
    with pytest.raises(UserError, match=f"{place}: the name of a machine: quillbox") as caught:
        make.write_archive("archive.zip")
    assert "results/image.json:1: the name of a machine: quillbox" in str(caught.value)
    assert not os.path.exists("archive.zip")
    image.write_text(facts)
    measured.pretend(project)
    for allowed in ("quillbox", place):
        make.write_archive("archive.zip", False, [allowed])
        with zipfile.ZipFile("archive.zip") as archive:
            assert archive.read("results/raw/native/stream/1.log") == content
        os.unlink("archive.zip")


# What follows needs the papers too.


@pytest.fixture(scope="module")
def paper(tmp_path_factory, patch):
    """A project with all tables and papers, and its archives, with the source and without."""
    settings = measured.page(interference={"action": "retry"})
    place = tmp_path_factory.mktemp("archived") / "project"
    folder = measured.project(place, patch, settings, commit=True)
    remake.compute_tables(str(folder))
    remake.render_papers(str(folder))
    make.write_archive("archive.zip")
    make.write_archive("light.zip", without_source=True)
    return folder


def test_every_product_is_archived(paper, tmp_path):
    folder = unpack(paper / "archive.zip", tmp_path / "held")
    products = set(
        outputs.list_output_paths(validate.load_object(str(folder), "results/plan.json"))
    )
    others = ("raw/", "parsed/", "logs/", "tmp/", "plan.", "image")
    inputs = tuple(f"results/{name}" for name in others)
    for place in (paper, folder):
        names = {name for name in zip_file.list_files(str(place)) if name.startswith("results/")}
        papers = {name for name in outputs.PAPERS if (place / name).exists()}
        assert {name for name in names if not name.startswith(inputs)} | papers == products


def test_tables_and_papers_are_made_of_nothing_but_the_inputs_of_their_rules(paper, tmp_path):
    """Another file would be changed without that anything is made again."""
    alone = tmp_path / "alone"
    rules = (projects.ROOT / "rules/common.smk").read_text()
    patterns = [
        name
        for words in re.findall(r"code\(\n?(.*?)\)", rules, re.DOTALL)
        for name in re.findall(r'"(.+?)"', words)
    ]
    assert "workloads/*/*.py" in patterns
    patterns += [f"results/{name}" for name in remake.INPUTS]
    # The rules name the modules that read logs; the rest of the package starts them.
    patterns += ["results/raw/*/*/*", "strata/**/*.py", "schemas/*.json"]
    for pattern in patterns:
        for path in filter(lambda path: path.is_file(), paper.glob(pattern)):
            target = alone / path.relative_to(paper)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    remake.compute_tables(str(alone))
    remake.render_papers(str(alone))
    for name in outputs.list_table_paths(validate.load_object(str(paper), "results/plan.json")):
        assert (alone / name).read_bytes() == (paper / name).read_bytes(), name


UNNEEDED = "docker dockerd packer mmdebstrap vagrant virsh qemu-system-x86_64 qemu-img sudo"


def rebuild(project, archive, folder):
    """The ended process, the products' states, and the folder; no `UNNEEDED` program is called."""
    tools = folder / "bin"
    tools.mkdir()
    for name in UNNEEDED.split():
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
    done, states, again = rebuild(paper, paper / "light.zip", tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    assert {"results/tidy/stream.csv", "results/claims.csv", "paper/report.pdf"} <= set(states)
    assert set(states.values()) == {"identical"}
    for name in states:
        assert (again / name).read_bytes() == (paper / name).read_bytes(), name
    done = projects.run(tmp_path, "strata", "rebuild", str(paper / "light.zip"), "--to", str(again))
    assert (done.returncode, "is there already" in done.stderr) == (1, True)


@pytest.mark.long
def test_a_rebuild_says_which_file_is_another_and_makes_all_others_the_same(paper, tmp_path):
    """Two files do not follow from its logs, though in the end all checksums fit."""
    folder = unpack(paper / "archive.zip", tmp_path / "forged")
    forged = {"results/summary.csv", "paper/report.html"}
    for name in forged:
        change(folder / name, "", replace("3", "4"))
    done = projects.run(paper, "strata", "rebuild", str(folder), "--to", str(tmp_path / "made"))
    assert (done.returncode, "results/summary.csv: changed" in done.stderr) == (1, True)
    assert not (tmp_path / "made").exists()
    sign(folder)
    done, states, _ = rebuild(paper, folder, tmp_path)
    assert done.returncode == 1
    assert {name for name, state in states.items() if state != "identical"} == forged
    shutil.copy(paper / "results/summary.csv", folder / "results/summary.csv")
    sign(folder)
    findings = check.find_archive_faults(str(folder), papers=True)
    assert [finding.split(":")[0] for finding in findings] == ["paper/report.html"]


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

    The copy is of a later version, in which the terms of Bioschemas have other addresses than in
    1.1.
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
