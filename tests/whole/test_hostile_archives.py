"""What a hostile archive holds stays text: nothing is run, written, asked for or printed raw.

Each is made of docs/small.zip, with checksums and description of whoever changed it knowingly.
"""

import contextlib
import io
import json
import os
import re
import socket
import stat
import tempfile
import zipfile
from pathlib import Path

import projects
import pytest
from archives import put, sign

from strata import command_line
from strata.archive import (
    checksums,
    metadata,
    remake,
    sandbox,
    source,
    zip_file,
)
from strata.util import progress
from strata.util.errors import MachineError, UserError

SMALL = projects.ROOT / "docs/small.zip"
FILE = stat.S_IFREG | 0o644
RECORD = "results/raw/docker/stream/1.json"
# Texts that could pass for an option, a path, code of a shell, of Python, R, YAML or a template,
# codes of a terminal, and a line of another command.
TEXTS = [
    "--output={canary}",
    "--remote=git://127.0.0.1:{port}/x",
    "--upload-pack=touch {canary}",
    "-o{canary}",
    "../../canary",
    "{canary}",
    *("$(touch {canary})", "`touch {canary}`", ";touch {canary}", "|touch {canary}"),
    "!!python/object/apply:os.system ['touch {canary}']",
    '"; system("touch {canary}"); "',
    *("{{0.__class__}}", "%s%n", "\x1b[2J\x1b]0;x\x07", "\u202egood", "\0", "\x9b1m"),
    *("x\n{archive}: good: every file", "x\r{archive}: good: every file"),
]
FIELDS = [
    (name, keys)
    for name, places in {
        "archive.json": "format source.revision source.swhid source.changed.0 title license "
        "missing.0 measured.revisions.{text}",
        "results/plan.json": "environments.docker.label environments.{text} {text} "
        "environments.docker.layers.0.{text} workloads.{text} workloads.stream.title "
        "workloads.stream.cell.steps.0.argv.0 image.recipe machine.mask source.revision",
        "results/image.json": "manifest_sha256",
        RECORD: "source.revision observed.host.static.cpu_model log.sha256 {text}",
    }.items()
    for keys in places.split()
]


