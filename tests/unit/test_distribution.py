import pytest

from strata.base.errors import UserError
from strata.host import distribution

DEBIAN = {"ID": "debian", "VERSION_CODENAME": "bookworm"}
UBUNTU = {"ID": "ubuntu", "VERSION_CODENAME": "noble"}
DEB822 = """\
Types: deb deb-src
# a comment
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main contrib
Signed-By: /etc/keys/debian.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main

Types: deb
URIs: http://elsewhere.example/tools
Suites: nodistro
Components: main

Types: deb
Enabled: no
URIs: http://disabled.example/debian
Suites: bookworm
Components: main
"""


def apt(tmp_path, name, text):
    (tmp_path / "sources.list.d").mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    return str(tmp_path)


def test_the_host_decides_unless_the_config_does():
    assert distribution.choose({}, DEBIAN) == {"distribution": "debian", "release": "trixie"}
    assert distribution.choose({}, UBUNTU) == {"distribution": "ubuntu", "release": "noble"}
    assert distribution.choose({"release": "sid"}, DEBIAN)["release"] == "sid"
    named = {"distribution": "ubuntu", "mirror": "http://mirror.example/ubuntu"}
    assert distribution.choose(named, DEBIAN) == {"distribution": "ubuntu", "release": "noble"}


def test_what_the_host_cannot_give_is_told():
    with pytest.raises(UserError, match=r"image.distribution: is 'host', which is fedora here"):
        distribution.choose({}, {"ID": "fedora"})
    with pytest.raises(UserError, match=r"image.mirror: missing; this host is debian"):
        distribution.choose({"distribution": "ubuntu"}, DEBIAN)


def test_the_hosts_own_suites_are_replaced_and_no_other(tmp_path):
    folder = apt(tmp_path, "sources.list.d/debian.sources", DEB822)
    chosen = {"distribution": "debian", "release": "trixie"}
    lines = distribution.sources(chosen, None, DEBIAN, folder).splitlines()
    assert [line.split("] ")[-1] for line in lines] == [
        "http://mirror.example/debian trixie main",
        "http://mirror.example/debian trixie-updates main",
        "deb http://mirror.example/debian-security trixie-security main"
        if "]" not in lines[2]
        else "http://mirror.example/debian-security trixie-security main",
    ]
    assert "[signed-by=/etc/keys/debian.gpg]" in lines[0]


def test_one_line_sources_are_understood(tmp_path):
    text = (
        "# deb http://commented.example/debian bookworm main\n"
        "deb [arch=amd64 signed-by=/k.gpg] http://a.example/debian bookworm main non-free\n"
        "deb-src http://a.example/debian bookworm main\n"
    )
    folder = apt(tmp_path, "sources.list", text)
    chosen = {"distribution": "debian", "release": "trixie"}
    assert distribution.sources(chosen, None, DEBIAN, folder) == (
        "deb [signed-by=/k.gpg] http://a.example/debian trixie main\n"
    )


def test_a_host_without_a_source_is_told_what_to_name(tmp_path):
    folder = apt(tmp_path, "sources.list", "deb http://a.example/other stable main\n")
    with pytest.raises(UserError, match=r"name image.mirror"):
        distribution.sources({"distribution": "debian", "release": "trixie"}, None, DEBIAN, folder)


def test_a_named_mirror_is_the_only_source(tmp_path):
    folder = apt(tmp_path, "sources.list.d/debian.sources", DEB822)
    text = distribution.sources({"distribution": "ubuntu", "release": "noble"}, "http://m.example/u", DEBIAN, folder)
    assert text.count("\n") == 1
    assert text.endswith("http://m.example/u noble main universe\n")
