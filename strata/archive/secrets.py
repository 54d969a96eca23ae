"""What must leave no machine: keys, tokens and passwords, by the forms that they are known to have."""

import base64
import re
from collections.abc import Callable
from typing import NamedTuple

SECRET = "a key, token or password"
# Names of files that hold keys or passwords wherever they lie.
KEY_FILES = re.compile(
    r"(?:^|/)(?:\.env(?:\.[^/]*)?|\.netrc|\.pypirc|\.npmrc|\.git-credentials|credentials(?:\.[^/]*)?"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)[^/]*|insecure_private_key|private_key|[^/]*\.(?:pem|key|p12|pfx|ppk|kdbx))$"
    r"|(?:^|/)\.(?:ssh|gnupg|aws|docker|kube)/"
)


class Rule(NamedTuple):
    """What is private: the group `it` of a pattern, or all that matches.

    check: whether what matched is really what is meant.
    """

    what: str
    pattern: re.Pattern[str]
    check: Callable[[str], bool] = bool


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return b""


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


def _is_no_example(text: str) -> bool:
    """Whether a text may be a password: no word that stands for none, and nothing that a program puts in its place."""
    return text.lower() not in ("yes", "no", "none", "null", "true", "false", "default", "required")


_FORMS: list[str | tuple[str, Callable[[str], bool]]] = [
    # Private keys: PEM and OpenSSH, PuTTY; without their first line (PKCS 1 and 8, SEC 1, Ed25519, OpenSSH); as base64.
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?=\s*\n|\\[nr])",
    r"PuTTY-User-Key-File-\d: ",
    r"(?<![A-Za-z0-9+/])(?:MII[A-Za-z0-9+/]{3}IBA[A-P]|MHcCAQEE|MIGHAgEAM|MC4CAQAwBQYDK2Vw|b3BlbnNzaC1rZXktdjE)"
    r"[A-Za-z0-9+/]{16,}",
    (r"(?<![A-Za-z0-9+/])LS0tLS1CRUdJTi[A-Za-z0-9+/]{16,}={0,2}", lambda text: b"PRIVATE KEY" in _decoded(text[:64])),
    rf"{_START}(?:{_BEGINNINGS})[\w=-]{{16}}",
    # Of Amazon, Slack, Discord, Twilio, Mailchimp, Azure, npm and WireGuard; web tokens.
    r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}",
    r"(?i)aws.{0,20}?(?:key|pwd|pw|password|pass|token).{0,20}?['\"](?P<it>[0-9a-z/+]{40})['\"]",
    r"(?i)xox[abposr]-\d[\w-]+",
    r"(?i)hooks\.slack\.com/services/(?P<it>T\w+/B\w+/\w+)",
    r"(?<![\w-])[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27}",
    rf"{_START}(?:(?:AC|SK)[a-z0-9]{{32}}|[0-9a-z]{{32}}-us[0-9]{{1,2}})(?![A-Za-z0-9])",
    r"(?:AccountKey|SharedAccessKey)=(?P<it>[A-Za-z0-9+/=]{40,})",
    r"[?&]sig=(?P<it>[A-Za-z0-9%+/=]{30,})",
    r"(?m):_(?:authToken|auth|password)\s*=\s*(?P<it>[\w+/=-]{8,})",
    r"(?<![\w/:])_auth\s*=\s*(?P<it>[\w+/=-]{8,})",
    r"(?:PrivateKey|PresharedKey)\s*=\s*(?P<it>[A-Za-z0-9+/]{43}=)",
    r"eyJ[\w=-]+\.e[yw][\w=-]+(?:\.[\w+/=-]*)?",
    # Passwords in addresses and headers, in .netrc, behind the option of a database's client, and their hashes.
    r"://(?P<it>[^\s/?#@:\"'<>]*:[^\s/\"'<>{}$]+)@",
    r"[Bb]earer (?P<it>[\w.~+/-]{16,}=*)",
    (r"[Bb]asic (?P<it>[A-Za-z0-9+/]{4,}={0,2})", lambda text: b":" in _decoded(text)),
    r"[Dd]igest username=[^\n]*?response=[\\\"']*(?P<it>[0-9a-f]{32})",
    r"machine\s+\S+\s+login\s+\S+\s+password\s+(?P<it>[^\s\"'<>{$]\S+)",
    r"\b(?:mysql|mariadb|mysqldump|mysqladmin|sshpass)\b[^\n|;]*?\s-p(?P<it>[^\s\"'$-]\S+)",
    r"\$(?:1|2[abxy]|5|6|7|y|gy)\$(?:[\w./=,]+\$)*(?P<it>[A-Za-z0-9./]{20,})",
]
# What is a secret wherever it stands.
RULES = [
    Rule(SECRET, re.compile(pattern, re.ASCII), *check)
    for pattern, *check in ((form,) if isinstance(form, str) else form for form in _FORMS)
]
# What is one in results; in a program it may be the name of something.
_NAMES = ["password", "passwd", "passphrase", "requirepass", "secret", "token", "api_key", "api-key", "apikey"]
_NAMES += ["access_key", "access-key", "secret_key", "secret-key"]
PASSWORD = Rule(
    SECRET,
    re.compile(
        rf"(?i)(?:{'|'.join(_NAMES)})"
        r"(?:[\"']?\s?[:=]\s?[\"']?|[\"'],?\s[\"']?|(?<=[-_]password)\s)"
        r"(?P<it>[^\s\"'`,;&<>(){}\[\]$%*=][^\s\"'`,;&<>]{2,})"
    ),
    _is_no_example,
)
