"""A user without root, and a host without KVM: each lack is reported, and nothing is half done."""

import pytest

from rig import host, users
from rig.hardware import Hardware

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

HARDWARE = Hardware(kvm=False)


@pytest.fixture(scope="module", params=["nobody", "groups", "sudo"])
def someone(request, there):
    """A kind of user, and a function that runs a command as that user.

    From kind to kind the user may do more.  The function returns the exit code and the output.
    """
    name, project = users.add(there, request.param)
    return request.param, lambda command: there.run(
        f"{host.begin(project)} && {command}", 1200, name
    )


def test_the_doctor_says_what_somebody_may_do(someone):
    kind, run = someone
    if kind == "sudo":
        # As `make setup` does it.
        code, words = run("scripts/dockerd.sh runtimes")
        assert code == 0, words
    code, words = run("python -m strata doctor")
    assert "Traceback" not in words
    assert "there is no /dev/kvm: the machine offers no KVM" in words
    rows = {
        line.split("  ")[1].strip(): line for line in words.splitlines() if line.startswith("  ")
    }
    if kind == "sudo":
        assert "through sudo without a password" in rows["root rights"]
        assert code == 0, words
    else:
        assert "run as root, or allow sudo without a password" in rows["root rights"]
        assert code == 1
    docker = next(line for name, line in rows.items() if name.lower().startswith("docker"))
    assert ("NO" in docker.split() or "note" in docker) == (kind == "nobody"), words


def test_nothing_is_half_done_for_somebody_without_rights(someone, there):
    kind, run = someone
    if kind == "sudo":
        pytest.skip("this one may")
    code, words = run("python -m strata image")
    assert code != 0
    assert "Traceback" not in words
    assert (
        there.good(
            "find ~someone/.cache/strata -name 'building*' -o -name '*.part*' 2>/dev/null || true"
        )
        == ""
    )
