"""Containers of engines other than Docker, on a host with systemd and control groups of version 2.

crun works there too.
"""

import re

import pytest

from rig.test_short import LEFT

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]


def outcomes(said):
    """What pytest said of each test: name → PASSED, SKIPPED …"""
    return dict(re.findall(r"^\S+::(\S+) (PASSED|SKIPPED|FAILED|ERROR)", said, re.MULTILINE))


def test_podman_makes_containers_with_both_of_its_runtimes(there, run):
    found = outcomes(run("python -m pytest -v --color=no tests/system/test_podman.py", 5400))
    stands = "test_it_stands_where_dockers_containers_stand_and_can_what_they_can"
    assert {found.pop(f"{stands}[{runtime}]") for runtime in ("crun", "runc")} == {"PASSED"}
    assert set(found.values()) == {"PASSED"}
    assert there.good(LEFT) == ""


def test_files_go_in_and_out_with_lxc(there, run):
    # The kernel has AppArmor, whose profiles a host has where its programs are installed.
    there.good(
        "apparmor_parser --version >/dev/null || "
        "(apt-get -qq update && apt-get -qq -y install apparmor)",
        1200,
    )
    words = "python -m pytest -v --color=no tests/system/test_environments.py -k '[lxc]'"
    found = outcomes(run(words, 3600))
    assert list(found.values()) == ["PASSED"], found
    assert there.good(LEFT) == ""
