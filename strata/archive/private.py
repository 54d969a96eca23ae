"""Find private texts: secrets, addresses, and names of this machine, its user and folders.

Nothing is rewritten.  The archive is not written until each finding is gone, or allowed by name
(configuration: ``archive_allow``).  Source that git tracks is public already: in it only secrets
and folders of this machine are found.
"""

import contextlib
import ipaddress
import os
import pwd
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from strata.archive import secrets, wrappings
from strata.host import addresses
from strata.util.errors import UserError

SECRET = "a key, token or password"


class Rule(NamedTuple):
    """One kind of private text: each match of a pattern that passes a check.

    kind: a noun for messages.  check: whether a match is private; every one is by default.
    """

    kind: str
    pattern: re.Pattern[str]
    check: Callable[[str], bool] = bool


_NAME = r"[^/\\\s\"'<>:;,)]+"
# Folders that are somebody's home on some system.
_HOMES = Rule(
    "a home",
    re.compile(rf"(?<![\w.-])(?:/(?:home|Users)/{_NAME}|[A-Za-z]:\\+Users\\+{_NAME})"),
)
# Units of systemd, such as ssh@1.service, have the form of an address.
_UNITS = "service|socket|slice|scope|target|mount|timer"
_MAIL = Rule(
    "an e-mail address",
    re.compile(rf"(?<![\w.+-])[\w.+-]+@(?:[\w-]+\.)+(?!(?:{_UNITS})\b)[^\W\d_]{{2,}}(?![\w-])"),
)
_PAIR = "[0-9A-Fa-f]{2}"


def _is_card(text: str) -> bool:
    """Whether six pairs of digits are a network card's address: no zeros alone, and no date."""
    digits = text.replace("-", "").replace(":", "")
    return len(set(digits.lower())) > 1 and (":" in text or not digits.isdigit())


_CARD = Rule(
    "the address of a network card",
    re.compile(rf"(?<![\w:-])(?:{_PAIR}(?::{_PAIR}){{5}}|{_PAIR}(?:-{_PAIR}){{5}})(?![\w:-])"),
    _is_card,
)


class Finding(NamedTuple):
    """A private text: file, line (from 1), kind, and the text, of a secret its beginning only."""

    name: str
    line: int
    kind: str
    text: str

    @property
    def place(self) -> str:
        """File and line, by which it can be allowed."""
        return f"{self.name}:{self.line}"


def decode_text(content: bytes) -> str | None:
    """Return the text of a content; None for binary content."""
    text = wrappings.decode_text(content)
    return None if "\0" in text else text


def split_words(texts: Iterable[str]) -> set[str]:
    """Return the words of texts, in each form in which the name of a user or host could occur."""
    words: set[str] = set()
    for text in texts:
        words.update(re.findall(r"[A-Za-z0-9][A-Za-z0-9_.-]*[A-Za-z0-9]|[A-Za-z0-9]", text))
        words.update(re.findall(r"[A-Za-z0-9]+", text))
    return words


def _own_users() -> set[str]:
    """Return the names of the user."""
    users = {os.environ.get(key, "") for key in ("USER", "LOGNAME", "SUDO_USER")}
    with contextlib.suppress(KeyError):  # The system need not have a name for the user.
        users.add(pwd.getpwuid(os.getuid()).pw_name)
    return users


def _host_names(host: str) -> set[str]:
    """Return the names of a host, with and without its domain; an address is its only name."""
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return {host}
    return {host, host.split(".")[0]}


def _own_folders(project: str) -> set[str]:
    """Return the folders of this machine by which it, or its user, can be recognised."""
    paths = [project]
    paths += [os.environ.get(key, "") for key in ("HOME", "STRATA_HOME", "XDG_CACHE_HOME")]
    folders: set[str] = set()
    for path in filter(None, paths):
        folders |= {os.path.abspath(path), os.path.realpath(path)}
    # Every machine has these.
    return folders - {"/", "/root", "/home", "/tmp", "/var/cache", "/var/cache/strata"}


