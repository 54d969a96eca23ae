"""What must not leave the machine: secrets, addresses, and the names of its user, of itself and of its folders.

Nothing is rewritten.  What is found, and what cannot be looked through, is told with file and
line, and the archive is not written until it is gone, or allowed by name (config:
``archive_allow``).  Of the source that git tracks, which is public already, secrets and folders of
this machine are found alone.
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
    """What is private: all that a pattern matches.

    check: whether what matched is really what is meant.
    """

    what: str
    pattern: re.Pattern[str]
    check: Callable[[str], bool] = bool


_PATH_END = r"[^/\\\s\"'<>:;,)]+"
# What stands for somebody's home on systems of all kinds.
_HOMES = Rule(
    "a home",
    re.compile(rf"(?<![\w.-])(?:/(?:home|Users)/{_PATH_END}|[A-Za-z]:\\+Users\\+{_PATH_END})"),
)
# A unit of systemd is written as an address of mail is.
_MAIL = Rule(
    "an e-mail address",
    re.compile(
        r"(?<![\w.+-])[\w.+-]+@(?:[\w-]+\.)+(?!(?:service|socket|slice|scope|target|mount|timer)\b)[^\W\d_]{2,}(?![\w-])"
    ),
)
_PAIR = "[0-9A-Fa-f]{2}"
_CARD = Rule(
    "the address of a network card",
    re.compile(rf"(?<![\w:-])(?:{_PAIR}(?::{_PAIR}){{5}}|{_PAIR}(?:-{_PAIR}){{5}})(?![\w:-])"),
    lambda text: (
        len(set(text.lower()) - {":", "-"}) > 1
        and (":" in text or not text.replace("-", "").isdigit())
    ),
)


class Found(NamedTuple):
    """Something private: the file, its line (from 1), what it is, and the text (of a secret its beginning alone)."""

    name: str
    line: int
    what: str
    text: str

    @property
    def place(self) -> str:
        """File and line, by which it can be allowed."""
        return f"{self.name}:{self.line}"


def said(content: bytes) -> str | None:
    """The text of a content; None for binary content."""
    text = wrappings.text_of(content)
    return None if "\0" in text else text


def _names() -> tuple[set[str], set[str]]:
    """The names of the user, and those of the host."""
    users = {os.environ.get(key, "") for key in ("USER", "LOGNAME", "SUDO_USER")}
    with contextlib.suppress(KeyError):  # The system need not have a name for the user.
        users.add(pwd.getpwuid(os.getuid()).pw_name)
    host = os.uname().nodename
    return users - {"", "root"}, {host, host.split(".")[0]} - {"", "localhost"}


def _folders(project: str) -> set[str]:
    found = {os.path.abspath(project), os.path.realpath(project)}
    for key in ("HOME", "STRATA_HOME", "XDG_CACHE_HOME"):
        if os.environ.get(key):
            found |= {os.path.abspath(os.environ[key]), os.path.realpath(os.environ[key])}
    # What every machine has says nothing about this one.
    return found - {"/", "/root", "/home", "/tmp", "/var/cache", "/var/cache/strata"}


def _any_of(what: str, texts: Iterable[str], near: str) -> list[Rule]:
    """The rule for any of some texts where no character of the class `near` is beside it."""
    longest_first = "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))
    return (
        [Rule(what, re.compile(rf"(?<!{near})(?:{longest_first})(?!{near})"))]
        if longest_first
        else []
    )


def _is_address(text: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(text))
    return False


def _own_addresses() -> set[str]:
    """The machine's addresses in its networks; none where they can't be asked for."""
    with contextlib.suppress(UserError):
        return addresses.own()
    return set()


class Private:
    """What is private on this machine.

    project: folder of the project.  public: words that the project's own source uses; a user or host that is called
    like one of them gives nothing away by it.  allowed: texts, or places as FILE:LINE, that may be published.
    folders: further ones of this machine.  others: machines and users besides this one, as ``user@host``.
    """

    def __init__(
        self,
        project: str,
        public: set[str],
        allowed: Collection[str] = (),
        folders: Collection[str] = (),
        others: Collection[str] = (),
    ) -> None:
        users, hosts = _names()
        for other in others:
            user, _, host = other.rpartition("@")
            users |= {user} - {"", "root"}
            hosts |= {host, host.split(".")[0] if not _is_address(host) else host} - {
                "",
                "localhost",
            }
        self.allowed = set(allowed)
        self._public = _any_of(
            "a folder of this machine", _folders(project) | set(folders), r"[\w.-]"
        )
        self._all = [
            *self._public,
            _HOMES,
            _MAIL,
            _CARD,
            *_any_of("the name of a user", users - public, "[A-Za-z0-9]"),
            *_any_of("the name of a machine", hosts - public, "[A-Za-z0-9]"),
            *_any_of("an address of this machine", _own_addresses(), r"[\w.]"),
        ]

    def look(self, name: str, content: bytes, public: bool = False) -> Iterator[Found]:
        """What of a file is private or can't be looked through, and is not allowed.

        public: whether it is source that git tracks.
        """
        seen = {Found(name, 0, "", "")}
        for part in wrappings.parts(name, content):
            for found, text in self._in(part, public):
                if found not in seen and not {found.place, found.name, name, text} & self.allowed:
                    seen.add(found)
                    yield found

    def _in(self, part: wrappings.Part, public: bool) -> Iterator[tuple[Found, str]]:
        """What is private in a part of a file, with its whole text."""
        name = part.name
        if part.trouble:
            yield Found(name, 1, "not looked through", part.trouble), ""
        if secrets.KEY_FILES.search(name):
            yield Found(name, 1, "a file of keys, by its name", name), ""
        rules = self._public if public else self._all
        known: set[str] = set()
        # A name may tell as much as a text.
        for reading in (wrappings.Reading(name, cut=False), *wrappings.readings(part.content)):
            try:
                for secret in secrets.find(reading.text, public or reading.cut):
                    if reading.cut and any(
                        secret.text in one or one in secret.text for one in known
                    ):
                        continue
                    known.add(secret.text)
                    yield Found(name, secret.line, SECRET, secret.text[:4] + "…"), secret.text
            except TimeoutError:
                yield (
                    Found(
                        name, 1, "not looked through", "the search for secrets in it took too long"
                    ),
                    "",
                )
            for rule in () if reading.cut or part.noise else rules:
                for match in rule.pattern.finditer(reading.text):
                    if rule.check(match[0]):
                        line = reading.text.count("\n", 0, match.start()) + 1
                        yield Found(name, line, rule.what, match[0]), match[0]


def words_of(texts: Iterable[str]) -> set[str]:
    """The words of texts, as user and host names are matched."""
    found: set[str] = set()
    for text in texts:
        found.update(re.findall(r"[A-Za-z0-9][A-Za-z0-9_.-]*[A-Za-z0-9]|[A-Za-z0-9]", text))
        found.update(re.findall(r"[A-Za-z0-9]+", text))
    return found
