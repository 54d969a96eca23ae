"""The config's ``quiet``: what is done when something else uses the machine, and from which threshold on."""

from strata.base.amounts import amount
from strata.base.shapes import Fields, Quiet

DEFAULTS: Fields = {
    "action": "flag",
    "wait_seconds": 300,
    "load": None,
    "steal": "2%",
    "busy": "5%",
    "swap": "1MiB",
    "temperature": 90,
    "throttled": 0,
    "stall": 1,
}
# What has a threshold.
JUDGED = ("load", "steal", "busy", "swap", "temperature", "throttled", "stall")


def complete(given: Fields | None, again: bool = False) -> Quiet:
    """``{action, wait_seconds, thresholds}`` as the plan holds them; shares and bytes are numbers, None: not judged.

    again: whether what was disturbed is measured again, where nothing is said of it.
    """
    chosen = {**DEFAULTS, **({"action": "retry"} if again else {}), **(given or {})}
    thresholds = {key: amount(chosen[key]) for key in JUDGED}
    return {"action": chosen["action"], "wait_seconds": chosen["wait_seconds"], "thresholds": thresholds}