@pytest.fixture(scope="module")
def members():
    if not SMALL.exists():
        pytest.skip("`make gallery` makes it")
    with zipfile.ZipFile(SMALL) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """Files that none may touch and a port that none may reach."""
    home, away = tmp_path / "home", tmp_path / "away"
    for folder in (home, away):
        folder.mkdir()
        (folder / "canary").write_text("sings\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(away)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield {"canary": str(home / "canary"), "port": server.getsockname()[1]}
        with pytest.raises(BlockingIOError):
            server.accept()
    left = [path for folder in (home, away) for path in folder.rglob("*") if path.is_file()]
    assert [path.read_text() for path in left] == ["sings\n"] * 2


def zipped(path, members):
    """An archive of (name, content, mode), word for word."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, mode in members:
            info = zipfile.ZipInfo("x")
            info.filename, info.external_attr = name, mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return path


def laid_out(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    checksums.write_checksums(str(folder))
    return folder


def run(*words):
    """Status and output of a command, which holds no codes of a terminal and no traceback."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            status = command_line.main([str(word) for word in words])
        except UserError as error:
            progress.print_error(error)
            status = 2 if isinstance(error, MachineError) else 1
    printed = out.getvalue()
    assert re.fullmatch(r"[\n\t -~\u00a0-\u2027\u202f-\u2065\u206a-\uffff]*", printed), repr(
        printed
    )
    assert "Traceback" not in printed
    assert "Strata itself failed" not in printed
    return status, printed


def of_fields(members, name, keys, text):
    value = json.loads(members[name])
    put(value, [key.replace("{text}", text) for key in keys.split(".")], text)
    return {**members, name: json.dumps(value).encode()}


# Each text in some field, and each field with some text; all of both are many.
PAIRS = [
    (TEXTS[at % len(TEXTS)], FIELDS[at % len(FIELDS)]) for at in range(max(len(TEXTS), len(FIELDS)))
]
ALL = [(text, field) for field in FIELDS for text in TEXTS]


@pytest.mark.parametrize(
    ("text", "field"),
    [*PAIRS, *(pytest.param(*pair, marks=pytest.mark.long) for pair in ALL if pair not in PAIRS)],
    ids=repr,
)
def test_a_text_is_no_code_in_any_field(members, tmp_path, trap, text, field):
    folder = tmp_path / "unpacked"
    text = text.format(**trap, archive=folder)
    laid_out(folder, of_fields(members, *field, text))
    status, printed = run("verify", folder)
    assert status == 1
    assert not re.search(rf"(?m)^{re.escape(str(folder))}: good", printed)


@pytest.mark.parametrize("text", [text for text in TEXTS if "{" in text], ids=repr)
def test_a_commit_is_no_option_when_a_paper_is_made_again(members, tmp_path, trap, text):
    folder = laid_out(
        tmp_path / "light",
        of_fields(members, "archive.json", "source.revision", text.format(**trap, archive="x")),
    )
    status, printed = run("rebuild", folder, "--to", tmp_path / "again")
    assert (status, "source.revision" in printed) == (1, True)


def member(name, content=b"x", mode=FILE):
    return [(name, content, mode)]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    "added",
    [
        *map(member, ["../canary", "/etc/canary", "a/../../canary", "a\\..\\canary", "C:\\canary"]),
        *map(member, ["C:/../b", "./a", "\x1b[2Ja", "a\nx.zip: good: all", "a\rb", "\u202egood"]),
        *map(member, ["a\u2028b", "README.md", "README.md/a", "readme.MD", "a" * 300]),
        *(
            member("results/raw/a", content, kind | 0o777)
            for kinds, content in (
                ((stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK), b"/etc/passwd"),
                ((stat.S_IFIFO, stat.S_IFSOCK), b""),
            )
            for kind in kinds
        ),
        [("a", b"..", stat.S_IFLNK | 0o777), ("a/canary", b"x", FILE)],
        member("results/bomb", b"\0" * 200_000_000),
        member("/".join("a" * 900)),
        member("inner.zip", SMALL.read_bytes() if SMALL.exists() else b""),
    ],
    ids=lambda added: repr(added[-1][0])[:40],
)
def test_a_member_that_no_archive_has_is_refused_and_written_nowhere(
    members, tmp_path, trap, added
):
    files = [(name, content, FILE) for name, content in members.items()]
    path = zipped(tmp_path / "x.zip", [*files, *added])
    for command in ("verify", "rebuild"):
        status, printed = run(command, path)
        assert (status, f"{path}: good" in printed) == (1, False)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("archive.json", b'{"format": 4, "format": 5}'),
        ("archive.json", b'{"format": ' + b"9" * 4000 + b"}"),
        ("archive.json", b'{"format": NaN}'),
        ("results/plan.json", b'{"workloads": ' * 50_000),
        ("results/plan.json", b"\0\0"),
        ("results/plan.json", b'{"workloads": {"../../../canary": {}}}'),
        ("results/plan.csv", b'=cmd|"/C calc"!A0\n'),
        (RECORD, b'{"environment": "native", "environment": "docker"}'),
        ("results/precision/1.json", b'{"rests_on": "\x1b[2J"}'),
        ("SHA256SUMS", b"0" * 64 + b"  ../canary\n"),
        *(
            (name, content)
            for name in ("archive.json", "results/plan.json", "ro-crate-metadata.json", RECORD)
            for content in (b"", b"[]", b"\xff\xfe", b"[" * 100_000)
        ),
    ],
    ids=lambda part: repr(part)[:40],
)
def test_a_file_of_an_odd_form_is_a_finding(members, tmp_path, trap, name, content):
    folder = laid_out(tmp_path / "unpacked", {**members, name: content})
    if name == checksums.NAME:
        (folder / name).write_bytes(content)
    status, printed = run("verify", folder)
    assert (status, name in printed) == (1, True), printed
    # The rest is left to the code that the archive names.
    if name in ("archive.json", "results/plan.json", checksums.NAME):
        assert run("rebuild", folder, "--to", tmp_path / "again")[0] == 1


def test_a_link_to_a_folder_is_found_in_an_unpacked_archive(members, tmp_path, trap):
    folder = laid_out(tmp_path / "unpacked", members)
    (folder / "source").symlink_to(os.environ["HOME"])
    assert run("verify", folder)[0] == 1
    assert run("rebuild", folder, "--to", tmp_path / "again")[0] == 1
    assert not (tmp_path / "again/canary").exists()


