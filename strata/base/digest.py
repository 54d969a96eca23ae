"""SHA-256 without OpenSSL, whose loading by hashlib would be a tenth of what a small cell costs."""

import importlib

# The standard library's own module by the version of Python, and what is there in any case.
for _name in ("_sha2", "_sha256", "hashlib"):
    try:
        sha256 = importlib.import_module(_name).sha256
        break
    except ImportError:
        continue


def of_file(path: str) -> str:
    """SHA-256 of a file, in hexadecimal."""
    found = sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()
