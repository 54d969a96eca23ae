"""What must not leave the machine: keys, tokens, and the names of its user, of itself and of its folders.

Everything private is replaced by one of :data:`MARKS`, the same way every time.  What is found:

- private keys, tokens and passwords in addresses, by the published patterns of detect-secrets;
- the project's folder, the user's home and the image cache, wherever they stand;
- the user's and the host's name, as words, except where the project's own public words hold them;
- in records and plans: the folders of files that parameters name, and paths of a machine's own places.
"""

import contextlib
import functools
import json
import os
import pwd
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from detect_secrets.plugins import (
    aws,
    azure_storage_key,
    basic_auth,
    github_token,
    gitlab_token,
    jwt,
    npm,
    openai,
    pypi_token,
    sendgrid,
    slack,
    stripe,
    twilio,
)

MARKS = {
    "REDACTED-SECRET": "a key, token or password",
    "REDACTED-PATH": "a folder of the machine",
    "REDACTED-USER": "the name of its user",
    "REDACTED-HOST": "the name of the machine",
}
_DETECTORS = [
    aws.AWSKeyDetector,
    azure_storage_key.AzureStorageKeyDetector,
    github_token.GitHubTokenDetector,
    gitlab_token.GitLabTokenDetector,
    npm.NpmDetector,
    openai.OpenAIDetector,
    pypi_token.PypiTokenDetector,
    sendgrid.SendGridDetector,
    slack.SlackDetector,
    stripe.StripeDetector,
    twilio.TwilioKeyDetector,
]


class Rule(NamedTuple):
    """What is replaced by a mark.

    hints: texts, one of which stands in whatever matches.  A text without them need not be searched, which is
    what costs: a pattern that looks at what is before it is tried at every character of every log.
    """

    pattern: re.Pattern
    mark: str
    hints: tuple[str, ...] = ("",)


_TOKENS = [Rule(pattern, "REDACTED-SECRET") for detector in _DETECTORS for pattern in list(vars(detector)["denylist"])]
# What the detectors' patterns leave out: a key's whole block (they know its first line), and newer tokens.
_TOKENS += [
    Rule(
        re.compile(
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?:\\n|\s)*(?:[A-Za-z-]+: [^\n]*\n)*"
            r"(?:\\n|\s|[A-Za-z0-9+/=]){40,}(?:-----END [A-Z0-9 ]*PRIVATE KEY-----)?"
        ),
        "REDACTED-SECRET",
    ),
    Rule(re.compile(r"github_pat_[A-Za-z0-9_]{22,}"), "REDACTED-SECRET"),
    Rule(re.compile(r"\bhf_[A-Za-z0-9]{30,}"), "REDACTED-SECRET", ("hf_",)),
    Rule(re.compile(r"(?<=Bearer )[A-Za-z0-9._~+/-]{16,}=*"), "REDACTED-SECRET", ("Bearer ",)),
]
# The detector's own pattern ends before the signature.
_JWT = re.compile(r"eyJ[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]+(?:\.[A-Za-z0-9_+/=-]*)?")
_PASSWORD: re.Pattern = vars(basic_auth.BasicAuthDetector)["denylist"][0]
_HOMES = Rule(re.compile(r"(?<![\w.-])/(?:home|Users)/[^/\s\"'<>:;,)\\]+"), "REDACTED-PATH", ("/home/", "/Users/"))
_PLACES = Rule(
    re.compile(r"(?<![\w.-])/(?:root|tmp|var/tmp|mnt|media|srv|run/user)(?![\w.-])(?:/[^\s\"'<>:;,)\\]*)?"),
    "REDACTED-PATH",
    ("/",),
)


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


def _any_of(texts: Iterable[str], mark: str, near: str) -> Rule:
    """Any of some texts where no character of the class `near` is beside it."""
    longest_first = sorted(texts, key=len, reverse=True)
    pattern = rf"(?<!{near})(?:{'|'.join(map(re.escape, longest_first))})(?!{near})"
    return Rule(re.compile(pattern), mark, tuple(longest_first))


def is_text(content: bytes) -> bool:
    """Whether bytes are UTF-8 text without NUL."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


class Private:
    """What is private on this machine, and its replacement in texts.

    project: folder of the project.  public: words that the project's own source uses; a user or host that is
    called like one of them gives nothing away by it, and replacing the word would break what it means.
    """

    def __init__(self, project: str, public: set[str]) -> None:
        users, hosts = _names()
        self._folders = _any_of(_folders(project), "REDACTED-PATH", r"[\w.-]")
        self.kept = sorted((users | hosts) & public)
        self._users = _any_of(users - public, "REDACTED-USER", "[A-Za-z0-9]")
        self._hosts = _any_of(hosts - public, "REDACTED-HOST", "[A-Za-z0-9]")
        # The records of all cells say the same of the machine.
        self._of_string = functools.lru_cache(4096)(
            lambda text, inside: self.of_log(text) if inside else self.of_result(text)
        )

    def _replace(self, text: str, rules: list[Rule]) -> tuple[str, Counter]:
        found: Counter[str] = Counter()
        for rule in rules:
            if any(hint in text for hint in rule.hints):
                text, count = rule.pattern.subn(rule.mark, text)
                found[rule.mark] += count
        return text, +found

    def _without_secrets(self, text: str) -> tuple[str, Counter]:
        text, found = self._replace(text, _TOKENS)

        def password(match: re.Match) -> str:
            found["REDACTED-SECRET"] += 1
            return "://REDACTED-SECRET@"

        def token(match: re.Match) -> str:
            if not jwt.JwtTokenDetector.is_formally_valid(match[0]):
                return match[0]
            found["REDACTED-SECRET"] += 1
            return "REDACTED-SECRET"

        return _JWT.sub(token, _PASSWORD.sub(password, text)), found

    def of_source(self, text: str) -> tuple[str, Counter]:
        """A text of the source, which is public but for secrets and this machine's folders.

        Gives the text, and how often each mark was put in.
        """
        text, found = self._without_secrets(text)
        text, more = self._replace(text, [self._folders])
        return text, found + more

    def of_log(self, text: str) -> tuple[str, Counter]:
        """A raw log, of which nothing is touched that is not private.  Like :meth:`of_source`."""
        text, found = self.of_source(text)
        text, more = self._replace(text, [_HOMES, self._users, self._hosts])
        return text, found + more

    def of_result(self, text: str) -> tuple[str, Counter]:
        """A text about the machine: paths of its own places go too.  Like :meth:`of_source`."""
        text, found = self.of_log(text)
        text, more = self._replace(text, [_PLACES])
        return text, found + more

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
