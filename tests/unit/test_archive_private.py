"""What is private is found, with file and line; what is not is not."""

import base64
import bz2
import gzip
import json
import lzma
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
    "netrc": "machine db.example login me password " + "hunter2222",
    "mysql's client": "mysql -u me -p" + "hunter2222 shop",
    "shadow": "me:$" + "6$rounds=5000$" + "saltsalt$" + "a1B2c3D4" * 5,
    "yescrypt": "me:$" + "y$j9T$" + "saltsaltsalt$" + "a1B2c3D4" * 5,
    "digest": 'Digest username="me", realm="x", uri="/", response="' + "0a" * 16 + '"',
    "sas": "https://x.blob.core.windows.net/c?sv=2024&" + "sig=" + "a1B2c3D4" * 5,
    "npm": "//registry.example/:_auth=" + "bWU6aHVudGVyMjI=",
    "npm, alone": "_auth = " + "bWU6aHVudGVyMjI=",
    "wireguard": "PrivateKey = " + "a1B2c3D4e5" * 4 + "aB3=",
}


# What is one in results, and in source may be code.
IN_RESULTS = {
    "a client's option": ("mysql --password " + "hunter22 -u x", "hunt…"),
    "a variable": ("PGPASSWORD=" + "hunter22", "hunt…"),
    "a quoted one": ("MYSQL_PASSWORD='" + "hunter22'", "hunt…"),
    "a key of JSON": ('{"api_key": "' + 'a1b2c3"}', "a1b2…"),
    "a key of YAML": ("requirepass: " + "hunter22", "hunt…"),
    "mail": ("mail to zoe.quill+x@lab.example.org, soon", "zoe.quill+x@lab.example.org"),
    "mail of all letters": ("mail to zo\u00eb@b\u00fccher.example", "zo\u00eb@b\u00fccher.example"),
    "a card": ("ether 00:1a:2B:3c:4d:5e txqueuelen", "00:1a:2B:3c:4d:5e"),
    "a card, with hyphens": ("card 00-1A-2B-3C-4D-5E", "00-1A-2B-3C-4D-5E"),
    "an address": ("listens on 203.0.113.7:6379", "203.0.113.7"),
    "an address of version 6": ("listens on [2001:db8::7]:22", "2001:db8::7"),
    "a user": ("by zoequill", "zoequill"),
    "a host": ("quillbox answers", "quillbox"),
    "the client's user": ("load of bench, there", "bench"),
    "the client's host": ("loadbox answers", "loadbox"),
    "a home": ("in /home/other/data", "/home/other"),
    "a home of another kind": ("in C:" + "\\Users\\other\\x", "C:" + "\\Users\\other"),
    "a folder that a parameter names": ("of /mnt/disk/enwik9", "/mnt/disk"),
}


@pytest.fixture
def machine(monkeypatch):
    """A machine whose user, name and folders are known; ``machine(allowed)`` gives what is private there."""
    for key in ("USER", "LOGNAME"):
        monkeypatch.setenv(key, "zoequill")
    monkeypatch.delenv("SUDO_USER", raising=False)
    monkeypatch.setenv("HOME", "/home/zoequill")
    monkeypatch.setenv("STRATA_HOME", "/big/zq-cache")
    name = types.SimpleNamespace(nodename="quillbox.lab.example")
    monkeypatch.setattr(os, "uname", lambda: name)
    monkeypatch.setattr("pwd.getpwuid", lambda _: types.SimpleNamespace(pw_name="zoequill"))
    monkeypatch.setattr("strata.host.addresses.own", lambda: {"203.0.113.7", "2001:db8::7"})

    def made(*allowed):
        words = {"native", "docker", "stream"}
        return private.Private("/work-of/zoequill/strata", words, allowed, ["/mnt/disk"], ["bench@loadbox.lab"])

    return made


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("kind", SECRETS)
def test_keys_and_tokens_are_found_everywhere(machine, kind, public):
    secret = SECRETS[kind]
    for text in (f"before\n{secret}\nbehind\n", json.dumps({"a": 1, "note": f"x {secret}"}, indent=1)):
        found = list(machine().look("a.log", text.encode(), public))
        assert found, text
        assert {one.line for one in found} <= {2, 3}
        assert all(len(one.text) <= 5 for one in found if one.what == "a key, token or password")


