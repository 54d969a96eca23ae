"""A folder that this user may not write to is named, with the command that gives it to him."""

import os
import subprocess
import sys

import projects
import pytest

from strata.util import paths
from strata.util.errors import UserError

NOBODY = 65534
# Modules are read before: that user may not enter the folder of every interpreter.
REQUIRE = """
import os, pwd, sys
from strata.util import access, errors
os.chdir(sys.argv[1])
if os.geteuid() == 0:
    os.setuid(65534)
try:
    access.require_writable_project()
except errors.UserError as error:
    print(error)
"""
# Folders of the project; which of them is closed; what then is typed.  "": all may be written.
CASES = [
    (["results/raw", ".snakemake"], "", ""),
    ([".snakemake"], ".snakemake", "in {here}"),
    (["results/raw", ".snakemake"], "results", "{change} results` in {here}"),
    (["results/raw/native", ".snakemake"], "results/raw", "{change} results` in {here}"),
    (["results", ".snakemake/metadata"], ".snakemake/metadata", "{change} .snakemake` in {here}"),
    (["paper"], ".", "{change} .` in {here}"),
]


@pytest.mark.parametrize(("folders", "closed", "remedy"), CASES)
def test_a_folder_of_the_project_that_is_closed_is_named(tmp_path, folders, closed, remedy):
    is_root = os.geteuid() == 0
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
    for folder in tmp_path.parents:
        if folder.stat().st_uid == os.geteuid() and str(folder) != "/":
            folder.chmod(folder.stat().st_mode | 0o055)
    if is_root:
        for path in (tmp_path, *tmp_path.rglob("*")):
            os.chown(path, NOBODY, -1)
    if closed:
        os.chown(tmp_path / closed, 0, -1) if is_root else (tmp_path / closed).chmod(0o555)
    argv = [sys.executable, "-B", "-S", "-c", REQUIRE, str(tmp_path)]
    message = subprocess.check_output(argv, cwd=projects.ROOT, text=True)
    if closed and not is_root:
        (tmp_path / closed).chmod(0o755)
    change = "sudo chown -R nobody" if is_root else "chmod -R u+w"
    assert remedy.format(here=tmp_path, change=change) in message
    assert (str(tmp_path / closed) in message) == bool(closed)


@pytest.mark.parametrize("name", ["relative", "{here}/file", "{here}/file/within", "./x"])
def test_a_home_that_is_no_folder_is_refused(tmp_path, monkeypatch, name):
    (tmp_path / "file").touch()
    monkeypatch.setenv("STRATA_HOME", name.format(here=tmp_path))
    with pytest.raises(UserError, match=r"^STRATA_HOME: .*(set STRATA_HOME to|write /)"):
        paths.get_home_folder()
