"""The figures that a workload declares: what is wrong with them."""

from strata.base import constants
from strata.base.checking import Finding, nearest, unknown

# Kinds of figures: what each needs, and may have, besides name, kind, title and where.
KINDS: dict[str, dict[str, list[str]]] = constants.read("figures")["kinds"]
_COMMON = ("name", "kind", "title", "where")
_NAMES_METRICS = ("metric", "against")


def findings(declared: dict) -> list[Finding]:
    """(key, what is wrong) for what a schema cannot say of a workload's `figures` and `headline`."""
    found, names, metrics = [], set(), declared["metrics"]
    named = [(f"headline.{at}.metric", point["metric"]) for at, point in enumerate(declared.get("headline", []))]
    for number, figure in enumerate(declared.get("figures", [])):
        key, kind = f"figures.{number}", KINDS[figure["kind"]]
        if figure["name"] in names:
            found.append((f"{key}.name", f"'{figure['name']}' is also that of an earlier figure"))
        names.add(figure["name"])
        allowed = [*_COMMON, *kind["needs"], *kind["takes"]]
        needed = f"missing; a figure of the kind {figure['kind']} needs it"
        found += [(f"{key}.{name}", needed) for name in kind["needs"] if name not in figure]
        extra = [name for name in figure if name not in allowed]
        found += [(f"{key}.{name}", f"not for the kind {figure['kind']}; {nearest(name, allowed)}") for name in extra]
        named += [(f"{key}.{name}", figure[name]) for name in _NAMES_METRICS if name in figure]
        named += [(f"{key}.metrics.{at}", name) for at, name in enumerate(figure.get("metrics", []))]
    return found + [one for key, name in named for one in unknown(key, name, metrics, "metric of this workload")]
