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
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from strata.archive import extraction, secrets
from strata.host import addresses
from strata.util.errors import UserError

SECRET = "a key, token or password"
_UNSEARCHED = "not looked through"


class Rule(NamedTuple):
    """A rule that finds one kind of private text: each match of its pattern is one.

    kind: a noun for messages.
    """

    kind: str
    pattern: re.Pattern[str]


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
# A network interface's (MAC) address: six pairs of digits, not all equal, for example
# zeros, and which are not decimal digits between hyphens, as in a date.
_INTERFACE_ADDRESS = Rule(
    "the address of a network card",
    re.compile(
        r"(?<![\w:-])(?!(?P<digit>[0-9a-f])(?:[:-]?(?P=digit)){11})(?![0-9-]{17})"
        r"[0-9a-f]{2}(?P<separator>[:-])[0-9a-f]{2}(?:(?P=separator)[0-9a-f]{2}){4}(?![\w:-])",
        re.IGNORECASE,
    ),
)


class Finding(NamedTuple):
    """A private text in a file.

    name: path of the file.  line: from 1.  kind: the kind of the rule that found it.
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


def collect_public_words(public_strings: Iterable[str]) -> set[str]:
    """Return the words of public strings, and the parts of words at dots, hyphens and underscores.

    public_strings: the contents of files that git tracks, and names in the plan.
    A word of two or more characters begins and ends with a letter or digit of ASCII: "my-host.org"
    gives itself, "my", "host" and "org".
    The name of a user or host may occur in each of these forms.  :class:`Scanner` does not look for
    names that are public words.
    """
    words: set[str] = set()
    for string in public_strings:
        words.update(re.findall(r"[A-Za-z0-9][A-Za-z0-9_.-]*[A-Za-z0-9]", string))
        words.update(re.findall(r"[A-Za-z0-9]+", string))
    return words


def _list_user_names() -> set[str]:
    """Return the names of the user who runs this process, and of the user who called sudo.

    The result may contain the empty string, which :class:`Scanner` removes.
    """
    users = {os.environ.get(key, "") for key in ("USER", "LOGNAME", "SUDO_USER")}
    # A user of a container may have a number without a name.
    with contextlib.suppress(KeyError):
        users.add(pwd.getpwuid(os.getuid()).pw_name)
    return users


def _list_host_names(host: str) -> set[str]:
    """Return a host's name with and without its domain; for an IP address, only the address.

    host: a name such as ``node1.example.org``, or an IP address.
    """
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return {host, host.split(".")[0]}
    return {host}


def _list_private_folders(project: str) -> set[str]:
    """Return the absolute paths of the folders that identify this machine or its user.

    project: the project's folder, which is one of them.
    The others are in the environment variables HOME, STRATA_HOME and XDG_CACHE_HOME.  A folder
    whose path has symbolic links is in the result with and without them.
    """
    paths = [project]
    for key in ("HOME", "STRATA_HOME", "XDG_CACHE_HOME"):
        if path := os.environ.get(key):
            paths.append(path)
    folders: set[str] = set()
    for path in paths:
        folders |= {os.path.abspath(path), os.path.realpath(path)}
    # These folders are on every machine.
    return folders - {"/", "/root", "/home", "/tmp", "/var/cache", "/var/cache/strata"}


def _list_ip_addresses() -> set[str]:
    """Return the IP addresses of the machine's physical network interfaces.

    Returns an empty set if they cannot be listed, for example without the program ip.
    """
    with contextlib.suppress(UserError):
        return addresses.list_physical_addresses()
    return set()


def _build_rules(kind: str, strings: Iterable[str], word_characters: str) -> list[Rule]:
    """Return a list with one rule, which finds any of the strings as a whole word.

    kind: a noun for messages.
    strings: the private strings, none of which is empty.
    word_characters: letters of a word, as they stand between the brackets of a regular expression,
    such as ``A-Za-z0-9``.  A string next to such a character is part of a longer word, and is not
    found.
    Returns an empty list if there are no strings.
    """
    # A regular expression takes the first alternative that fits: the longest must come first.
    longest_first = "|".join(map(re.escape, sorted(strings, key=len, reverse=True)))
    if not longest_first:
        return []
    not_before = f"(?<![{word_characters}])"
    not_after = f"(?![{word_characters}])"
    return [Rule(kind, re.compile(f"{not_before}(?:{longest_first}){not_after}"))]


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

        Reads the process's environment, the host's name and the network interfaces, once.
        project: the project's folder.
        public: words of the project's public source, as :func:`collect_public_words` returns them;
        a user or host of such a name is not found.
        allowed: strings, files, or places as FILE:LINE, that may be published.
        folders: the absolute paths of further folders that count as private.
        clients: other machines, as ``user@host`` or ``host``, whose names count as private.
        """
        users = _list_user_names()
        hosts = _list_host_names(os.uname().nodename)
        for client in clients:
            user, _, host = client.rpartition("@")
            users.add(user)
            hosts |= _list_host_names(host)
        users -= {"", "root"} | public
        hosts -= {"", "localhost"} | public
        private_folders = _list_private_folders(project) | set(folders)
        self._allowed = set(allowed)
        self._folder_rules = _build_rules("a folder of this machine", private_folders, r"\w.-")
        self._rules = [
            *self._folder_rules,
            _HOMES,
            _MAIL,
            _INTERFACE_ADDRESS,
            *_build_rules("the name of a user", users, "A-Za-z0-9"),
            *_build_rules("the name of a machine", hosts, "A-Za-z0-9"),
            *_build_rules("an address of this machine", _list_ip_addresses(), r"\w."),
        ]

    def scan_file(self, name: str, content: bytes, public: bool = False) -> Iterator[Finding]:
        """Yield a finding for each private string in a file that is not allowed, without repeats.

        name: the path of the file, which is also searched.
        content: the file's bytes.  Archives and compressed data in it are unpacked.
        public: whether the file is source that git tracks.  Then only secrets and folders of this
        machine are private.
        A part of the file that cannot be searched gives a finding, too, unless it is allowed.
        """
        earlier_findings: set[Finding] = set()
        for part in extraction.unwrap_file(name, content):
            for finding, private_string in self._scan_part(part, public):
                # archive_allow may list any of these.
                allowed_forms = {finding.place, finding.name, name, private_string}
                if finding not in earlier_findings and not allowed_forms & self._allowed:
                    earlier_findings.add(finding)
                    yield finding

    def _scan_part(
        self, part: extraction.Part, public: bool, depth: int = 2
    ) -> Iterator[tuple[Finding, str]]:
        """Yield (finding, private string) for each finding in a part of a file.

        part: the part; it may be the whole file.
        public: whether the file is source that git tracks.
        depth: how many levels of compressed data within decoded strings are searched, too; it
        bounds the work.
        A finding shows only the beginning of a secret.  The private string is the whole secret, by
        which the user may allow the finding; it is "" if the finding is about a part that cannot be
        searched, or about a file's name.
        """
        name = part.name
        if part.problem:
            yield Finding(name, 1, _UNSEARCHED, part.problem), ""
        if secrets.KEY_FILES.search(name):
            yield Finding(name, 1, "a file of keys, by its name", name), ""
        secrets_so_far: set[str] = set()
        # The name of a file may be private, too.
        for reading in (extraction.Reading(name), *extraction.list_readings(part.content)):
            # A guess may join letters to a password that nobody wrote: no doubtful rules then.
            try:
                secrets_in_text = secrets.find_secrets(reading.text, public or reading.is_guess)
            except TimeoutError:
                reason = "the search for secrets in it took too long"
                yield Finding(name, 1, _UNSEARCHED, reason), ""
                secrets_in_text = set()
            for secret in secrets_in_text:
                if reading.is_guess and _repeats_any(secret.text, secrets_so_far):
                    continue
                secrets_so_far.add(secret.text)
                yield Finding(name, secret.line, SECRET, secret.text[:4] + "…"), secret.text
            if reading.is_decoded and depth:
                for inner_part in extraction.unwrap_text(name, reading.text):
                    yield from self._scan_part(inner_part, public, depth - 1)
            if not reading.is_guess and not part.is_noise:
                yield from self._find_matches(name, reading.text, public)

    def _find_matches(self, name: str, text: str, public: bool) -> Iterator[tuple[Finding, str]]:
        """Yield (finding, private string) for each match of a rule in a file's text.

        name: the file's path in the archive.
        text: the text of the file.
        public: whether the file is source that git tracks.  Then only folders of this machine are
        searched for.
        """
        for rule in self._folder_rules if public else self._rules:
            for match in rule.pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                yield Finding(name, line, rule.kind, match[0]), match[0]


def _repeats_any(secret: str, earlier_secrets: set[str]) -> bool:
    """Return whether a secret contains an earlier one, or is contained in one.

    A reading of a file that is a guess may give an earlier secret again, longer or shorter.
    """
    return any(secret in earlier or earlier in secret for earlier in earlier_secrets)
