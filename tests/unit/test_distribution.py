"""The image's distribution and its package sources, on hosts of several kinds."""

import types

import pytest
import seen

from strata.host import distribution
from strata.util.errors import UserError

DEBIAN = {"ID": "debian", "VERSION_CODENAME": "bookworm"}
UBUNTU = {"ID": "ubuntu", "VERSION_CODENAME": "noble"}
HOST = [
    "http://mirror.example/debian bookworm",
    "http://mirror.example/debian bookworm-updates",
    "http://mirror.example/debian bookworm-backports",
    "http://mirror.example/debian-security bookworm-security",
    "http://elsewhere.example/tools nodistro",
]
TRIXIE = {"distribution": "debian", "release": "trixie"}


@pytest.mark.parametrize(
    ("image", "host", "chosen"),
    [
        ({}, DEBIAN, TRIXIE),
        ({}, UBUNTU, {"distribution": "ubuntu", "release": "noble"}),
        ({"release": "sid"}, DEBIAN, {"distribution": "debian", "release": "sid"}),
        (
            {"distribution": "ubuntu", "mirror": "http://m/u"},
            DEBIAN,
            {"distribution": "ubuntu", "release": "noble"},
        ),
        (
            {"release": "trixy", "mirror": "http://m/u"},
            DEBIAN,
            {"distribution": "debian", "release": "trixy"},
        ),
        ({"release": "trixy"}, DEBIAN, r"image\.release: .* did you mean 'trixie'"),
        ({"release": "noble"}, DEBIAN, "image.release: 'noble' is not a release of debian"),
        ({}, {"ID": "fedora"}, "image.distribution: is 'host', which is fedora here"),
        ({"distribution": "ubuntu"}, DEBIAN, "image.mirror: missing; this host is debian"),
    ],
)
def test_the_host_decides_unless_the_config_does(monkeypatch, image, host, chosen):
    names = "version,codename,series\n1,Trixie,trixie\n2,Sid,sid\n"
    seen.Host({f"{distribution.RELEASES}/debian.csv": names}).put(monkeypatch.setattr)
    if isinstance(chosen, dict):
        assert distribution.choose_image_release(image, host) == chosen
    else:
        with pytest.raises(UserError, match=chosen):
            distribution.choose_image_release(image, host)


def test_any_release_is_accepted_where_none_is_known(monkeypatch):
    seen.Host({}).put(monkeypatch.setattr)
    assert distribution.choose_image_release({"release": "trixy"}, DEBIAN)["release"] == "trixy"


@pytest.mark.parametrize(
    ("files", "fields"),
    [
        ({"/etc/os-release": "ID='ubuntu'\nVERSION_CODENAME=\"noble\"\n# x=y"}, UBUNTU),
        ({"/usr/lib/os-release": "ID=debian\nVERSION_CODENAME=bookworm"}, DEBIAN),
        (
            {"/etc/os-release": "", "/usr/lib/os-release": "ID=debian\nVERSION_CODENAME=bookworm"},
            DEBIAN,
        ),
        ({"/etc/os-release": "NAME=x\nID="}, {"ID": "unknown"}),
        ({}, {"ID": "unknown"}),
    ],
)
def test_the_distribution_is_read_from_the_first_file_that_names_it(monkeypatch, files, fields):
    seen.Host(files).put(monkeypatch.setattr)
    assert fields.items() <= distribution.read_os_release().items()


def test_only_the_suites_of_the_host_s_release_are_replaced(monkeypatch):
    apt = types.SimpleNamespace(stdout="\n".join(HOST))
    monkeypatch.setattr(distribution, "capture_output", lambda argv: apt)
    lines = distribution.format_sources_list(TRIXIE, None, DEBIAN).splitlines()
    assert [line.split()[-3:] for line in lines] == [
        ["http://mirror.example/debian", "trixie", "main"],
        ["http://mirror.example/debian", "trixie-updates", "main"],
        ["http://mirror.example/debian-security", "trixie-security", "main"],
    ]
    apt.stdout = HOST[4]
    with pytest.raises(UserError, match=r"name image\.mirror"):
        distribution.format_sources_list(TRIXIE, None, DEBIAN)
    [line] = distribution.format_sources_list(TRIXIE, "http://m.example/u", DEBIAN).splitlines()
    assert line.endswith("http://m.example/u trixie main")
