"""The figures that a workload declares: what is wrong with them, and the files that they become."""

from strata.base import contracts
from strata.base.checking import Finding, nearest, unknown

# Kinds of figures (what each needs, and may have, besides name, kind, title and where), what their files are called,
# and figures of all workloads together.
_CONTRACT = contracts.read("figures")
KINDS: dict[str, dict[str, list[str]]] = _CONTRACT["kinds"]
SHARED: list[str] = _CONTRACT["shared"]
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


def of_workload(name: str, entry: dict) -> dict[str, dict]:
    """The figures of a workload of the plan: the stem of the file of each, and its declaration.

    A workload that declares none has one, of all its runs.
    """
    declared, stems = entry.get("figures") or [], _CONTRACT["stems"]
    if not declared:
        return {stems["undeclared"].format(workload=name): _CONTRACT["undeclared"]}
    return {stems["declared"].format(workload=name, name=figure["name"]): figure for figure in declared}


def of_plan(plan: dict) -> dict[str, str]:
    """The workload of every figure of a plan, by the stem of its file."""
    return {stem: name for name, entry in plan["workloads"].items() for stem in of_workload(name, entry)}


def clashes(workloads: dict[str, dict]) -> list[tuple[str, str]]:
    """(workload, what is wrong) where figures of two declared workloads would be one file."""
    found, seen = [], dict.fromkeys(SHARED, "all workloads")
    for name, entry in workloads.items():
        for stem in of_workload(name, entry):
            if stem in seen:
                found.append((name, f"its figure {stem} has the name of a figure of {seen[stem]}"))
            seen[stem] = name
    return found


def showing(name: str, entry: dict, metric: str) -> str:
    """The stem of the first figure of a workload that shows a metric; that of its first figure where none does."""
    stems = of_workload(name, entry)
    return next((stem for stem, figure in stems.items() if _shows(figure, metric)), next(iter(stems)))


def _shows(figure: dict, metric: str) -> bool:
    named = {figure[key] for key in _NAMES_METRICS if key in figure} | set(figure.get("metrics", []))
    return metric in named or (figure["kind"] == "runs" and "metrics" not in figure)
