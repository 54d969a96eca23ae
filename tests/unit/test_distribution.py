import pytest

from strata.base.errors import UserError
from strata.host import distribution

DEBIAN = {"ID": "debian", "VERSION_CODENAME": "bookworm"}
UBUNTU = {"ID": "ubuntu", "VERSION_CODENAME": "noble"}
HOST = [
    ("http://mirror.example/debian", "bookworm"),
    ("http://mirror.example/debian", "bookworm-updates"),
    ("http://mirror.example/debian", "bookworm-backports"),
    ("http://mirror.example/debian-security", "bookworm-security"),
    ("http://elsewhere.example/tools", "nodistro"),
]


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


def test_the_hosts_own_suites_are_replaced_and_no_other():
    chosen = {"distribution": "debian", "release": "trixie"}
    lines = distribution.sources(chosen, None, DEBIAN, HOST).splitlines()
    assert [line.split()[-3:] for line in lines] == [
        ["http://mirror.example/debian", "trixie", "main"],
        ["http://mirror.example/debian", "trixie-updates", "main"],
        ["http://mirror.example/debian-security", "trixie-security", "main"],
    ]


def test_a_host_without_a_source_is_told_what_to_name():
    with pytest.raises(UserError, match=r"name image.mirror"):
        distribution.sources({"distribution": "debian", "release": "trixie"}, None, DEBIAN, HOST[4:])


def test_a_named_mirror_is_the_only_source():
    text = distribution.sources({"distribution": "ubuntu", "release": "noble"}, "http://m.example/u", DEBIAN, HOST)
    assert text.count("\n") == 1
    assert text.endswith("http://m.example/u noble main universe\n")
