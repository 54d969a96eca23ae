"""A value of the config reaches the measured program as the very word that it is, through whatever layers there are."""

import json
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strata.host import cgroups
from strata.measure.arguments import fill
from strata.vm import ssh

HOSTILE = [
    "; touch owned",
    "$(touch owned)",
    "`touch owned`",
    "& touch owned &",
    "| touch owned",
    "> owned",
    "'; touch owned; '",
    '"; touch owned; "',
    "a\nb\ntouch owned\n",
    "a\tb",
    "\\",
    "\\n",
    "\\'",
    "$HOME",
    "${IFS}x",
    "~",
    "*",
    "/e?c/*",
    "{a,b}",
    "!!",
    "#no comment",
    "",
    " ",
    "  two  words  ",
    "-rf",
    "--",
    "--help",
    "A=b",
    "%s%n",
    "Größe 日本 😀",
    "\u202e",
    "\x1b[31m",
    "x" * 5000,
    '{"json": [1, "a"]}',
    "{seed}",
    "{number}",
]
WORDS = [sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))"]


def parameters_as_words():
    """A command of a workload with a hostile value for each parameter, as a cell fills it in."""
    values = {f"p{number}": value for number, value in enumerate(HOSTILE)}
    argv = [*WORDS, *(f"{{{name}}}" for name in values)]
    return fill(argv, {**values, "seed": 1}, "noop")


def received(argv, **more):
    """The words that the program at the end of a command got."""
    done = subprocess.run(
        argv, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL, **more
    )
    return json.loads(done.stdout)


def test_parameters_become_the_very_words():
    assert parameters_as_words() == [*WORDS, *HOSTILE]
    assert fill(["a", "{list}", "{m}"], {"list": ["$(x)", "b c"], "m": None}, "w")[1:] == [
        "$(x),b c",
        "",
    ]
    assert fill(["a"], {}, "w") == ["/opt/strata/workloads/w/a"]


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_ssh_hands_the_very_words_to_the_shell_of_the_machine(tmp_path, shell):
    argv = ssh.command(str(tmp_path), parameters_as_words())
    # All before the last word is for ssh itself; sshd gives the last one to the shell.
    assert argv[:-1] == ["ssh", "-F", str(tmp_path / "ssh_config"), "machine", "--"]
    assert received([shell, "-c", argv[-1]], cwd=tmp_path) == HOSTILE
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=60, derandomize=True, deadline=None, database=None)
@given(
    words=st.lists(
        st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"])), max_size=5
    )
)
def test_ssh_hands_any_words_over(words):
    argv = ssh.command("/nowhere", ["printf", "%s\\0", *words, "end"])
    done = subprocess.run(["sh", "-c", argv[-1]], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == [*words, "end"]


def test_the_groups_of_a_native_system_hand_the_very_words_over(tmp_path, monkeypatch):
    groups = [tmp_path / name for name in ("one", "two words")]
    for group in groups:
        group.mkdir()
    monkeypatch.setattr(cgroups, "managed_by_systemd", lambda: False)
    monkeypatch.setattr(cgroups, "groups_of", lambda id: [str(group) for group in groups])
    assert received([*cgroups.join("strata-x"), *parameters_as_words()], cwd=tmp_path) == HOSTILE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two words"]
    assert all(re.fullmatch(r"\d+\n", (group / "cgroup.procs").read_text()) for group in groups)
