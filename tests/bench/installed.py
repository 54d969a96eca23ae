"""ReFrame in a virtual environment of its own, installed by the bench itself."""

import hashlib
import subprocess
import sys
from pathlib import Path

import projects

LIST = Path(__file__).resolve().parent / "reframe.txt"
FOLDER = projects.ROOT / ".venv-bench"


def reframe() -> tuple[str | None, str]:
    """ReFrame's program and its version; without it None and the reason."""
    wanted = hashlib.sha256(LIST.read_bytes()).hexdigest()
    stamp = FOLDER / "strata-stamp"
    try:
        if not stamp.exists() or stamp.read_text() != wanted:
            print("bench: installing ReFrame into .venv-bench", file=sys.stderr)
            _call([sys.executable, "-m", "venv", "--clear", str(FOLDER)])
            pip = [str(FOLDER / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _call([*pip, "--requirement", str(LIST)])
            stamp.write_text(wanted)
        program = str(FOLDER / "bin/reframe")
        return program, _call([program, "--version"]).strip()
    except (OSError, subprocess.SubprocessError) as error:
        return None, reason(error)


def _call(argv: list[str]) -> str:
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=900)
    return done.stdout


def reason(error: Exception) -> str:
    """Why an installation failed, in one line: pip's last error, or the system's own words."""
    words = getattr(error, "stderr", None) or str(error)
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["no reason was given"])[-1]
