"""Find keys, tokens and passwords in a text by the rules of Kingfisher and secrets.yaml.

The library compiles its rules once for each user, into that user's folder for caches, and asks no
service about a finding.
"""

import functools
import os
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

# Names of files that hold keys or passwords wherever they lie.
KEY_FILES = re.compile(
    r"(?:^|/)(?:\.env(?:\.[^/]*)?|\.netrc|\.pypirc|\.npmrc|\.git-credentials"
    r"|credentials(?:\.[^/]*)?|id_(?:rsa|dsa|ecdsa|ed25519)[^/]*|insecure_private_key|private_key"
    r"|[^/]*\.(?:pem|key|p12|pfx|ppk|kdbx))$"
    r"|(?:^|/)\.(?:ssh|gnupg|aws|docker|kube)/"
)
# Words after `password=` that are no passwords, in lower case.
_NO_PASSWORDS = ("yes", "no", "none", "null", "true", "false", "default", "required")
# Seconds that the search in one text may take.  A hundred megabytes need about one.
_SECONDS = 120


class Secret(NamedTuple):
    """A secret in a text, and the number of its first line, from 1."""

    line: int
    text: str


@functools.cache
def _load_scanner() -> "Scanner":
    """Return a scanner with the rules of Kingfisher and secrets.yaml.

    The rules are compiled once in a process.  The scanner decodes no base64, which
    :func:`strata.archive.extraction.list_readings` has decoded before.
    """
    # The import takes half a second, and only commands that write an archive need it.
    from kingfisher_sdk import Rules, Scanner

    return Scanner(Rules([os.path.join(os.path.dirname(__file__), "secrets.yaml")]), base64=False)


def find_secrets(text: str, public: bool = False) -> set[Secret]:
    """Return the keys, tokens and passwords in a text.

    public: whether the text is public source.  The rules ``results.…`` of secrets.yaml are then
    left out, since in source they match mere names, for example of variables.
    Raises TimeoutError if the search takes longer than `_SECONDS`.
    """
    secrets = set()
    for match in _load_scanner().scan(text, timeout=_SECONDS):
        is_doubtful = match.rule_id.startswith("results.")
        if is_doubtful and (public or match.secret.lower() in _NO_PASSWORDS):
            continue
        # Kingfisher hides matches of rules that only support other rules.
        if match.visible:
            secrets.add(Secret(match.location["line"], match.secret))
    return secrets
