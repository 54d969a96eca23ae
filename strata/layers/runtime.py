"""Runtimes that Docker's daemon knows besides its own and gVisor, such as those of Kata Containers.

Strata knows nothing of them but their names, and what the daemon says of each.
"""

from __future__ import annotations

import os

from strata.host.observe import NOT_AVAILABLE
from strata.layers import sandbox

OWN = "runc"
# They make a container of namespaces and control groups, as Docker's own does.
ALIKE = ("crun", "youki")
# So begin the names by which a daemon finds a shim on its path without being told of it.
SHIM = "io.containerd."


def asked(options: dict) -> bool:
    """Whether options of a container ask for such a runtime."""
    return options.get("runtime", OWN) not in (OWN, sandbox.PROGRAM)


def refusal(options: dict, known: dict[str, dict]) -> str | None:
    """Why the daemon cannot provide it; known: of each runtime that it has what it says of it."""
    name = options["runtime"]
    if name in known or name.startswith(SHIM):
        return None
    there = ", ".join(sorted(one for one in known if not one.startswith("strata-")))
    return f"the Docker daemon knows no runtime {name} (it knows {there}): add it to the daemon’s configuration"


def told(options: dict) -> dict:
    """What the paper says of it: what such a runtime puts between a program and the host is not known here."""
    title = {"title": f"Docker container by the runtime {options['runtime']}"}
    return title if options["runtime"] in ALIKE else {"kind": "other", **title}


def facts(options: dict, known: dict[str, dict]) -> dict:
    """``{name, program, version}``: what the daemon starts for it, and what that says of itself."""
    said = known.get(options["runtime"], {})
    program = said.get("path") or said.get("runtimeType") or NOT_AVAILABLE
    return {"name": options["runtime"], "program": program, "version": _version(program)}


def _version(program: str) -> str:
    from strata.base.process import capture

    if not os.access(program, os.X_OK):
        return NOT_AVAILABLE
    done = capture([program, "--version"], check=False)
    return next((line.strip() for line in done.stdout.splitlines() if line.strip()), NOT_AVAILABLE)