@pytest.mark.parametrize("kind", IN_RESULTS)
def test_what_is_private_in_results_is_found_with_its_line(machine, kind):
    text, shown = IN_RESULTS[kind]
    content = f"one\ntwo\n{text}\n".encode()
    assert (shown, "r.log:3") in [(one.text, one.place) for one in machine().look("r.log", content)]
    assert not list(machine(shown, "r.log:3").look("r.log", content))


@pytest.mark.parametrize(
    "packed",
    [
        gzip.compress,
        bz2.compress,
        lzma.compress,
        lambda content: content.decode().encode("utf-16"),
        lambda content: content.decode().encode("utf-16-le"),
        lambda content: gzip.compress(content.decode().encode("utf-16-be")),
        lambda content: b"\xff\xe9\n" + content,
    ],
)
def test_it_is_found_in_every_encoding(machine, packed):
    content = packed(f"by zoequill\n{SECRETS['github']}\n".encode())
    assert [one.text for one in machine().look("x", content)] == ["ghp_…", "zoequill"]


@pytest.mark.parametrize(
    "text",
    [
        '{"kernel": "copy", "gbps": 31.1398, "best_seconds": 0.010276229}\n',
        "/opt/strata/workloads/stream --threads 2 > /tmp/x /proc/cpuinfo /root zoequill2 quillboxes\n",
        "sha256:" + "0a" * 32 + "\n",
        "-----BEGIN RSA PRIVATE KEY----- is how a key begins\n",
        "from 198.51.100.20 to 127.0.0.1, fe80::1:2, at 12:34:56, version 1.2.3, std::get, ssh@1.service\n",
        "password: none, token=$TOKEN, --password={password}\n",
    ],
)
def test_what_is_not_private_is_not_found(machine, text):
    assert list(machine().look("x.log", text.encode())) == []


def test_of_public_source_only_secrets_and_folders_of_this_machine_are_found(machine):
    text = "by zoequill, zoe@lab.example, password = settings.read(), /work-of/zoequill/strata/x\n"
    assert [one.text for one in machine().look("source/a.py", text.encode(), True)] == ["/work-of/zoequill/strata"]


@pytest.mark.parametrize(
    "name", [".env", "id_rsa", "vm/private_key", "source/vm/key.pem", ".ssh/known_hosts", "credentials.json", ".netrc"]
)
def test_a_file_of_keys_is_found_by_its_name(machine, name):
    for public in (True, False):
        assert [one.place for one in machine().look(name, b"x\0", public)] == [f"{name}:1"]
    assert not list(machine(name).look(name, b"x\0"))


def test_a_name_that_is_a_public_word_gives_nothing_away(monkeypatch, machine):
    monkeypatch.setenv("USER", "docker")
    assert [one.text for one in machine().look("x", b"docker by zoequill")] == ["zoequill"]


def test_the_names_that_every_machine_has_are_not_private(monkeypatch):
    monkeypatch.setenv("USER", "root")
    monkeypatch.setenv("LOGNAME", "root")
    monkeypatch.setenv("HOME", "/root")
    monkeypatch.delenv("STRATA_HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: types.SimpleNamespace(pw_name="root"))
    assert not list(private.Private("/nowhere", set()).look("x", b"root:/root /var/cache/strata localhost\n"))


def test_no_tracked_file_of_the_project_is_private(tmp_path):
    import projects

    from strata.archive import source

    look = private.Private(str(tmp_path), set())
    found = [
        one
        for name in source.listing(str(projects.ROOT)).files
        for one in look.look(name, (projects.ROOT / name).read_bytes(), public=True)
    ]
    assert found == []