TOUCH_R = 'file.create("{canary}-R"); stop("ran")\n'
TOUCH_PYTHON = 'open("{canary}-python", "w")\nraise SystemExit("ran")\n'
FILES_OF_R = ".Rprofile Rprofile.site analysis/tables.R analysis/report.R .First.R"
FILES_OF_PYTHON = """
sitecustomize.py usercustomize.py conftest.py json.py strata/__init__.py strata/__main__.py
"""
PROGRAMS = {
    **dict.fromkeys(FILES_OF_R.split(), TOUCH_R),
    **dict.fromkeys(FILES_OF_PYTHON.split(), TOUCH_PYTHON),
    "workloads/stream/parse.py": TOUCH_PYTHON,
    "Snakefile": "shell('touch {canary}-snakemake')\n",
    ".Renviron": "R_PROFILE_USER=.Rprofile\nR_LIBS=.\n",
    ".latexmkrc": "system('touch {canary}-latexmk');\n",
    "texmf.cnf": "shell_escape = t\n",
    ".gitattributes": "* filter=evil\n*.R text eol=crlf ident\n",
    ".gitconfig": "[core]\n\tfsmonitor = touch {canary}-git\n",
    ".gitmodules": '[submodule "x"]\n\tpath = x\n\turl = ext::touch {canary}-ext\n'
    "\tupdate = !touch {canary}-update\n",
    "sub/.git/config": "[core]\n\tfsmonitor = touch {canary}-git\n"
    '[filter "evil"]\n\tclean = touch {canary}-clean\n',
    "sub/.git/HEAD": "ref: refs/heads/main\n",
    "hooks/post-checkout": "#!/bin/sh\ntouch {canary}-hook\n",
    "_output.yml": "bookdown::pdf_document2: !expr file.create('{canary}-yaml')\n",
}


def with_source(members, folder, files, trap):
    """An archive of its own source, signed."""
    texts = {
        name: text.replace("{canary}", trap["canary"]).encode() for name, text in files.items()
    }
    own = {name: content for name, content in members.items() if name not in metadata.ON_TOP}
    beside = {
        f"{place}/{name}": content
        for name, content in texts.items()
        for place in ("source", "results", ".")
    }
    laid_out(folder, {**own, **beside, "Snakefile": texts["Snakefile"]})
    origin = {"revision": None, "changed": [], "packed": True}
    sign(folder, source={**origin, "swhid": source.read_tree(f"{folder}/source").swhid})
    return folder


def test_no_program_of_an_archive_runs_when_it_is_verified(members, tmp_path, trap):
    folder = with_source(members, tmp_path / "whole", PROGRAMS, trap)
    zip_file.pack_folder(str(folder), str(tmp_path / "whole.zip"))
    for path in (folder, tmp_path / "whole.zip"):
        status, printed = run("verify", path)
        assert (status, "good" in printed) == (0, True), printed


# Code that tries what hostile code of an archive may, in Python and in R, and writes what succeeds.
TRIES = """
import json, os, socket, sys
found = {}
def attempt(name, what):
    try: found[name] = repr(what())[:200]
    except Exception: pass
attempt("home", lambda: open("{canary}").read())
attempt("host", lambda: open("/etc/hostname").read())
attempt("passwords", lambda: open("/etc/passwd").read())
attempt("write", lambda: open("{away}/written", "w").close())
attempt("system", lambda: open("/usr/written", "w").close())
attempt("others", lambda: [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) > 100])
attempt("secrets", lambda: {}[""] if not os.environ.get("CANARY") else os.environ["CANARY"])
attempt("connect", lambda: socket.create_connection(("127.0.0.1", {port}), 2))
attempt("kill", lambda: os.kill({pid}, 0))
attempt("settings", lambda: open("/proc/sys/vm/swappiness", "a").close())
attempt("root", lambda: {}[""] if os.getuid() else "root")
if found.get("others") == "[]": del found["others"]
with open("tries.json", "w") as file: json.dump(found, file)
os.chmod("tries.json", 0o4755)
os.symlink("/etc/hostname", "link")
os.mkfifo("pipe")
"""
TRIES_R = """
try <- function(code) tryCatch(code, error = function(e) "", warning = function(w) "")
found <- c(
  home = try(readLines("{canary}")), host = try(readLines("/etc/hostname")),
  write = try(if (file.create("{away}/written-R")) "written" else ""),
  connect = try({close(socketConnection(port = {port}, timeout = 2)); "reached"}))
writeLines(found, basename(tempfile("tries-", ".")))
"""


def require_sandbox(tmp_path):
    (tmp_path / "probe").mkdir()
    try:
        with sandbox.run_sandboxed(str(tmp_path / "probe")):
            pass
    except MachineError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("options", [[], ["--sandbox", "no"]], ids=["boxed", "open"])
