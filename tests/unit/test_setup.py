"""What the set-up says where it cannot install anything, and what the Makefile runs."""

import hashlib
import os
import shutil
import subprocess

import projects
import pytest


@pytest.fixture
def poor(tmp_path):
    """A machine with little on it: no apt, no R, no LaTeX."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "cut", "sort", "tr", "cat", "id", "env", "sed"):
        (tools / name).symlink_to(shutil.which(name))
    return {"PATH": str(tools), "HOME": str(tmp_path)}


@pytest.mark.parametrize(("purpose", "more"), [("run", True), ("paper", False)])
def test_without_apt_it_says_exactly_what_to_install(poor, purpose, more):
    script = os.path.join(projects.ROOT, "scripts/setup.sh")
    done = subprocess.run([script, purpose], env=poor, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "this distribution has no apt; install what gives these" in done.stderr
    for line in ("Rscript   (Debian: r-base-core)", "r:ggplot2   (Debian: r-cran-ggplot2)"):
        assert line in done.stderr
    # A paper of what is measured needs no Docker.
    for tool in ("docker", "packer   (Debian: packer)", "mmdebstrap", "qemu"):
        assert (tool in done.stderr) is more
    assert "shellcheck" not in done.stderr


STUBS = {
    # apt: what it was asked for is noted; it knows all packages but one of a run and one for machines.
    "apt-get": 'echo "$*" >>"$NOTES"\n'
    'case "$*" in *" download packer") [ -z "$OLDER" ] || touch packer_1_amd64.deb; [ -n "$OLDER" ] ;;\n'
    '*install*packer_1_amd64.deb) ln -s /bin/true "$TOOLS/packer" ;; *install*mmdebstrap*) '
    'ln -s /bin/true "$TOOLS/mmdebstrap" ;; esac',
    "apt-cache": 'case $2 in packer | libvirt-clients) ;; *) echo "$2 | 1 | here" ;; esac',
    "Rscript": "echo r ggplot2 rmarkdown knitr tinytex jsonlite svglite bookdown dplyr tidyr glue stringr scales",
    "kpsewhich": "echo found",
    "python3": 'echo "deb http://archive $5 main"',
    "docker": "true",
}


@pytest.fixture
def newer(poor, tmp_path):
    """A machine with a newer release, on which all is there but two packages; one of them that release has not."""
    folder, tools = tmp_path / "p", projects.Path(poor["PATH"])
    (folder / "scripts").mkdir(parents=True)
    (folder / ".venv").mkdir()
    release = tmp_path / "os-release"
    release.write_text('ID=debian\nVERSION_CODENAME=trixie\nPRETTY_NAME="Debian 13"\n')
    for name in ("setup.sh", "other-release.sh", "packages.txt"):
        text = (projects.ROOT / "scripts" / name).read_text()
        (folder / "scripts" / name).write_text(text.replace("/etc/os-release", str(release)))
        (folder / "scripts" / name).chmod(0o755)
    (folder / "scripts/dockerd.sh").symlink_to("/bin/true")
    (folder / "requirements.txt").write_text("")
    (folder / ".venv/strata-stamp").write_text(f"{hashlib.sha256(b'').hexdigest()}  -")
    for line in (folder / "scripts/packages.txt").read_text().splitlines():
        thing = line.split()[1]
        missing = ("packer", "mmdebstrap", "virsh", *STUBS)
        if line[0] != "#" and ":" not in thing and "/" not in thing and thing not in missing:
            (tools / thing).symlink_to("/bin/true")
    for name in ("sha256sum", "grep", "mktemp", "mkdir", "rm", "ln", "touch"):
        (tools / name).symlink_to(shutil.which(name))
    (tools / "id").unlink()
    for name, text in {**STUBS, "id": "echo 0"}.items():
        (tools / name).write_text(f"#!/bin/bash\n{text}\n")
        (tools / name).chmod(0o755)

    def run(older):
        variables = {**poor, "NOTES": str(tmp_path / "notes"), "TOOLS": str(tools), "OLDER": older}
        script = str(folder / "scripts/setup.sh")
        done = subprocess.run([script, "run"], env=variables, capture_output=True, text=True, check=False)
        return done, (tmp_path / "notes").read_text().splitlines()

    return run


def test_what_this_release_has_not_comes_from_an_older_one(newer):
    done, notes = newer("yes")
    assert done.returncode == 0, done.stderr
    assert "installing packer of bookworm, which Debian 13 does not have" in done.stderr
    assert "environments with a virtual machine will be shown as not available" in done.stderr
    # The older release is asked apart from what apt is set to, and only what came from there is installed of it.
    apart = [note for note in notes if "Dir::Etc::SourceList=" in note]
    assert [note.split()[-1] for note in apart] == ["update", "packer"]
    assert all("Dir::Etc::SourceParts=-" in note and "Dir::State::Lists=" in note for note in apart)
    assert not any("unauthenticated" in note.lower() or "insecure" in note.lower() for note in notes)
    installed = [note.split("install ")[1] for note in notes if "install " in note.replace("no-install", "")]
    assert len(installed) == 2
    assert installed[0].endswith("/packer_1_amd64.deb")
    assert installed[1] == "mmdebstrap"


def test_what_no_release_has_is_told_with_where_to_get_it_and_nothing_is_installed(newer):
    done, notes = newer("")
    assert done.returncode == 1
    assert "packer is not in this distribution, nor in an older release" in done.stderr
    assert "get it from https://" in done.stderr
    assert "put it on the path, and run this again" in done.stderr
    assert not [note for note in notes if " install " in note]


@pytest.mark.parametrize("target", ["paper", "archive", "summary", "plan"])
def test_pages_are_laid_over_the_experiment_by_make(target):
    def commands(*words):
        argv = ["make", "--dry-run", "--no-print-directory", target, *words]
        lines = subprocess.check_output(argv, cwd=projects.ROOT, text=True).splitlines()
        return [line for line in lines if "setup.sh" not in line]

    assert not [line for line in commands() if "--configfile" in line]
    assert all("--configfile a.yaml" in line for line in commands("CONFIG=a.yaml"))
    # A page with a mistake is told of before anything starts.
    assert ("strata check" in commands()[0]) is (target == "paper")
