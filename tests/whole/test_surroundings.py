"""Nothing of the caller reaches a result: an archive verifies alike in every environment."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import projects
import pytest

SMALL = projects.ROOT / "docs/small.zip"
GOOD = "good: every file is as it was archived"


def written(path: Path, text: str, mode: int = 0o644) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def home(name: str, *lines: str) -> Callable[[Path], dict]:
    """A home that holds one file."""
    return lambda place: {
        "HOME": str(
            Path(written(place / "home" / name, "\n".join([*lines, ""]))).parents[name.count("/")]
        )
    }


def locale(name: str, charmap: str, **more: str) -> Callable[[Path], dict]:
    """A locale that is made for the test."""

    def make(place: Path) -> dict:
        language = name.partition(".")[0]
        argv = ["localedef", "--no-archive", "-i", language, "-f", charmap, str(place / name)]
        if subprocess.run(argv, capture_output=True, check=False).returncode:
            pytest.skip("localedef makes no locales here")
        return {"LOCPATH": str(place), **{key: text.format(name) for key, text in more.items()}}

    return make


def library(*keys: str) -> Callable[[Path], dict]:
    """A library of R with a package that is broken."""

    def make(place: Path) -> dict:
        found = subprocess.check_output(
            ["Rscript", "-e", "cat(find.package('jsonlite'))"], text=True
        )
        shutil.copytree(found, place / "library/jsonlite")
        (place / "library/jsonlite/R/jsonlite.rdb").write_bytes(b"")
        return dict.fromkeys(keys, str(place / "library"))

    return make


def repository(*keys: str) -> Callable[[Path], dict]:
    """Variables of git that lead to another repository."""

    def make(place: Path) -> dict:
        other = place / "other"
        other.mkdir()
        (other / "notes").write_text("x\n")
        projects.track(other, commit=True)
        names = {
            "GIT_DIR": other / ".git",
            "GIT_WORK_TREE": other,
            "GIT_INDEX_FILE": other / ".git/index",
        }
        return {key: str(names[key]) for key in keys}

    return make


def folder(name: str) -> Callable[[Path], dict]:
    """A folder for temporary files."""

    def make(place: Path) -> dict:
        (place / name).mkdir()
        return {"TMPDIR": str(place / name)}

    return make


def fixed(**variables: str | None) -> Callable[[Path], dict]:
    return lambda place: variables


SETTINGS = {
    "core.autocrlf": "true",
    "core.fsmonitor": "false; touch /tmp/x",
    "core.quotePath": "true",
    "diff.external": "false",
    "core.attributesFile": "/dev/null",
}
COUNTED = {
    key: text
    for number, pair in enumerate(SETTINGS.items())
    for key, text in zip(
        (f"GIT_CONFIG_KEY_{number}", f"GIT_CONFIG_VALUE_{number}"), pair, strict=True
    )
}
SURROUNDINGS: dict[str, Callable[[Path], dict]] = {
    "C": fixed(LC_ALL="C"),
    "POSIX": fixed(LC_ALL="POSIX", LANG="POSIX"),
    "a locale that is not installed": fixed(LC_ALL="xx_YY.UTF-8"),
    "another language": fixed(LANG="de_DE.UTF-8", LANGUAGE="de", LC_MESSAGES="de_DE.UTF-8"),
    "latin-1": locale(
        "en_US.ISO-8859-1", "ISO-8859-1", LC_ALL="{}", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"
    ),
    "a decimal comma": locale("de_DE.UTF-8", "UTF-8", LC_ALL="", LC_NUMERIC="{}", LANG="{}"),
    "numbers in .Rprofile": home(".Rprofile", 'options(OutDec = ",", scipen = 999, digits = 3)'),
    "an encoding in .Rprofile": home(".Rprofile", 'options(encoding = "latin1")'),
    "functions in .Rprofile": home(
        ".Rprofile", "order <- function(...) 1L", "mean <- function(...) 42"
    ),
    "a folder in .Rprofile": home(".Rprofile", 'setwd("~")'),
    "an end in .Rprofile": home(".Rprofile", "quit(status = 9)"),
    "R_PROFILE_USER": lambda place: {"R_PROFILE_USER": written(place / "profile", "stop('no')\n")},
    "R_ENVIRON_USER": lambda place: {
        "R_ENVIRON_USER": written(place / "environ", "TZ=Asia/Tokyo\nR_LIBS=/nowhere\n")
    },
    "R_LIBS_USER": library("R_LIBS_USER"),
    "R_LIBS": library("R_LIBS", "R_LIBS_SITE"),
    "R_DEFAULT_PACKAGES": fixed(R_DEFAULT_PACKAGES="NULL", R_HOME="/nowhere"),
    "TMPDIR with a space": folder("a b"),
    "TMPDIR with a quote": folder("it's ü"),
    "TMPDIR that is not there": fixed(TMPDIR="/no/such/folder"),
    "GIT_DIR": repository("GIT_DIR"),
    "GIT_WORK_TREE": repository("GIT_DIR", "GIT_WORK_TREE"),
    "GIT_INDEX_FILE": repository("GIT_INDEX_FILE"),
    "GIT_CONFIG_COUNT": fixed(GIT_CONFIG_COUNT=str(len(SETTINGS)), **COUNTED),
    "a .gitconfig": home(
        ".gitconfig",
        *(
            f'[{key.split(".")[0]}] {key.split(".")[1]} = "{text}"'
            for key, text in SETTINGS.items()
        ),
    ),
    "a .gitconfig that is broken": home(".config/git/config", "[core"),
    "no HOME": fixed(HOME=None, USER=None, LOGNAME=None),
    "a HOME that nobody may write": fixed(HOME="/proc/1/root/nowhere"),
    "odd folders in PATH": lambda place: {
        "PATH": f"/nowhere:{place}::{os.environ['PATH']}:relative"
    },
    "TZ": fixed(TZ="Asia/Kathmandu"),
    "Python's hashes and optimisation": fixed(
        PYTHONHASHSEED="1", PYTHONOPTIMIZE="2", PYTHONIOENCODING="ascii"
    ),
    "encodings that are not named": fixed(
        PYTHONWARNDEFAULTENCODING="1", PYTHONWARNINGS="error::EncodingWarning"
    ),
    "a module in PYTHONPATH": lambda place: {
        "PYTHONPATH": str(Path(written(place / "p/kit.py", "x = 1\n")).parent)
    },
    "bash": lambda place: {
        "BASH_ENV": written(place / "rc", "exit 9\n"),
        "POSIXLY_CORRECT": "1",
        "CDPATH": "/",
    },
}
# What changes a paper.
OF_PAPERS = {
    "fontconfig": home(
        ".config/fontconfig/fonts.conf",
        "<fontconfig><match target='pattern'><edit name='family' mode='assign_replace'>",
        "<string>Latin Modern Mono</string></edit></match></fontconfig>",
    ),
    "TeX": home("texmf/tex/latex/booktabs.sty", "\\errmessage{not this one}"),
    "TEXINPUTS": lambda place: {
        "TEXINPUTS": str(Path(written(place / "t/caption.sty", "\\stop")).parent) + ":"
    },
    "pandoc": home(".local/share/pandoc/templates/default.html5", "nothing"),
    "SOURCE_DATE_EPOCH": fixed(SOURCE_DATE_EPOCH="1700000000", FORCE_SOURCE_DATE="1"),
}


def verify(variables: dict, *words: str, mask: int = -1) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "strata", "verify", *words, str(SMALL)],
        cwd=projects.ROOT,
        env={key: text for key, text in {**os.environ, **variables}.items() if text is not None},
        capture_output=True,
        encoding="utf-8",
        umask=mask,
        check=False,
    )


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_an_archive_verifies_in_every_environment(tmp_path, name):
    done = verify(SURROUNDINGS[name](tmp_path))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert GOOD in done.stderr


def test_an_archive_verifies_whatever_the_mask_and_leaves_nothing_behind(tmp_path):
    done = verify({"TMPDIR": str(tmp_path)}, mask=0o077)
    assert done.returncode == 0, done.stderr
    assert not os.listdir(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", [*OF_PAPERS, *SURROUNDINGS])
def test_papers_are_the_same_in_every_environment(tmp_path, name):
    if verify({}, "--paper").returncode == 2:
        pytest.skip("the archive's papers were made with other versions")
    done = verify({**OF_PAPERS, **SURROUNDINGS}[name](tmp_path), "--paper")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


FAKE = "#!/bin/sh\necho 'the tool of somebody: no luck' >&2\nexit 3\n"


def no_room(place: Path) -> dict:
    """As a full disk says it, to whoever writes a temporary file."""
    hook = "import os, errno\n_open = os.open\n\n\ndef open_(path, flags, *more, **words):\n"
    hook += "    if flags & os.O_CREAT and 'strata-' in str(path):\n"
    hook += "        raise OSError(errno.ENOSPC, 'No space left on device', path)\n"
    hook += "    return _open(path, flags, *more, **words)\n\n\nos.open = open_\n"
    hook += "import tempfile\n\n\ndef mkdtemp(*words, **more):\n"
    hook += "    raise OSError(errno.ENOSPC, 'No space left on device')\n\n\n"
    hook += "tempfile.mkdtemp = mkdtemp\n"
    written(place / "site/sitecustomize.py", hook)
    return {"PYTHONPATH": str(place / "site")}


@pytest.mark.parametrize(
    ("surround", "says"),
    [
        (
            lambda place: {
                "PATH": str(Path(written(place / "b/Rscript", FAKE, 0o755)).parent)
                + ":/usr/bin:/bin"
            },
            "no luck",
        ),
        (lambda place: {"PATH": str(place)}, "is not installed"),
        (no_room, "No space left on device"),
    ],
)
def test_trouble_of_this_machine_is_no_finding(tmp_path, surround, says):
    done = verify(surround(tmp_path))
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "could not be checked: " in done.stderr
    assert says in done.stderr
    assert "NOT good" not in done.stderr
    assert "Traceback" not in done.stderr
