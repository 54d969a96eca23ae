"""What is private is found and replaced; what is not stays as it is."""

import json
import os
import types

import pytest

from strata.archive import private

# Put together here, so that no file of the project looks as if it held one.
SECRETS = {
    "github": "gh" + "p_" + "a1B2" * 9,
    "github, fine-grained": "github" + "_pat_" + "A1b2C3d4E5" * 3,
    "gitlab": "gl" + "pat-" + "x" * 20,
    "aws": "AK" + "IA" + "ABCDEFGHIJKLMNOP",
    "slack": "xo" + "xb-" + "123456-abcdef",
    "jwt": "ey" + "JhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxIn0" + ".c2lnbmF0dXJl",
    "bearer": "Bearer " + "abcdefghijklmnop1234",
    "key": "-----BEGIN OPENSSH "
    + "PRIVATE KEY-----\n"
    + "b3BlbnNzaC1rZXktdjEA" * 4
    + "\n-----END OPENSSH PRIVATE KEY-----",
}


@pytest.fixture
def machine(monkeypatch):
    """A machine whose user, name and folders are known."""
    for key in ("USER", "LOGNAME"):
        monkeypatch.setenv(key, "zoequill")
    monkeypatch.delenv("SUDO_USER", raising=False)
    monkeypatch.setenv("HOME", "/home/zoequill")
    monkeypatch.setenv("STRATA_HOME", "/big/zq-cache")
    name = types.SimpleNamespace(nodename="quillbox.lab.example")
    monkeypatch.setattr(os, "uname", lambda: name)
    monkeypatch.setattr("pwd.getpwuid", lambda _: types.SimpleNamespace(pw_name="zoequill"))
    return private.Private("/work-of/zoequill/strata", {"native", "docker", "stream"})


@pytest.mark.parametrize("kind", SECRETS)
def test_keys_and_tokens_are_taken_out_everywhere(machine, kind):
    secret = SECRETS[kind]
    for rule in (machine.of_source, machine.of_log, machine.of_result):
        text, found = rule(f"before\n{secret}\nbehind\n")
        assert secret.split()[-1] not in text
        assert text.startswith("before\n")
        assert text.endswith("\nbehind\n")
        assert found["REDACTED-SECRET"] == 1
    text, _ = machine.of_json(json.dumps({"note": f"x {secret}"}), set())
    assert json.loads(text)["note"].replace("Bearer ", "") == "x REDACTED-SECRET"


def test_a_password_in_an_address_is_taken_out_and_the_address_stays(machine):
    text, found = machine.of_source("mirror: " + "https://me:" + "hunter22@mirror.example/debian\n")
    assert text == "mirror: https://REDACTED-SECRET@mirror.example/debian\n"
    assert found == {"REDACTED-SECRET": 1}


def test_names_and_folders_of_the_machine_are_taken_out_of_logs(machine):
    text, found = machine.of_log(
        "zoequill@quillbox: /work-of/zoequill/strata/results and /home/zoequill/x,\n"
        "quillbox.lab.example /big/zq-cache/images /home/other/data (zoequill2, quillboxes)\n"
    )
    assert text == (
        "REDACTED-USER@REDACTED-HOST: REDACTED-PATH/results and REDACTED-PATH/x,\n"
        "REDACTED-HOST REDACTED-PATH/images REDACTED-PATH/data (zoequill2, quillboxes)\n"
    )
    assert found == {"REDACTED-USER": 1, "REDACTED-HOST": 2, "REDACTED-PATH": 4}


@pytest.mark.parametrize(
    "text",
    [
        '{"kernel": "copy", "gbps": 31.1398, "best_seconds": 0.010276229}\n',
        "/opt/strata/workloads/stream --threads 2 > /tmp/x /proc/cpuinfo /root\n",
        "sha256:" + "0a" * 32 + "\n",
        "-----BEGIN RSA PRIVATE KEY----- is how a key begins\n",
    ],
)
def test_what_is_not_private_stays_in_a_log(machine, text):
    assert machine.of_log(text) == (text, {})


def test_a_record_keeps_its_bytes_where_nothing_is_private(machine):
    text = json.dumps({"environment": "native", "value": 1.50, "note": "späße"}, indent=1) + "\n"
    assert machine.of_json(text, set()) == (text, {})


def test_a_file_that_a_parameter_names_keeps_its_name_alone(machine):
    record = {
        "environment": "zoequill",
        "parameters": {"corpus": "/mnt/disk/enwik9", "level": 2},
        "commands": [{"argv": ["/data/given-corpus", "/tmp/inside"]}],
        "error": "no such file: /mnt/disk/enwik9, /tmp/x",
    }
    text, found = machine.of_json(json.dumps(record), {"corpus"})
    assert json.loads(text) == {
        "environment": "zoequill",
        "parameters": {"corpus": "REDACTED-PATH/enwik9", "level": 2},
        "commands": record["commands"],
        "error": "no such file: REDACTED-PATH, REDACTED-PATH",
    }
    assert found == {"REDACTED-PATH": 3}


def test_a_name_that_is_a_public_word_stays_and_is_told(monkeypatch, machine):
    monkeypatch.setenv("USER", "docker")
    found = private.Private("/work-of/zoequill/strata", {"docker"})
    assert found.kept == ["docker"]
    assert found.of_log("docker by zoequill")[0] == "docker by REDACTED-USER"


def test_the_names_that_every_machine_has_are_not_private(monkeypatch):
    monkeypatch.setenv("USER", "root")
    monkeypatch.setenv("LOGNAME", "root")
    monkeypatch.setenv("HOME", "/root")
    monkeypatch.delenv("STRATA_HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: types.SimpleNamespace(pw_name="root"))
    text = "root:/root /var/cache/strata localhost\n"
    assert private.Private("/nowhere", set()).of_log(text)[0] == text


def test_no_tracked_file_of_the_project_needs_rewriting(tmp_path):
    import projects

    from strata.archive import source

    here = str(projects.ROOT)
    rules = private.Private(str(tmp_path), set())
    for name in source.listing(here).files:
        content = (projects.ROOT / name).read_bytes()
        if private.is_text(content):
            assert rules.of_source(content.decode())[1] == {}, name
