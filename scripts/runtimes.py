#!/usr/bin/env python3
"""Print a configuration of Docker's daemon: the one in the file that is given, if it is there, and gVisor's runtimes.

Nothing that the file says is changed.  Usage: runtimes.py FILE RUNSC
"""

import json
import os
import sys

PLATFORMS = ("ptrace", "systrap", "kvm")
STACKS = ("sandbox", "host")


def runtimes(runsc: str) -> dict:
    """One entry for each platform and network stack; strata/layers/common/gvisor.py asks for them by these names."""
    return {
        f"strata-runsc-{platform}-{stack}": {
            "path": runsc,
            "runtimeArgs": [f"--platform={platform}", f"--network={stack}"],
        }
        for platform in PLATFORMS
        for stack in STACKS
    }


def merged(own: dict, runsc: str) -> dict:
    """The configuration with these runtimes among its own."""
    return {**own, "runtimes": {**runtimes(runsc), **own.get("runtimes", {})}}


def main(path: str, runsc: str) -> None:
    """Print it.  Exits with a message where the file is no JSON object."""
    own: object = {}
    if os.path.exists(path):
        with open(path) as file:
            text = file.read()
        try:
            own = json.loads(text) if text.strip() else {}
        except ValueError as error:
            sys.exit(f"{path}: is not JSON ({error}): Docker's daemon will not start with it")
    if not isinstance(own, dict) or not isinstance(own.get("runtimes", {}), dict):
        sys.exit(f"{path}: is no JSON object with a mapping of runtimes")
    json.dump(merged(own, runsc), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main(*sys.argv[1:])
