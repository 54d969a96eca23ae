"""Keys, tokens and passwords in a text, by the rules of the library Kingfisher and those of secrets.yaml.

The library compiles its rules once for each user, into that user's folder for caches.  It asks nobody about a find.
"""

import functools
import os
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

# Names of files that hold keys or passwords wherever they lie.
KEY_FILES = re.compile(
    r"(?:^|/)(?:\.env(?:\.[^/]*)?|\.netrc|\.pypirc|\.npmrc|\.git-credentials|credentials(?:\.[^/]*)?"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)[^/]*|insecure_private_key|private_key|[^/]*\.(?:pem|key|p12|pfx|ppk|kdbx))$"
    r"|(?:^|/)\.(?:ssh|gnupg|aws|docker|kube)/"
)
# Words behind `password=` that are none.
_NO_PASSWORDS = ("yes", "no", "none", "null", "true", "false", "default", "required")
# The longest time that one text may take.  The library needs a second for some hundred megabytes.
_SECONDS = 120


class Secret(NamedTuple):
    """A secret and the line of the text in which it begins, from 1."""

    line: int
    text: str


@functools.cache
def _scanner() -> "Scanner":
    # Of use to who writes an archive alone, and half a second of work.
    from kingfisher_sdk import Rules, Scanner

    return Scanner(Rules([os.path.join(os.path.dirname(__file__), "secrets.yaml")]), base64=False)


def find(text: str, public: bool = False) -> set[Secret]:
    """The secrets of a text.

    public: whether it is source, in which the rules for results do not hold.  Raises TimeoutError.
    """
    found = [one for one in _scanner().scan(text, timeout=_SECONDS) if one.visible]
    return {
        Secret(one.location["line"], one.secret)
        for one in found
        if not one.rule_id.startswith("results.")
        or not (public or one.secret.lower() in _NO_PASSWORDS)
    }
