"""The figures that a workload declares: what is wrong with them, and the files that they become."""

from collections.abc import Iterable

from strata.base import checking, contracts

# Kinds of figures (what each needs, and may have, besides name, kind, title and where), what their files are called,
# and figures of all workloads together.
_CONTRACT = contracts.read("figures")
KINDS: dict[str, dict[str, list[str]]] = _CONTRACT["kinds"]
SHARED: list[str] = _CONTRACT["shared"]
_COMMON = {"name", "kind", "title", "where"}
_NAMES_METRICS = ("metric", "against")


def findings(declared: dict) -> list[tuple[str, str]]:
    """(key, what is wrong) for what a schema cannot say of a workload's `figures` and `headline`."""
    found = []
    names: dict[str, int] = {}
    for number, figure in enumerate(declared.get("figures", [])):
        key = f"figures.{number}"
        if not figure:
            continue
        if figure["name"] in names:
            found.append((f"{key}.name", f"'{figure['name']}' is also that of figure {names[figure['name']]}"))
        names[figure["name"]] = number
        needed, optional = (set(KINDS[figure["kind"]][part]) for part in ("needs", "takes"))
        allowed = _COMMON | needed | optional
        for name in sorted(needed - figure.keys()):
            found.append((f"{key}.{name}", f"missing; a figure of the kind {figure['kind']} needs it"))
        for name in sorted(figure.keys() - allowed):
            hint = checking.nearest(name, sorted(allowed))
            found.append((f"{key}.{name}", f"is not for a figure of the kind {figure['kind']}; {hint}"))
        named = [(f"{key}.{name}", figure[name]) for name in _NAMES_METRICS if name in figure]
        named += [(f"{key}.metrics.{place}", name) for place, name in enumerate(figure.get("metrics", []))]
        found += _unknown(named, declared["metrics"])
    named = [
        (f"headline.{place}.metric", point["metric"])
        for place, point in enumerate(declared.get("headline", []))
        if point
    ]
    return found + _unknown(named, declared["metrics"])


def _unknown(named: Iterable[tuple[str, str]], metrics: dict) -> list[tuple[str, str]]:
    return [
        (key, f"'{name}' is no metric of this workload; {checking.nearest(name, list(metrics))}")
        for key, name in named
        if name not in metrics
    ]


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
