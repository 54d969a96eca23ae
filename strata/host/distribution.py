"""Which distribution the image is made of, and from which of the host's package sources."""

import os
import re

from strata.base.errors import UserError

DEFAULT_RELEASE = {"debian": "trixie", "ubuntu": "noble"}
KEYRINGS = {
    "debian": "/usr/share/keyrings/debian-archive-keyring.gpg",
    "ubuntu": "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
}
COMPONENTS = {"debian": "main", "ubuntu": "main universe"}


def os_release(path: str = "/etc/os-release") -> dict[str, str]:
    """The fields of an os-release file; an empty mapping where there is none."""
    fields = {}
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                key, equals, value = line.strip().partition("=")
                if equals:
                    fields[key] = value.strip("\"'")
    except OSError:
        pass
    return fields


def choose(image: dict, host: dict[str, str]) -> dict[str, str]:
    """``{distribution, release}`` for the config's `image` on a host with these os-release fields.

    ``host`` gives Debian 13 on Debian and the host's own release on Ubuntu.
    """
    named = image.get("distribution", "host")
    own = host.get("ID", "")
    distribution = own if named == "host" else named
    if distribution not in DEFAULT_RELEASE:
        raise UserError(
            f"config.yaml: image.distribution: is 'host', which is {own or 'unknown'} here; "
            "name debian or ubuntu, and a mirror"
        )
    if distribution != own and "mirror" not in image:
        raise UserError(
            f"config.yaml: image.mirror: missing; this host is {own or 'unknown'} and has no package "
            f"sources for {distribution}: give the address of an archive"
        )
    release = image.get("release")
    if release is None and distribution == "ubuntu" == own:
        release = host.get("VERSION_CODENAME")
    return {"distribution": distribution, "release": release or DEFAULT_RELEASE[distribution]}


def _stanzas(text: str) -> list[dict[str, str]]:
    """Stanzas of a deb822 sources file."""
    found = []
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.splitlines() if line.strip() and not line.startswith("#")]
        fields = dict(line.split(":", 1) for line in lines if ":" in line and not line[0].isspace())
        found.append({key.strip().lower(): value.strip() for key, value in fields.items()})
    return found


def host_sources(folder: str = "/etc/apt") -> list[tuple[str, str, str]]:
    """(address, suite, keyring or empty) of every binary package source of the host."""
    found = []
    parts = f"{folder}/sources.list.d"
    names = sorted(os.listdir(parts)) if os.path.isdir(parts) else []
    for path in [f"{folder}/sources.list", *(f"{parts}/{name}" for name in names)]:
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except OSError:
            continue
        if path.endswith(".sources"):
            for stanza in _stanzas(text):
                if "deb" in stanza.get("types", "").split() and stanza.get("enabled", "yes") != "no":
                    signed = stanza.get("signed-by", "")
                    keyring = signed if signed.startswith("/") else ""
                    for address in stanza.get("uris", "").split():
                        found += [(address, suite, keyring) for suite in stanza.get("suites", "").split()]
        elif path.endswith(".list"):
            for match in re.finditer(r"^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)", text, re.MULTILINE):
                option = re.search(r"signed-by=(/\S+)", match[1] or "")
                found.append((match[2], match[3], option[1] if option else ""))
    return found


def sources(chosen: dict[str, str], mirror: str | None, host: dict[str, str], folder: str = "/etc/apt") -> str:
    """Text of a sources.list for the chosen release, from the mirror or the host's own sources.

    The host's suites (its release, -updates and -security) are replaced by those of the chosen one.
    """
    distribution, release = chosen["distribution"], chosen["release"]
    keyring = KEYRINGS[distribution]
    option = f"[signed-by={keyring}] " if os.path.exists(keyring) else ""
    if mirror:
        return f"deb {option}{mirror} {release} {COMPONENTS[distribution]}\n"
    codename = host.get("VERSION_CODENAME", "")
    lines = []
    for address, suite, signed in host_sources(folder):
        base, dash, pocket = suite.partition("-")
        if base == codename and pocket in ("", "updates", "security"):
            own = f"[signed-by={signed}] " if signed else option
            lines.append(f"deb {own}{address} {release}{dash}{pocket} {COMPONENTS[distribution]}")
    if not any(f" {release} " in line for line in lines):
        raise UserError(
            f"{folder}: no package source of {codename or 'this release'} was found to take {release} from; "
            "name image.mirror in config.yaml"
        )
    return "\n".join(dict.fromkeys(lines)) + "\n"
