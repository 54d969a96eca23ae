"""What must not leave the machine: secrets, addresses, and the names of its user, of itself and of its folders.

Everything private is replaced by one of :data:`MARKS`, the same way every time.  What is found:

- keys, tokens and passwords (:mod:`strata.archive.secrets`);
- the project's folder, the user's home and the image cache, wherever they stand;
- the user's and the host's name, as words, except where the project's own public words hold them; those of the
  client's machine too;
- e-mail addresses, those of network cards, and the machine's own in its network;
- in records and plans: the folders of files that parameters name, and paths of a machine's own places.

What can't be told apart is listed for whoever publishes (:attr:`Private.doubts`): an address in a log may be data.
"""

import base64
import contextlib
import functools
import ipaddress
import json
import os
import pwd
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from strata.archive import secrets
from strata.archive.secrets import Look, Rule, replaced
from strata.base.errors import UserError
from strata.host import addresses

MARKS = {
    secrets.SECRET: "a key, token or password",
    "REDACTED-PATH": "a folder of the machine",
    "REDACTED-USER": "the name of its user",
    "REDACTED-HOST": "the name of the machine",
    "REDACTED-ADDRESS": "an e-mail address, or one of the machine's in a network",
}
_HOMES = Rule(re.compile(r"(?<![\w.-])/(?:home|Users)/[^/\s\"'<>:;,)\\]+"), "REDACTED-PATH", ("/home/", "/users/"))
_PLACES = Rule(
    re.compile(r"(?<![\w.-])/(?:root|tmp|var/tmp|mnt|media|srv|run/user)(?![\w.-])(?:/[^\s\"'<>:;,)\\]*)?"),
    "REDACTED-PATH",
    ("/",),
)
# A unit of systemd is written as an address of mail is.
_MAIL = Rule(
    re.compile(
        r"(?<![\w.+-])[\w.+-]+@(?:[A-Za-z0-9-]+\.)+"
        r"(?!(?:service|socket|slice|scope|target|mount|timer)\b)[A-Za-z]{2,}(?![\w-])"
    ),
    "REDACTED-ADDRESS",
    ("@",),
)
_PAIR = "[0-9A-Fa-f]{2}"
_CARD = Rule(
    re.compile(rf"(?<![\w:-])(?:{_PAIR}(?::{_PAIR}){{5}}|{_PAIR}(?:-{_PAIR}){{5}})(?![\w:-])"),
    "REDACTED-ADDRESS",
    (":", "-"),
    lambda text: len(set(text.lower()) - {":", "-"}) > 1 and (":" in text or not text.replace("-", "").isdigit()),
)
# What is quickly looked for, and what it may be the middle of.
_OF_CARD = re.compile(rf":{_PAIR}:{_PAIR}:|-{_PAIR}-{_PAIR}-")
_OF_VERSION_4 = re.compile(r"\.\d{1,3}\.\d{1,3}\.\d")
_OF_VERSION_6 = re.compile(":(?::|[0-9A-Fa-f]{1,4}:[0-9A-Fa-f]{1,4}:)")
_VERSION_4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\.?\w)")
_VERSION_6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])")
# The drawings of a page of ours (analysis/paper/drawings.R).
_DRAWINGS = re.compile(r'(?<=<script type="text/plain" id="drawings">)([A-Za-z0-9+/\s]+=*)(?=</script>)')


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


def _any_of(texts: Iterable[str], mark: str, near: str) -> list[Rule]:
    """The rule for any of some texts where no character of the class `near` is beside it."""
    longest_first = sorted(texts, key=len, reverse=True)
    pattern = rf"(?<!{near})(?:{'|'.join(map(re.escape, longest_first))})(?!{near})"
    return [Rule(re.compile(pattern), mark, tuple(map(str.lower, longest_first)))] if longest_first else []


def _is_address(text: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(text))
    return False


def _own_addresses() -> set[str]:
    """The machine's addresses in its networks; none where they can't be asked for."""
    with contextlib.suppress(UserError):
        return addresses.own()
    return set()


def _counted(before: str, after: str) -> tuple[str, Counter]:
    """The text, and how many marks of each kind it has more."""
    return after, +Counter({mark: after.count(mark) - before.count(mark) for mark in MARKS})


