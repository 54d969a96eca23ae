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
    """A rule that finds one kind of private text: each match of a pattern that passes a check.

    kind: a noun for messages.
    check: returns whether a matched text is private; by default each one is.
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
    """Return whether six pairs of hexadecimal digits are a network interface's (MAC) address.

    Six equal pairs such as zeros are none, nor are decimal digits between hyphens, as in a date.
    """
    digits = text.replace("-", "").replace(":", "")
    return len(set(digits.lower())) > 1 and (":" in text or not digits.isdigit())


_CARD = Rule(
    "the address of a network card",
    re.compile(rf"(?<![\w:-])(?:{_PAIR}(?::{_PAIR}){{5}}|{_PAIR}(?:-{_PAIR}){{5}})(?![\w:-])"),
    _is_card,
)


class Finding(NamedTuple):
    """A private text in a file.

    name: path of the file.  line: from 1.  kind: of the rule that found it.
    text: the private text; of a secret only its first four characters, as messages print it.
    """

    name: str
    line: int
    kind: str
    text: str

    @property
    def place(self) -> str:
        """The place as FILE:LINE, the form in which the option archive_allow lists it."""
        return f"{self.name}:{self.line}"


def decode_text(content: bytes) -> str | None:
    """Return bytes decoded to text; None for binary content, which has NUL characters."""
    text = wrappings.decode_text(content)
    return None if "\0" in text else text


def split_words(texts: Iterable[str]) -> set[str]:
    """Return the words of texts, in each form in which the name of a user or host could occur.

    A word with dots, hyphens or underscores is returned whole and in its parts.
    """
    words: set[str] = set()
    for text in texts:
        words.update(re.findall(r"[A-Za-z0-9][A-Za-z0-9_.-]*[A-Za-z0-9]|[A-Za-z0-9]", text))
        words.update(re.findall(r"[A-Za-z0-9]+", text))
    return words


def _own_users() -> set[str]:
    """Return the names of the user who runs this process, and of who called sudo; may hold ""."""
    users = {os.environ.get(key, "") for key in ("USER", "LOGNAME", "SUDO_USER")}
    with contextlib.suppress(KeyError):  # The system need not have a name for the user.
        users.add(pwd.getpwuid(os.getuid()).pw_name)
    return users


def _host_names(host: str) -> set[str]:
    """Return a host's name with and without its domain; of an IP address, the address alone."""
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return {host}
    return {host, host.split(".")[0]}


def _own_folders(project: str) -> set[str]:
    """Return the folders, also with links resolved, that identify this machine or its user."""
    paths = [project]
    paths += [os.environ.get(key, "") for key in ("HOME", "STRATA_HOME", "XDG_CACHE_HOME")]
    folders: set[str] = set()
    for path in filter(None, paths):
        folders |= {os.path.abspath(path), os.path.realpath(path)}
    # Every machine has these.
    return folders - {"/", "/root", "/home", "/tmp", "/var/cache", "/var/cache/strata"}


def _own_addresses() -> set[str]:
    """Return the addresses of the machine's physical network interfaces; none if unknown."""
    with contextlib.suppress(UserError):
        return addresses.physical_addresses()
    return set()


def _rules_for(kind: str, texts: Iterable[str], neighbours: str) -> list[Rule]:
    """Return one rule that finds any of the texts as a whole word; none if there are no texts.

    neighbours: character class of a regular expression; a text next to such a character is part of
    a longer word, and not found.
    """
    longest_first = "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))
    if not longest_first:
        return []
    return [Rule(kind, re.compile(rf"(?<!{neighbours})(?:{longest_first})(?!{neighbours})"))]


class Scanner:
    """A scanner that finds private texts of this machine, its user and its networks in files."""

    def __init__(
        self,
        project: str,
        public: set[str],
        allowed: Collection[str] = (),
        folders: Collection[str] = (),
        clients: Collection[str] = (),
    ) -> None:
        """Collect the private names, folders and addresses of this machine as rules.

        project: the project's folder.
        public: words of the project's public source; a user or host of such a name is not found.
        allowed: texts, files, or places as FILE:LINE, that may be published.
        folders: further folders that count as private.
        clients: other machines, as ``user@host`` or ``host``, whose names count as private.
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
        """Yield a finding, once, for each text of a file that is private and not allowed.

        Yields one also for each part of the file that cannot be searched.
        name: path of the file, which is searched too.
        public: whether the file is source that git tracks: in it only secrets and folders of this
        machine are found.
        """
        yielded: set[Finding] = set()
        for part in wrappings.unwrap_file(name, content):
            for finding, text in self._scan_part(part, public):
                names = {finding.place, finding.name, name, text}
                if finding not in yielded and not names & self.allowed:
                    yielded.add(finding)
                    yield finding

    def _scan_part(
        self, part: wrappings.Part, public: bool, depth: int = 2
    ) -> Iterator[tuple[Finding, str]]:
        """Yield each finding in a part of a file, with the whole text, by which it may be allowed.

        public: whether the file is source that git tracks.
        depth: how many levels of compressed data within decoded texts are searched, too.
        """
        name = part.name
        if part.trouble:
            yield Finding(name, 1, "not looked through", part.trouble), ""
        if secrets.KEY_FILES.search(name):
            yield Finding(name, 1, "a file of keys, by its name", name), ""
        rules = self._folders if public else self._rules
        yielded_secrets: set[str] = set()
        # The name of a file may be private as its text is.
        for reading in (wrappings.Reading(name), *wrappings.read_text(part.content)):
            try:
                secrets_in_text = secrets.find_secrets(reading.text, public or reading.cut)
            except TimeoutError:
                reason = "the search for secrets in it took too long"
                yield Finding(name, 1, "not looked through", reason), ""
                secrets_in_text = set()
            for secret in secrets_in_text:
                if reading.cut and any(
                    secret.text in text or text in secret.text for text in yielded_secrets
                ):
                    continue
                yielded_secrets.add(secret.text)
                yield Finding(name, secret.line, SECRET, secret.text[:4] + "…"), secret.text
            if reading.decoded and depth:
                for inner in wrappings.unwrap_text(name, reading.text):
                    yield from self._scan_part(inner, public, depth - 1)
            for rule in () if reading.cut or part.noise else rules:
                for match in rule.pattern.finditer(reading.text):
                    if rule.check(match[0]):
                        line = reading.text.count("\n", 0, match.start()) + 1
                        yield Finding(name, line, rule.kind, match[0]), match[0]
