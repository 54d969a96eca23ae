"""Private text is found in every form and wrapping, with file and line; other text is not."""

import base64
import bz2
import gzip
import io
import itertools
import json
import lzma
import os
import random
import re
import sqlite3
import string
import tarfile
import types
import zipfile
import zlib

import projects
import pytest

from strata.archive import private, secrets, source

# How each kind of secret is written: <w36> is 36 letters and digits by chance, <h8> hexadecimal,
# <u9> capitals and digits, <d9> digits, <b64> base64.
TOKENS = """
ghp_<w36> gho_<w36> ghs_<w36> github_pat_<w22>_<w59> glpat-<w20> glrt-<w20> glrtr-<w20> gldt-<w20>
glft-<w20> glffct-<w20> glptt-<h40> glsoat-<w20> glimt-<w25> glagent-<w50> gloas-<h64>
GR1348941<w20> npm_<w36> pypi-AgEIcHlwaS5vcmc<w150> dckr_pat_<w27> dckr_oat_<w32> cio<w32>
rubygems_<h48> AKIA<u16> ASIA<u16> ABSK<w120> amzn.mws.<h8>-<h4>-<h4>-<h4>-<h12>
xoxb-<d12>-<d12>-<w24> xoxp-<d12>-<d12>-<d12>-<h32> xoxc-<d12>-<d12>-<d12>-<h64> xoxd-<w90>%2B<w20>
xoxe-1-<w146> xapp-1-A<u10>-<d13>-<h64> https://hooks.slack.com/services/T<u8>/B<u10>/<w24>
https://hooks.slack.com/workflows/T<u10>/A<u10>/<d18>/<w24>
https://discord.com/api/webhooks/<d18>/<w68>
https://acme.webhook.office.com/webhookb2/<h8>-<h4>@<h8>-<h4>/IncomingWebhook/<h32>/<h8>
M<w23>.<w6>.<w38> <d10>:AA<w33> AIzaSy<w33> GOCSPX-<w28> ya29.a0Af<w120> dop_v1_<h64> doo_v1_<h64>
hvs.CAESI<w90> hvb.AAAAAQ<w150> tskey-auth-k<w9>CNTRL-<w32> AGE-SECRET-KEY-1<u58>
sk-ant-api03-<w93>AA sk-proj-<w74>T3BlbkFJ<w74> sk-<w20>T3BlbkFJ<w20> sk-or-v1-<h64> hf_<w34>
gsk_<w52> r8_<w37> xai-<w80> pplx-<w48> ntn_<d11><w35> figd_<w40> PMAK-<h24>-<h34> key-<h32>
<h32>-us12 xkeysib-<h64>-<w16> NRAK-<u27> dapi<h32> sbp_<h40> sb_secret_<w22>_<w8> pscale_tkn_<w43>
pscale_pw_<w43> <w14>.atlasv1.<w67> HRKU-AA<w58> <w3>8Q~<w34> A3-<u6>-<u11>-<u5>-<u5>-<u5>
ops_eyJ<w300> sk_live_<w24> sk_test_<w24> rk_live_<w24> whsec_<w32> SG.<w22>.<w43> sq0csp-<w43>
shpat_<h32> glsa_<w32>_<h8> lin_api_<w40> ATATT3xFfGF0<w180>=<h8> SK<h32> AC<h32>
ey^JhbGciOiJIUzI1NiJ9.eyJzdWIi<w20>.<w43> postgres:^//me:<w15>@db.lab.net/shop
redis:^//:<w15>@127.0.0.1:6379/0 mysql:^//me:Tr7%40<w9>@db.lab.net/x
mysql:^//me:Tr7$'{<w9>@db.lab.net/x
"""
PHRASES = """
FlyV1 fm2_<w200>
Authorization: Bearer <w32>
Authorization: Basic <me>
Digest username="me", realm="x", uri="/", response="<h32>"
machine db.lab.net login me password <w15>
db.lab.net:5432:shop:me:<w15>
{"auths": {"registry.lab.net": {"auth": "<me>"}}}
//registry.example/:_authToken=<h8>-<h4>-<h12>
//registry.example/:_auth=<me>
_auth = <me>
mysql -u me -p<w15> shop
ssh^pass -p <w15> ssh me@box
ssh^pass -p<w15> ssh me@box
redis-cli -h box -a <w15> ping
curl -s -u me:<w15> https://lab.net/
me:$6$rounds=5000$saltsalt$<w86>:19000:0:99999:7:::
me:$y$j9T$<w22>$<w43>
$2b$12$<w53>
*6BB^4837EB74329105EE4568DDA7DC67ED2CA2AD9
CREATE USER 'me'@'%' IDENTIFIED WITH mysql_native_password BY '<w8>';
aws_secret_access_key = "<w40>"
AccountName=acme;AccountKey=<w86>==;EndpointSuffix=x
https://x.blob.core.windows.net/c?sv=2024-01-01&sig=<w42>%3D
PrivateKey = <w43>=
PresharedKey = <w43>=
-----BEGIN RSA PRIVATE KEY^-----|<w64>|<w64>|<w64>|-----END RSA PRIVATE KEY-----
-----BEGIN PRIVATE KEY^-----|<w64>|<w64>
MII^EvQIBADANBgkqhkiG9w0BAQEFAASC<w32>|<w64>
PuTTY-User-Key-^File-2: ssh-rsa|Encryption: none|Comment: x|Public-Lines: 1|AAAAB3Nz<w56>
"""
# Passwords in results; in source the same may be the name of a variable.
NAMED = """
Server=db;Database=shop;Uid=me;Pwd=<w15>;
password <- "<w15>"
mysqldump --password=<w15>
mysql --password <w15> -u x
PGPASSWORD=<w8>
MYSQL_PASSWORD='<w8>'
{"api_key": "<w8>"}
requirepass: <w8>
requirepass <w8>
<db><password>  <w8></password></db>
pass=<w8>
DB_PASS = "<w8>"
"""
_LETTERS = {
    "w": string.ascii_letters + string.digits,
    "h": "0123456789abcdef",
    "u": string.ascii_uppercase + "234567",
    "d": "123456789",
}


