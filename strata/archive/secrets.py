"""What must leave no machine: keys, tokens and passwords; and a search for that which is quick in large logs.

A log has millions of lines of a few kinds that differ in their digits alone.  So a rule is tried only where one of
its `hints` stands in a line of some kind, and the many patterns of tokens only on lines that hold a long word.
"""

import base64
import functools
import json
import re
from collections.abc import Callable
from typing import NamedTuple

SECRET = "REDACTED-SECRET"
_DIGITS = b"0123456789"
# How many characters of a word make a token of it, and which bytes those are.
_LONG = 16
_OF_WORDS = bytes(not (chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "_+/=-")) for byte in range(256))
_PIECE = 2**22


class Rule(NamedTuple):
    """What is replaced by a mark: the group `it` of a pattern, or all that matches.

    hints: texts, in small letters, one of which stands in whatever matches; none: it holds a long word.
    check: whether what matched is really what is meant.
    """

    pattern: re.Pattern
    mark: str
    hints: tuple[str, ...] = ()
    check: Callable[[str], bool] = bool


class Look:
    """What is quickly known of a text: the kinds of its lines, and those of its lines that hold a long word."""

    def __init__(self, text: str) -> None:
        content = text.encode(errors="surrogateescape")
        self.kinds = self._kinds(content).decode(errors="replace").lower()
        self.suspects = self._suspects(content).decode(errors="replace")

    @staticmethod
    def _kinds(content: bytes) -> bytes:
        """The lines without their digits, each once."""
        found: set[bytes] = set()
        start = 0
        while start < len(content):
            end = content.find(b"\n", start + _PIECE) % (len(content) + 1)
            found.update(content[start:end].translate(None, _DIGITS).split(b"\n"))
            start = end
        return b"\n".join(found)

    @staticmethod
    def _suspects(content: bytes) -> bytes:
        words = content.translate(_OF_WORDS)
        found: set[bytes] = set()
        place = words.find(bytes(_LONG))
        while place >= 0:
            end = content.find(b"\n", place) % (len(content) + 1)
            found.add(content[content.rfind(b"\n", 0, place) + 1 : end])
            place = words.find(bytes(_LONG), end)
        return b"\n".join(found)

    def may_hold(self, rule: Rule) -> bool:
        """Whether a rule need be tried at all."""
        if not rule.hints:
            return rule.pattern.search(self.suspects) is not None
        return any(re.sub("[0-9]", "", hint) in self.kinds for hint in rule.hints)


def replaced(text: str, look: Look, rules: list[Rule]) -> str:
    """A text with what the rules find replaced by their marks.  `look` is of the text as it was in the beginning."""
    for rule in rules:
        if look.may_hold(rule):
            text = rule.pattern.sub(functools.partial(_marked, rule), text)
    return text


def _marked(rule: Rule, match: re.Match) -> str:
    start, end = match.span("it") if "it" in rule.pattern.groupindex else match.span()
    text, before = match.string[start:end], match.string[match.start() : start]
    # A mark that is there stays, also within what looks like more.
    if "REDACTED-" in text or not rule.check(text):
        return match[0]
    return before + rule.mark + match.string[end : match.end()]


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return b""


def _is_web_token(text: str) -> bool:
    """Whether the first two parts are JSON, as those of a JSON Web Token are (RFC 7519)."""
    try:
        parts = [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in text.split(".")[:2]]
        return all(isinstance(json.loads(part), dict) for part in parts)
    except ValueError:
        return False