def is_text(content: bytes) -> bool:
    """Whether bytes are UTF-8 text without NUL."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


def unpacked(text: str) -> str:
    """A page with its drawings in the place of the text into which they are packed; any other text as it is."""
    return _DRAWINGS.sub(lambda found: zlib.decompress(base64.b64decode(found[1])).decode(), text)


class Private:
    """What is private on this machine, and its replacement in texts.

    project: folder of the project.  public: words that the project's own source uses; a user or host that is
    called like one of them gives nothing away by it, and replacing the word would break what it means.
    client: the machine from which load comes, as ``user@host``.  nodes: the names of those on which cells were
    measured; where there are several each has a mark with a number, in the order of the names.

    doubts: what was left and may be private, and the file (`place`) that was looked at when it was first met.
    """

    def __init__(self, project: str, public: set[str], client: str = "", nodes: Collection[str] = ()) -> None:
        users, hosts = _names()
        user, _, host = client.rpartition("@")
        users |= {user} - {"", "root"}
        hosts |= {host, host.split(".")[0] if not _is_address(host) else host} - {"", "localhost"}
        ordered = sorted(nodes) if len(nodes) > 1 else []
        self._nodes = {name: f"REDACTED-HOST-{at:0{len(str(len(ordered)))}}" for at, name in enumerate(ordered, 1)}
        hosts -= set(self._nodes)
        self._folders = _any_of(_folders(project), "REDACTED-PATH", r"[\w.-]")
        self.kept = sorted((users | hosts) & public)
        self._of_machine = [
            *_any_of(users - public, "REDACTED-USER", "[A-Za-z0-9]"),
            *(rule for name in self._nodes for rule in _any_of({name} - public, self._nodes[name], "[A-Za-z0-9-]")),
            *_any_of(hosts - public, "REDACTED-HOST", "[A-Za-z0-9]"),
        ]
        self._addresses = _own_addresses()
        self.place = ""
        self.doubts: dict[str, str] = {}
        # The records of all cells say the same of the machine.
        self._of_string = functools.lru_cache(4096)(
            lambda text, inside: self.of_log(text) if inside else self.of_result(text)
        )

    def of_source(self, text: str) -> tuple[str, Counter]:
        """A text of the source, which is public but for secrets and this machine's folders.

        Gives the text, and how often each mark was put in.
        """
        return _counted(text, replaced(text, Look(text), [*secrets.RULES, *self._folders]))

    def of_own_source(self, text: str) -> tuple[str, Counter]:
        """A file of the source that is not public yet.  What looks like a password may be code, and is listed."""
        look = Look(text)
        left = replaced(text, look, [*secrets.RULES, *self._folders, *self._of_person(text)])
        if look.may_hold(secrets.PASSWORD):
            for match in secrets.PASSWORD.pattern.finditer(left):
                if secrets.PASSWORD.check(match["it"]) and "REDACTED-" not in match[0]:
                    self.doubts.setdefault(match[0], self.place)
        self._doubt(left)
        return _counted(text, left)

    def of_log(self, text: str) -> tuple[str, Counter]:
        """A raw log, of which nothing is touched that is not private.  Like :meth:`of_source`."""
        return self._of_log(text, [])

    def of_result(self, text: str) -> tuple[str, Counter]:
        """A text about the machine: paths of its own places go too.  Like :meth:`of_source`."""
        return self._of_log(text, [_PLACES])

    def _of_log(self, text: str, more: list[Rule]) -> tuple[str, Counter]:
        look = Look(text)
        rules = [*secrets.RULES, secrets.PASSWORD, *self._folders, *self._of_person(text), *more]
        left = replaced(text, look, rules)
        self._doubt(left)
        return _counted(text, left)

    def _of_person(self, text: str) -> list[Rule]:
        cards = [_CARD] if _OF_CARD.search(text) else []
        there = [address for address in self._addresses if address in text]
        return [_HOMES, _MAIL, *self._of_machine, *cards, *_any_of(there, "REDACTED-ADDRESS", r"[\w.]")]

    def _doubt(self, text: str) -> None:
        """Note the addresses in networks that are left: they may be another machine's, or a number of the data."""
        found = _VERSION_4.findall(text) if _OF_VERSION_4.search(text) else []
        found += _VERSION_6.findall(text) if _OF_VERSION_6.search(text) else []
        for address in filter(_is_address, found):
            about = ipaddress.ip_address(address)
            if not (about.is_loopback or about.is_unspecified or about.is_multicast or about.is_reserved):
                self.doubts.setdefault(address, self.place)

    def of_object(self, value: Any, files: set[str], inside: bool = False) -> tuple[Any, Counter]:
        """A JSON value, string by string; keys stay, and so do names that are identifiers of the experiment.

        files: keys of parameters whose values are files of the host, of which only the names stay.  Commands
        (`inside`) are of the system under test, whose own places are not private.
        """
        if isinstance(value, str):
            return self._of_string(value, inside)
        found: Counter[str] = Counter()
        if isinstance(value, list):
            items = []
            for item in value:
                new, more = self.of_object(item, files, inside)
                items.append(new)
                found += more
            return items, found
        if isinstance(value, dict):
            pairs = {}
            for key, item in value.items():
                if key in ("environment", "workload"):
                    pairs[key] = item
                elif key == "node" and isinstance(item, dict) and item.get("name") in self._nodes:
                    pairs[key] = {**item, "name": self._nodes[item["name"]]}
                    found["REDACTED-HOST"] += 1
                elif key in files and isinstance(item, str) and os.path.isabs(item):
                    pairs[key] = f"REDACTED-PATH/{os.path.basename(item)}"
                    found["REDACTED-PATH"] += 1
                else:
                    pairs[key], more = self.of_object(item, files, inside or key in ("commands", "cell", "steps"))
                    found += more
            return pairs, found
        return value, found

    def of_json(self, text: str, files: set[str]) -> tuple[str, Counter]:
        """A JSON text as this project writes it; text that needs no change stays the same bytes.

        Raises ValueError where it is not JSON.
        """
        value, found = self.of_object(json.loads(text), files)
        return (json.dumps(value, indent=1, ensure_ascii=False) + "\n", found) if found else (text, found)


def words_of(texts: Iterable[str]) -> set[str]:
    """The words of texts, as user and host names are matched."""
    found: set[str] = set()
    for text in texts:
        found.update(re.findall(r"[A-Za-z0-9][A-Za-z0-9_.-]*[A-Za-z0-9]|[A-Za-z0-9]", text))
        found.update(re.findall(r"[A-Za-z0-9]+", text))
    return found