def test_an_archives_own_code_reaches_nothing_from_the_sandbox(
    members, tmp_path, trap, monkeypatch, options
):
    require_sandbox(tmp_path)
    monkeypatch.setenv("CANARY", "a secret")
    out, away = tmp_path / "out", tmp_path / "reached"
    away.mkdir()
    # Its port is not the trap's, which nobody may reach.
    with socket.create_server(("127.0.0.1", 0)) as server:
        values = {
            "canary": trap["canary"],
            "away": str(away),
            "port": str(server.getsockname()[1]),
            "pid": str(os.getpid()),
        }
        python, r = (
            re.sub(r"\{(canary|away|port|pid)\}", lambda match: values[match[1]], text)
            for text in (TRIES, TRIES_R)
        )
        code = {"Snakefile": "", "strata/__init__.py": "", "strata/__main__.py": python}
        code |= dict.fromkeys(["analysis/tables.R", "analysis/report.R"], r)
        folder = with_source(members, tmp_path / "whole", code, trap)
        _, printed = run("rebuild", folder, "--to", out, *options)
    assert "archive's own code" in printed
    reached = json.loads((out / "tries.json").read_text())
    by_r = [path.read_text().split() for path in out.glob("tries-*")]
    assert len(by_r) == 3
    if options:
        assert {"home", "write", "connect", "kill"} <= reached.keys()
        assert "secrets" not in reached
        assert all({"sings", "written", "reached"} <= set(words) for words in by_r)
    else:
        assert (reached, by_r, list(away.iterdir())) == ({}, [[]] * 3, [])
        assert oct((out / "tries.json").stat().st_mode) == "0o100644"
        assert not {"link", "pipe"} & set(os.listdir(out))


# Code that never ends, and starts a daemon that would outlive it.  In a sandbox, where ids are low,
# the daemon stops its starter and the first process.
ENDLESS = """
import ctypes, os
def sleep():
    os.execv("/bin/sleep", ["{mark}", "600"])
main = os.getpid()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        if {boxed} and main < 100:
            for pid in (main, 1):
                ctypes.CDLL(None).ptrace(16, pid, 0, 0)
        sleep()
    os._exit(0)
sleep()
"""


def running(mark):
    """The processes that a mark in their command line names."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += [path] if path.read_bytes().startswith(mark.encode()) else []
    return found


def working_below(folder):
    """The processes whose working directory is below a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            found += [path] if path.readlink().is_relative_to(folder) else []
    return found


@pytest.mark.parametrize("boxed", ["yes", "no"])
def test_code_without_an_end_is_ended_with_all_that_it_started(
    members, tmp_path, trap, monkeypatch, boxed
):
    require_sandbox(tmp_path)
    monkeypatch.setattr(remake, "LIMIT", 4)
    mark = f"endless-{tmp_path.name}-{os.getpid()}"
    code = ENDLESS.replace("{mark}", mark).replace("{boxed}", str(boxed == "yes"))
    programs = {"Snakefile": "", "strata/__init__.py": "", "strata/__main__.py": code}
    folder = with_source(members, tmp_path / "whole", programs, trap)
    before = os.listdir(tmp_path)
    status, printed = run("rebuild", folder, "--to", tmp_path / "a/b", "--sandbox", boxed)
    assert (status, "STRATA_PATIENCE=2" in printed) == (1, True), printed
    assert "ended after 4 s" in printed
    assert not running(mark)
    assert os.listdir(tmp_path) == before


def test_parsers_without_an_end_are_ended_together(members, tmp_path, trap, monkeypatch):
    """Each of them stays below the limit of its own."""
    folder = laid_out(tmp_path / "unpacked", members)
    monkeypatch.setattr(remake, "LIMIT", 4)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    lay_out = remake.copy_own_code

    def lay_out_slow_parsers(work):
        lay_out(work)
        for path in Path(work).glob("workloads/*/parse.py"):
            path.write_text("import time\n\n\ndef parse(lines, parameters):\n    time.sleep(40)\n")

    monkeypatch.setattr(remake, "copy_own_code", lay_out_slow_parsers)
    status, printed = run("verify", folder)
    assert (status, "STRATA_PATIENCE=2" in printed, "NOT good" in printed) == (1, True, True), (
        printed
    )
    assert not working_below(tmp_path / "temporary")
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize("to", ["file", "file/below", "new/" + "a" * 300, "/proc/nobody"])
def test_a_folder_that_cannot_be_made_is_named_before_anything_runs(members, tmp_path, trap, to):
    (tmp_path / "file").write_text("")
    status, printed = run("rebuild", laid_out(tmp_path / "light", members), "--to", tmp_path / to)
    assert (status, "name another folder with --to" in printed) == (1, True), printed
    assert sorted(os.listdir(tmp_path)) == ["away", "file", "home", "light"]


def test_a_sandbox_that_the_machine_refuses_is_told_with_a_way_on(
    members, tmp_path, trap, monkeypatch
):
    program = tmp_path / "bin/bwrap"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    status, printed = run("rebuild", SMALL, "--to", tmp_path / "out")
    assert (status, "No permissions" in printed, "--sandbox no" in printed) == (2, True, True)
    assert not (tmp_path / "out").exists()
