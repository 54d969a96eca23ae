"""A value of the configuration reaches the measured program unchanged, through every layer."""

import json
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strata.host import cgroups
from strata.measure.arguments import fill_command
from strata.vm import ssh

HOSTILE = [
    "; touch owned", "$(touch owned)", "`touch owned`", "& touch owned &", "| touch owned",
    "> owned", "'; touch owned; '", '"; touch owned; "', "a\nb\ntouch owned\n", "a\tb", "\\",
    "\\n", "\\'", "$HOME", "${IFS}x", "~", "*", "/e?c/*", "{a,b}", "!!", "#no comment", "", " ",
    "  two  words  ", "-rf", "--", "--help", "A=b", "%s%n", "Größe 日本 😀", "\u202e", "\x1b[31m",
    "x" * 5000, '{"json": [1, "a"]}', "{seed}", "{number}",
]  # fmt: skip
PRINT_ARGUMENTS = [sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))"]


def filled_command():
    """Return a workload's command with a hostile value for each parameter, as a cell fills it."""
    values = {f"p{number}": value for number, value in enumerate(HOSTILE)}
    argv = [*PRINT_ARGUMENTS, *(f"{{{name}}}" for name in values)]
    return fill_command(argv, {**values, "seed": 1}, "noop")


def read_arguments(argv, **options):
    """Return the arguments that the program at the end of a command received."""
    output = subprocess.check_output(argv, text=True, stdin=subprocess.DEVNULL, **options)
    return json.loads(output)


def test_parameters_become_arguments_unchanged():
    assert filled_command() == [*PRINT_ARGUMENTS, *HOSTILE]
    values = {"list": ["$(x)", "b c"], "m": None}
    assert fill_command(["a", "{list}", "{m}"], values, "w")[1:] == ["$(x),b c", ""]
    assert fill_command(["a"], {}, "w") == ["/opt/strata/workloads/w/a"]


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_ssh_passes_arguments_unchanged_to_the_shell_of_the_machine(tmp_path, shell):
    argv = ssh.build_ssh_command(str(tmp_path), filled_command())
    # sshd gives the last argument to the shell; the others are for ssh itself.
    assert argv[:-1] == ["ssh", "-F", str(tmp_path / "ssh_config"), "machine", "--"]
    assert read_arguments([shell, "-c", argv[-1]], cwd=tmp_path) == HOSTILE
    assert list(tmp_path.iterdir()) == []


CHARACTERS = st.characters(blacklist_characters="\0", blacklist_categories=["Cs"])


@settings(max_examples=60, derandomize=True, deadline=None, database=None)
@given(words=st.lists(st.text(CHARACTERS), max_size=5))
def test_ssh_passes_any_text_unchanged(words):
    argv = ssh.build_ssh_command("/nowhere", ["printf", "%s\\0", *words, "end"])
    done = subprocess.run(["sh", "-c", argv[-1]], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == [*words, "end"]


def test_the_control_groups_of_a_native_system_pass_arguments_unchanged(tmp_path, monkeypatch):
    groups = [tmp_path / name for name in ("one", "two words")]
    for group in groups:
        group.mkdir()
    monkeypatch.setattr(cgroups, "is_managed_by_systemd", lambda: False)
    monkeypatch.setattr(cgroups, "list_group_folders", lambda id: [str(group) for group in groups])
    assert (
        read_arguments([*cgroups.build_join_command("strata-x"), *filled_command()], cwd=tmp_path)
        == HOSTILE
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two words"]
    assert all(re.fullmatch(r"\d+\n", (group / "cgroup.procs").read_text()) for group in groups)