# To the end of the word: a pattern knows the shortest token, and of some only the beginning.
_REST = r"(?:[\w.+/=~-]*[\w+/=~-])?"
# A further line of a key, maybe behind comment signs; in JSON a line break is two characters.
_LINE = (
    r"(?:(?:\\r)?(?:\\n|\r?\n)[^\nA-Za-z0-9+=\\]{0,8}"
    r"(?:[A-Za-z0-9-]+: [^\n\\]*|[A-Za-z0-9+/]{16,}={0,2}|[A-Za-z0-9+/]{1,15}={1,2}|(?=\\|\n)))"
)
# Where a token may begin: at a word, behind what is escaped in JSON, or in an address.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
_BEGINNINGS = (
    # Of code hosts and registries of packages: GitHub, GitLab, npm, PyPI, Docker.
    r"gh[pousr]_|github_pat_|gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas)-|GR1348941|npm_|pypi-AgE|dckr_pat_"
    # Of clouds and what keeps secrets: Google, DigitalOcean, Vault, Tailscale, age.
    r"|AIza|ya29\.|GOCSPX-|dop_v1_|hvs\.|tskey-|AGE-SECRET-KEY-1"
    # Of models: Anthropic, OpenAI, Hugging Face.
    r"|sk-ant-|sk-proj-|sk-(?=[\w-]*T3BlbkFJ)|hf_"
    # Of services: Slack, Stripe, SendGrid, Square, Shopify, Grafana, Linear, webhooks, Atlassian.
    r"|xapp-|[rs]k_(?:live|test)_|SG\.(?=[\w-]{22}\.)|sq0csp-|shp(?:at|ca|pa|ss)_|glsa_|lin_api_|whsec_|ATATT"
)
_TOKENS = [
    Rule(re.compile(rf"{_START}(?:{_BEGINNINGS})[\w=-]{{16}}{_REST}"), SECRET),
    # Of Amazon, Slack, Discord, Twilio, Mailchimp, Azure and npm.
    Rule(re.compile(rf"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{{16}}{_REST}"), SECRET),
    Rule(
        re.compile(r"(?i)aws.{0,20}?(?:key|pwd|pw|password|pass|token).{0,20}?['\"](?P<it>[0-9a-z/+]{40})['\"]"),
        SECRET,
        ("aws",),
    ),
    Rule(re.compile(r"(?i)xox[abposr]-\d[\w-]+"), SECRET, ("xox",)),
    Rule(re.compile(r"(?i)hooks\.slack\.com/services/(?P<it>T\w+/B\w+/\w+)"), SECRET, ("hooks.slack.com",)),
    Rule(re.compile(rf"[MNO][\w-]{{23,25}}\.[\w-]{{6}}\.[\w-]{{27}}{_REST}", re.ASCII), SECRET),
    Rule(re.compile(rf"{_START}(?:(?:AC|SK)[a-z0-9]{{32}}|[0-9a-z]{{32}}-us[0-9]{{1,2}})(?![A-Za-z0-9])"), SECRET),
    Rule(re.compile(r"AccountKey=(?P<it>[A-Za-z0-9+/=]{88})"), SECRET, ("accountkey=",)),
    Rule(re.compile(r"//\S+/:_authToken=\s*(?P<it>[\w-]{16,})"), SECRET, (":_authtoken=",)),
    Rule(re.compile(r"eyJ[\w=-]+\.[\w=-]+(?:\.[\w+/=-]*)?"), SECRET, ("eyj",), _is_web_token),
]
_KEYS = [
    Rule(
        re.compile(
            r"-----BEGIN (?P<kind>[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----"
            rf"(?:(?s:.{{1,30000}}?)-----END (?P=kind)-----|{_LINE}+)"
        ),
        SECRET,
        ("private key",),
    ),
    Rule(
        re.compile(rf"PuTTY-User-Key-File-\d: (?:(?s:.{{1,30000}}?)Private-(?:MAC|Hash): [0-9a-f]+|[^\n\\]*{_LINE}*)"),
        SECRET,
        ("putty-user-key-file",),
    ),
    # Keys without their first line: what their bytes begin with (PKCS 1 and 8, SEC 1, Ed25519, OpenSSH).
    Rule(
        re.compile(
            r"(?<![A-Za-z0-9+/])(?:MII[A-Za-z0-9+/]{3}IBA[A-P]|MHcCAQEE|MIGHAgEAM|MC4CAQAwBQYDK2Vw|b3BlbnNzaC1rZXktdjE)"
            rf"[A-Za-z0-9+/]{{16,}}={{0,2}}{_LINE}*"
        ),
        SECRET,
    ),
    # The same with its first line, as base64.
    Rule(
        re.compile(rf"(?<![A-Za-z0-9+/])LS0tLS1CRUdJTi[A-Za-z0-9+/]{{16,}}={{0,2}}{_LINE}*"),
        SECRET,
        ("ls0tls1crudjti",),
        lambda text: b"PRIVATE KEY" in _decoded(text[:64]),
    ),
]
_HEADERS = [
    Rule(re.compile(r"://(?P<it>[^\s/?#@:\"'<>]*:[^\s/\"'<>]+)@"), SECRET, ("://",)),
    Rule(re.compile(r"[Bb]earer (?P<it>[\w.~+/-]{16,}=*)"), SECRET, ("bearer ",)),
    Rule(
        re.compile(r"[Bb]asic (?P<it>[A-Za-z0-9+/]{4,}={0,2})"),
        SECRET,
        ("basic ",),
        lambda text: b":" in _decoded(text),
    ),
]
# What is a secret wherever it stands.
RULES = [*_KEYS, *_TOKENS, *_HEADERS]
# What is one in a log; in a program it may be the name of something.
_NAMES = ["password", "passwd", "passphrase", "requirepass", "secret", "token", "api_key", "api-key", "apikey"]
_NAMES += ["access_key", "access-key", "secret_key", "secret-key"]
PASSWORD = Rule(
    re.compile(
        rf"(?i)(?<![a-z])(?:[a-z0-9]+[_-])*(?:{'|'.join(_NAMES)})"
        r"(?:[\"']?\s?[:=]\s?[\"']?|[\"'],?\s[\"']?|(?<=[-_]password)\s)"
        r"(?P<it>[^\s\"'`,;&<>(){}\[\]$%*=][^\s\"'`,;&<>]{2,})"
    ),
    SECRET,
    tuple(_NAMES),
    lambda text: text.lower() not in ("yes", "none", "null", "true", "false"),
)