def _own_addresses() -> set[str]:
    """Return the machine's addresses in its networks; none where it cannot list them."""
    with contextlib.suppress(UserError):
        return addresses.physical_addresses()
    return set()


def _rules_for(kind: str, texts: Iterable[str], neighbours: str) -> list[Rule]:
    """Return the rule that finds any of some texts, where no character of a class is next to it.

    neighbours: the class, as in a pattern.  There is no rule where there are no texts.
    """
    longest_first = "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))
    if not longest_first:
        return []
    return [Rule(kind, re.compile(rf"(?<!{neighbours})(?:{longest_first})(?!{neighbours})"))]


class Scanner:
    """Finds what is private on this machine in files."""

    def __init__(
        self,
        project: str,
        public: set[str],
        allowed: Collection[str] = (),
        folders: Collection[str] = (),
        clients: Collection[str] = (),
    ) -> None:
        """Collect what is private here.

        project: its folder.  public: words of the project's own source; a user or host of that name
        is not found.  allowed: texts, or places as FILE:LINE, that may be published.
        folders: further ones of this machine.  clients: other machines, as ``user@host``.
        """
        users, hosts = _own_users(), _host_names(os.uname().nodename)
        for client in clients:
            user, _, host = client.rpartition("@")
            users.add(user)
            hosts |= _host_names(host)
        users -= {"", "root"} | public
        hosts -= {"", "localhost"} | public
        self.allowed = set(allowed)
        self._folders = _rules_for(
            "a folder of this machine", _own_folders(project) | set(folders), r"[\w.-]"
        )
        self._rules = [
            *self._folders,
            _HOMES,
            _MAIL,
            _CARD,
            *_rules_for("the name of a user", users, "[A-Za-z0-9]"),
            *_rules_for("the name of a machine", hosts, "[A-Za-z0-9]"),
            *_rules_for("an address of this machine", _own_addresses(), r"[\w.]"),
        ]

    def scan_file(self, name: str, content: bytes, public: bool = False) -> Iterator[Finding]:
        """Yield what of a file is private or cannot be looked through, and is not allowed.

        public: whether the file is source that git tracks.
        """
        seen: set[Finding] = set()
        for part in wrappings.unwrap_file(name, content):
            for finding, text in self._scan_part(part, public):
                names = {finding.place, finding.name, name, text}
                if finding not in seen and not names & self.allowed:
                    seen.add(finding)
                    yield finding

    def _scan_part(
        self, part: wrappings.Part, public: bool, depth: int = 2
    ) -> Iterator[tuple[Finding, str]]:
        """Yield findings in a part of a file, each with its whole text, which may be allowed.

        depth: how often a text that is decoded may hold packed data with such a text.
        """
        name = part.name
        if part.trouble:
            yield Finding(name, 1, "not looked through", part.trouble), ""
        if secrets.KEY_FILES.search(name):
            yield Finding(name, 1, "a file of keys, by its name", name), ""
        rules = self._folders if public else self._rules
        known: set[str] = set()
        # The name of a file may be private as its text is.
        for reading in (wrappings.Reading(name), *wrappings.read_text(part.content)):
            try:
                found = secrets.find_secrets(reading.text, public or reading.cut)
            except TimeoutError:
                reason = "the search for secrets in it took too long"
                yield Finding(name, 1, "not looked through", reason), ""
                found = set()
            for secret in found:
                if reading.cut and any(
                    secret.text in text or text in secret.text for text in known
                ):
                    continue
                known.add(secret.text)
                yield Finding(name, secret.line, SECRET, secret.text[:4] + "…"), secret.text
            if reading.decoded and depth:
                for inner in wrappings.unwrap_text(name, reading.text):
                    yield from self._scan_part(inner, public, depth - 1)
            for rule in () if reading.cut or part.noise else rules:
                for match in rule.pattern.finditer(reading.text):
                    if rule.check(match[0]):
                        line = reading.text.count("\n", 0, match.start()) + 1
                        yield Finding(name, line, rule.kind, match[0]), match[0]
