"""What is private is found and replaced; what is not stays as it is."""

import base64
import json
import os
import re
import types
import zlib

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
    "bearer, small": "bearer " + "abcdefghijklmnop1234",
    "basic": "Basic " + base64.b64encode(b"me:hunter2").decode(),
    "google": "AI" + "za" + "Sy" + "a1B2c3D4e" * 4,
    "anthropic": "sk" + "-ant-" + "api03-" + "a1B2c3" * 8,
    "stripe, test": "sk" + "_test_" + "a1B2c3D4" * 3,
    "docker": "dckr" + "_pat_" + "a1B2c3D4" * 4,
    "vault": "hv" + "s." + "CAES" + "a1B2c3D4" * 4,
    "age": "AGE-SECRET" + "-KEY-1" + "QPZRY9X8GF2TVDW0" * 3,
    "discord": "M" + "TIzNDU2Nzg5MDEyMzQ1Njc4" + ".Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs",
    "pem, without its first line": "MII"
    + "EvQIBADANBgkqhkiG9w0BAQEFAASC"
    + "\n"
    + "a1B2" * 16
    + "\n"
    + "c3D4" * 5
    + "==",
    "pem, as base64": base64.b64encode(b"-----BEGIN " + b"PRIVATE KEY-----\n" + b"a1B2" * 30).decode(),
    "putty": "PuTTY-User-"
    + "Key-File-2: ssh-rsa\nEncryption: none\nComment: x\nPublic-Lines: 1\n"
    + "AAAAB3Nz" * 8
    + "\nPrivate-Lines: 1\n"
    + "AAABAQ" * 10
    + "\nPrivate-MAC: "
    + "0a" * 20,
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
    monkeypatch.setattr("strata.host.addresses.own", lambda: {"203.0.113.7", "2001:db8::7"})
    return private.Private("/work-of/zoequill/strata", {"native", "docker", "stream"}, "bench@loadbox.lab")


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
    assert re.sub("(?i)bearer |basic ", "", json.loads(text)["note"]) == "x REDACTED-SECRET"


@pytest.mark.parametrize("sign", ["# ", "// ", " * ", "; ", "> ", "| "])
@pytest.mark.parametrize("ended", [True, False])
def test_the_body_of_a_key_behind_comment_signs_is_taken_out(machine, sign, ended):
    lines = ["-----BEGIN RSA " + "PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED", "", "a1B2" * 16, "c3D4" * 16, "e5=="]
    lines += ["-----END RSA " + "PRIVATE KEY-----"] if ended else []
    body = "\n".join(sign + line for line in lines)
    text, found = machine.of_source(f"before\n{body}\nbehind and more\n")
    assert text == f"before\n{sign}REDACTED-SECRET\nbehind and more\n"
    assert found == {"REDACTED-SECRET": 1}
    text, _ = machine.of_json(json.dumps({"note": body}), set())
    assert json.loads(text) == {"note": f"{sign}REDACTED-SECRET"}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("redis://:" + "hunter22@cache:6379/0", "redis://REDACTED-SECRET@cache:6379/0"),
        ("mysql --password=hunter22 -u x", "mysql --password=REDACTED-SECRET -u x"),
        ("mysql --password hunter22 -u x", "mysql --password REDACTED-SECRET -u x"),
        ("MYSQL_PASSWORD='hunter22'", "MYSQL_PASSWORD='REDACTED-SECRET'"),
        ('{"api_key": "a1b2c3"}', '{"api_key": "REDACTED-SECRET"}'),
        ("requirepass: hunter22", "requirepass: REDACTED-SECRET"),
        ("mail to zoe.quill+x@lab.example.org, soon", "mail to REDACTED-ADDRESS, soon"),
        ("ether 00:1a:2B:3c:4d:5e txqueuelen", "ether REDACTED-ADDRESS txqueuelen"),
        ("card 00-1A-2B-3C-4D-5E", "card REDACTED-ADDRESS"),
        ("listens on 203.0.113.7:6379, [2001:db8::7]:22", "listens on REDACTED-ADDRESS:6379, [REDACTED-ADDRESS]:22"),
        ("load of bench@loadbox", "load of REDACTED-USER@REDACTED-HOST"),
        ("loadbox answers", "REDACTED-HOST answers"),
    ],
)
def test_passwords_and_addresses_are_taken_out_of_logs(machine, text, left):
    assert machine.of_log(f"{text}\n")[0] == f"{left}\n"
    assert machine.doubts == {}


def test_an_address_that_may_be_data_stays_and_is_listed(machine):
    machine.place = "results/raw/native/netperf/1.log"
    text = "from 198.51.100.20 to 127.0.0.1, fe80::1:2, at 12:34:56, version 1.2.3, std::get, 0.5.300.1.2\n"
    assert machine.of_log(text) == (text, {})
    machine.place = "another"
    machine.of_log(text)
    assert machine.doubts == dict.fromkeys(["198.51.100.20", "fe80::1:2"], "results/raw/native/netperf/1.log")


def test_what_looks_like_a_password_in_new_code_stays_and_is_listed(machine):
    machine.place = "source/new.sh"
    text = 'connect --password=hunter22 --token="$TOKEN"\n'
    assert machine.of_own_source(text) == (text, {})
    assert machine.doubts == {"password=hunter22": "source/new.sh"}


def test_a_mark_is_never_within_another(machine):
    text, found = machine.of_result("/srv/zoequill/data password=/tmp/zoequill/x zoequill@quillbox.lab.example\n")
    assert {mark: text.count(mark) for mark in private.MARKS if mark in text} == found


def test_what_is_private_in_a_large_log_is_found_wherever_it_stands(machine):
    lines = [f'{{"kernel": "copy", "gbps": {number}.1398, "best_seconds": 0.0{number}}}' for number in range(200_000)]
    lines[150_000] = "given " + SECRETS["github"]
    lines[-1] = "by zoequill"
    text, found = machine.of_log("\n".join(lines))
    assert text.split("\n")[150_000] == "given REDACTED-SECRET"
    assert text.endswith("by REDACTED-USER")
    assert found == {"REDACTED-SECRET": 1, "REDACTED-USER": 1}


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


def test_what_is_packed_into_a_page_is_looked_at_too(machine):
    look = private.Private("/work/strata", set())
    packed = base64.b64encode(zlib.compress("<svg><text>of zoequill \u2212</text></svg>".encode())).decode()
    page = f'<p>a</p><script type="text/plain" id="drawings">{packed}</script><p>b</p>'
    assert look.of_result(page)[1] == {}
    assert look.of_result(private.unpacked(page))[1] == {"REDACTED-USER": 1}
    assert private.unpacked(page).startswith('<p>a</p><script type="text/plain" id="drawings"><svg>')
    for text in ("plain", page.replace(packed, ""), page.replace("drawings", "others")):
        assert private.unpacked(text) == text