def draw_secrets(forms):
    """Secrets of these forms, the same in every run."""
    chance = random.Random(20261127)

    def draw(match):
        if match[1] == "me":
            password = "".join(chance.choices(_LETTERS["w"], k=12))
            return base64.b64encode(f"me:{password}".encode()).decode()
        return "".join(chance.choices(_LETTERS[match[1]], k=int(match[2])))

    # A digit in each, as short ones of letters alone may be words.
    return {
        form: re.sub(r"<(me|[whud])(\d*)>", draw, form).replace("^", "").replace("|", "\n")
        for form in forms
    }


SECRETS = draw_secrets(TOKENS.split())
ALL_SECRETS = SECRETS | draw_secrets([*PHRASES.split("\n")[1:-1], *NAMED.split("\n")[1:-1]])


def tar(content, mode="w"):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name in ("first", "second"):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def in_zip(content, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("a/first.txt", b"nothing in it\n" * 9)
        archive.writestr("a/second.txt", content)
    return file.getvalue()


def sqlite(content):
    database = sqlite3.connect(":memory:")
    database.execute("create table t (a)")
    database.execute("insert into t values (?)", (content,))
    database.commit()
    return database.serialize()


def png(*chunks):
    chunks = [(len(data).to_bytes(4, "big"), kind, data, b"crc!") for kind, data in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(b"".join(chunk) for chunk in chunks)


def gzip_header(flags, text):
    """Gzip data with a header text: a name (8) after an extra field (4), or a comment (16)."""
    extra = b"\3\0xyz" if flags & 4 else b""
    return (
        b"\x1f\x8b\x08"
        + bytes([flags])
        + b"123456"
        + extra
        + text
        + b"\0"
        + gzip.compress(b"x")[10:]
    )


def nested(layers):
    """A file in which a text stands below layers of escapes, twice below each."""
    encode = {
        "escape": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
        "percent": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
        "base64": lambda text: base64.b64encode(text.encode()).decode(),
    }

    def wrap(content):
        text = content.decode()
        for layer in layers * 2:
            text = encode[layer](text)
        return f"x = '{text}'\n".encode()

    return wrap


NOISE = random.Random(1).randbytes(6000)
# Files in which a text lies whole.
WHOLE = {
    "plain": lambda text: text,
    "JSON": lambda text: json.dumps({"a": 1, "log": f"x\n{text.decode()}\ny"}).encode(),
    "coloured": lambda text: b"\x1b[1;32m" + text + b"\x1b[0m",
    "coloured in JSON": lambda text: json.dumps(f"\x1b[32m{text.decode()}\x1b[0m").encode(),
    "one NUL": lambda text: b"a\0b\n" + text,
    "Latin-1": lambda text: b"\xff\xe9\n" + text,
    "UTF-16": lambda text: text.decode().encode("utf-16"),
    "UTF-16 without a mark": lambda text: text.decode().encode("utf-16-be"),
    "UTF-32": lambda text: text.decode().encode("utf-32"),
    "gzip": gzip.compress,
    "gzip's name": lambda text: gzip_header(12, text),
    "gzip's comment": lambda text: gzip_header(16, text),
    "gzip with a byte behind it": lambda text: gzip.compress(text) + b"\0",
    "gzip cut short": lambda text: gzip.compress(text + NOISE)[:-3000],
    "gzip in a log": lambda text: b"one\ntwo\n" + gzip.compress(text) + b"three\n",
    "gzip that is damaged": lambda text: gzip.compress(text + NOISE)[:-999] + NOISE,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "lzma": lambda text: lzma.compress(text, lzma.FORMAT_ALONE),
    "tar": tar,
    "tar.gz": lambda text: tar(text, "w:gz"),
    "tar.xz": lambda text: tar(text, "w:xz"),
    "zip": in_zip,
    "zip that packs nothing": lambda text: in_zip(text, zipfile.ZIP_STORED),
    "zip cut short": lambda text: in_zip(text)[:-60],
    "zip in tar.gz in zip": lambda text: in_zip(tar(in_zip(text), "w:gz")),
    "base64": base64.b64encode,
    "base64 in lines": lambda text: base64.encodebytes(b"some text before it\n" + text),
    "gzip in base64": lambda text: b"data:" + base64.encodebytes(gzip.compress(text)),
    "gzip in base64 twice": lambda text: base64.b64encode(base64.b64encode(gzip.compress(text))),
    "gzip in base64 in escapes": lambda text: nested(["escape"])(
        base64.b64encode(gzip.compress(text))
    ),
    "base64 of letters beyond ASCII": lambda text: base64.b64encode("für Ärger ".encode() + text),
    "PDF": lambda text: b"%PDF-1.5\n1 0 obj\nstream\n" + zlib.compress(text) + b"\nendstream\n",
    "SQLite": lambda text: sqlite(text.decode()),
    "gzip in SQLite": lambda text: sqlite(gzip.compress(text)),
    "PNG behind its pixels": lambda text: png((b"IDAT", NOISE), (b"tEXt", b"Author\0 " + text)),
    "program": lambda text: b"\x7fELF" + NOISE + b"\0" + text + b"\0" + NOISE,
    **{
        " ".join(layers): nested(layers)
        for layers in itertools.permutations(("escape", "percent", "base64"))
    },
}
# Files in which a text of one word is cut.
CUT = {
    "two lines": lambda a, b: f"x\n{a}\n{b}\ny\n",
    "two indented lines": lambda a, b: f"x: >\n    {a}\n    {b}\n",
    "two quotes": lambda a, b: f"x = ('{a}'\n  '{b}')\n",
    "quotes in a line": lambda a, b: f'x = "{a}" + "{b}"\n',
    "two sections of a log": lambda a, b: f'{{"system": 0}}\n{a}\n{{"system": 1}}\n{b}\n',
    "a list of JSON": lambda a, b: json.dumps({"x": [a, b]}),
    "a colour": lambda a, b: f"x {a}\x1b[0;31m{b}\n",
    "a mark in JSON": lambda a, b: json.dumps({"x": f"{a}\u200e{b}"}),
    "a mark in base64": lambda a, b: base64.b64encode(f"{a}\u200e{b}".encode()).decode(),
    **{
        f"U+{ord(mark):04X}": lambda a, b, mark=mark: f"x {a}{mark}{b}\n"
        for mark in "\x7f\x85\x9b\u00ad\u180e\u200b\u200e\u202e\u2066\ufe0f\U000e0041"
    },
}
PRIVATE = {
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
    """A machine whose user, name and folders are known; ``machine(allowed)`` is a scanner there."""
    for key in ("USER", "LOGNAME"):
        monkeypatch.setenv(key, "zoequill")
    monkeypatch.delenv("SUDO_USER", raising=False)
    monkeypatch.setenv("HOME", "/home/zoequill")
    monkeypatch.setenv("STRATA_HOME", "/big/zq-cache")
    name = types.SimpleNamespace(nodename="quillbox.lab.example")
    monkeypatch.setattr(os, "uname", lambda: name)
    monkeypatch.setattr("pwd.getpwuid", lambda _: types.SimpleNamespace(pw_name="zoequill"))
    monkeypatch.setattr(
        "strata.host.addresses.list_physical_addresses", lambda: {"203.0.113.7", "2001:db8::7"}
    )

    def scanner(*allowed):
        words = {"native", "docker", "stream"}
        return private.Scanner(
            "/work-of/zoequill/strata", words, allowed, ["/mnt/disk"], ["bench@loadbox.lab"]
        )

    return scanner


@pytest.fixture(scope="module", autouse=True)
def _rules():
    """The library's rules, compiled before the tests take the user's folder for caches away."""
    secrets.find_secrets("")


def missed(scanner, files):
    """The forms whose file, by form, is scanned without finding a secret."""
    return [
        (form, public)
        for form, content in files.items()
        for public in (True, False)
        if not (public and f"\n{form}\n" in NAMED)
        if not any(
            finding.kind == private.SECRET for finding in scanner.scan_file("a", content, public)
        )
    ]


def sample(rows):
    """Each row with some secrets, and in the long tests with all."""
    return [
        pytest.param(row, chosen, id=f"{row} {len(marks)}", marks=marks)
        for number, row in enumerate(rows)
        for chosen, marks in ((slice(number % 12, None, 12), []), (slice(None), [pytest.mark.long]))
    ]


@pytest.mark.parametrize(("wrapping", "chosen"), sample(WHOLE))
def test_secrets_are_found_in_every_file(machine, wrapping, chosen):
    rows = list(ALL_SECRETS.items())[slice(None) if wrapping == "plain" else chosen]
    files = {form: WHOLE[wrapping](secret.encode()) for form, secret in rows}
    assert missed(machine(), files) == []


@pytest.mark.parametrize(("cut", "chosen"), sample(CUT))
def test_secrets_that_are_cut_are_found(machine, cut, chosen):
    rows = list(SECRETS.items())[chosen]
    files = {form: CUT[cut](secret[:12], secret[12:]).encode() for form, secret in rows}
    assert missed(machine(), files) == []


def test_secrets_are_found_in_names_of_files(machine):
    for form, secret in SECRETS.items():
        assert list(machine().scan_file(f"results/{secret}.log", b"x")), form
    name = SECRETS["ghp_<w36>"].encode().ljust(50, b"\0")
    packed = tar(b"x").replace(b"second".ljust(50, b"\0"), name)
    assert list(machine().scan_file("a.tar", packed))


def encrypted(content):
    """A zip file that says of its members that they are encrypted."""
    packed = bytearray(in_zip(content))
    for match in re.finditer(b"PK\\x03\\x04", bytes(packed)):
        packed[match.start() + 6] |= 1
    return bytes(packed)


def deep(content):
    for _ in range(12):
        content = gzip.compress(content)
    return content


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (encrypted(b"x" * 99), "encrypted"),
        (b"%PDF-1.5\ntrailer << /Encrypt 5 0 R >>\n", "encrypted"),
        (b"Salted__" + NOISE, "not known"),
        (b"7z\xbc\xaf\x27\x1c" + NOISE, "not known"),
        (tar(b"\x28\xb5\x2f\xfd" + NOISE), "not known"),
        (in_zip(b"x" * 99, zipfile.ZIP_LZMA), "not known"),
        (deep(b"x"), "more than"),
        (gzip.compress(bytes(1 << 22)), "more than"),
        (gzip.compress(NOISE)[:-9], "missing"),
        (tar(b"x" * 5000)[:9000], "missing"),
        (b"\x1f\x8b\x08\0" + NOISE, "damaged"),
        (b"SQLite format 3\0" + NOISE, "damaged"),
    ],
)
def test_a_file_that_cannot_be_looked_through_is_named_until_it_is_allowed(
    machine, monkeypatch, content, why
):
    monkeypatch.setattr("strata.archive.extraction.MAX_BYTES", 1 << 20)
    for public in (True, False):
        findings = list(machine().scan_file("a.bin", content, public))
        assert {finding.kind for finding in findings} == {"not looked through"}
        assert any(why in finding.text for finding in findings), findings
        assert not list(machine("a.bin").scan_file("a.bin", content, public))


@pytest.mark.parametrize("kind", PRIVATE)
def test_private_text_in_results_is_found_with_its_line(machine, kind):
    text, shown = PRIVATE[kind]
    content = f"one\ntwo\n{text}\n".encode()
    findings = machine().scan_file("r.log", content)
    assert (shown, "r.log:3") in [(finding.text, finding.place) for finding in findings]
    assert not list(machine(shown, "r.log:3").scan_file("r.log", content))


@pytest.mark.parametrize(
    "text",
    [
        '{"kernel": "copy", "gbps": 31.1398, "best_seconds": 0.010276229}\n',
        "/opt/strata/workloads/stream -t 2 > /tmp/x /proc/cpuinfo /root zoequill2 quillboxes\n",
        "sha256:" + "0a" * 32 + "\n",
        "-----BEGIN RSA PRIVATE KEY----- is how a key begins\n",
        "from 198.51.100.20 to 127.0.0.1, fe80::1:2, at 12:34:56, version 1.2.3, std::get\n",
        "of ssh@1.service, pass=7 of 100, pass=yes, 100% done, \\x41, * and **\n",
        "password: none, token=$TOKEN, --password={password}, IDENTIFIED BY '$(cat x)'\n",
        png((b"IHDR", b"\0" * 13), (b"IDAT", zlib.compress(NOISE)), (b"IEND", b"")),
        b"\xff\xd8\xff\xe0" + NOISE,
        WHOLE["PDF"](NOISE),
        lzma.compress(b"0.5 1.5\n" * 999),
        "\u4e2d\u6587" * 20,
        "x \u4e2d\u6587\n".encode("utf-16-le"),
        tar(gzip.compress(b"a,b\n1,2\n"), "w:xz"),
    ],
    ids=range(14),
)
def test_other_text_and_usual_files_are_not_found(machine, text):
    content = text.encode() if isinstance(text, str) else text
    assert list(machine().scan_file("x.log", content)) == []


def test_in_public_source_only_secrets_and_folders_of_this_machine_are_found(machine):
    text = "by zoequill, zoe@lab.example, password = settings.read(), /work-of/zoequill/strata/x\n"
    findings = machine().scan_file("source/a.py", text.encode(), True)
    assert [finding.text for finding in findings] == ["/work-of/zoequill/strata"]


KEY_FILES = """
.env id_rsa vm/private_key source/vm/key.pem .ssh/known_hosts credentials.json .netrc
"""


@pytest.mark.parametrize("name", KEY_FILES.split())
def test_a_file_of_keys_is_found_by_its_name(machine, name):
    for public in (True, False):
        findings = machine().scan_file(name, b"x\0", public)
        assert [finding.place for finding in findings] == [f"{name}:1"]
    assert not list(machine(name).scan_file(name, b"x\0"))


def test_names_that_are_public_words_or_those_of_every_machine_are_not_private(
    monkeypatch, machine
):
    monkeypatch.setenv("USER", "docker")
    findings = machine().scan_file("x", b"docker by zoequill")
    assert [finding.text for finding in findings] == ["zoequill"]
    for key, text in {"USER": "root", "LOGNAME": "root", "HOME": "/root"}.items():
        monkeypatch.setenv(key, text)
    monkeypatch.delenv("STRATA_HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: types.SimpleNamespace(pw_name="root"))
    text = b"root:/root /var/cache/strata localhost\n"
    assert not list(private.Scanner("/nowhere", set()).scan_file("x", text))


def test_no_tracked_file_of_the_project_and_no_result_of_a_run_holds_a_secret(tmp_path):
    scanner = private.Scanner(str(tmp_path), set())
    findings = []
    for name in source.read_project_source(str(projects.ROOT)).files:
        findings += scanner.scan_file(name, (projects.ROOT / name).read_bytes(), public=True)
    small = projects.ROOT / "docs/small.zip"
    if small.exists():
        with zipfile.ZipFile(small) as archive:
            for name in archive.namelist():
                results = scanner.scan_file(name, archive.read(name))
                findings += [finding for finding in results if finding.kind == private.SECRET]
    assert findings == []
