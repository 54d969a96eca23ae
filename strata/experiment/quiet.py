"""The config's ``quiet``: what is done when something else uses the machine, and from which threshold on."""

DEFAULTS: dict = {
    "action": "flag",
    "wait_seconds": 300,
    "load": None,
    "steal": "2%",
    "busy": "5%",
    "swap": "1MiB",
    "temperature": 90,
    "throttled": 0,
}
# What has a threshold.
JUDGED = ("load", "steal", "busy", "swap", "temperature", "throttled")
_UNITS = {"%": 1 / 100, "s": 1, "min": 60, "h": 3600, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def complete(given: dict | None, again: bool = False) -> dict:
    """``{action, wait_seconds, thresholds}`` as the plan holds them; shares and bytes are numbers, None: not judged.

    again: whether what was disturbed is measured again, where nothing is said of it.
    """
    chosen = {**DEFAULTS, **({"action": "retry"} if again else {}), **(given or {})}
    thresholds = {key: number(chosen[key]) for key in JUDGED}
    return {"action": chosen["action"], "wait_seconds": chosen["wait_seconds"], "thresholds": thresholds}


def number(value: str | float | None) -> float | None:
    """The number that a text with a unit means: a share, seconds or bytes.  What is no text stays as it is."""
    if not isinstance(value, str):
        return value
    digits = value.rstrip("%abcdefghijklmnopqrstuvwxyzKMGB")
    return float(digits) * _UNITS[value[len(digits) :]]
