"""Pages of the site that are made of the workloads' declarations: one of all, and one of each."""

import json
from pathlib import Path

import yaml
from keys import allowed, cell, code, table

SCALES = ("tiny", "standard", "paper")


def pages(project: Path) -> dict[str, str]:
    """Where in the site → Markdown."""
    workloads = {
        path.parent.name: yaml.safe_load(path.read_text())
        for path in sorted((project / "workloads").glob("*/workload.yaml"))
    }
    told = (project / "docs/workloads.md").read_text()
    return {
        "reference/workloads.md": _workloads(workloads, project),
        **{
            f"reference/workloads/{name}.md": _workload(name, declared, f"\n## {name}\n" in told)
            for name, declared in workloads.items()
        },
    }


def _workloads(workloads: dict[str, dict], project: Path) -> str:
    pages = ("config.yaml", "everything.yaml")
    first, more = (yaml.safe_load((project / name).read_text())["workloads"] for name in pages)
    rows = [
        [
            f"[{cell(declared['title'])}](workloads/{name}.md)",
            code(name),
            declared.get("question", ""),
            cell(declared["about"]),
            "`make paper`" if name in first else "`make everything`" if name in more else "where a page names it",
        ]
        for name, declared in workloads.items()
    ]
    return f"""# Workloads

The folders of `workloads/`. A page of your own chooses among them, and sets their parameters.

{table(["workload", "name", "question", "what it measures", "measured by"], rows)}
"""


def _workload(name: str, declared: dict, own: bool) -> str:
    sections = [f"# {declared['title']}", declared["about"]]
    if own:
        sections.append(f"How it works: [The workloads](../../workloads.md#{name}).")
    metrics = [
        [
            code(key),
            cell(metric["label"]),
            metric["unit"],
            metric["better"],
            metric.get("statistic", "mean"),
        ]
        for key, metric in declared["metrics"].items()
    ]
    sections += ["## What it gives", table(["metric", "in words", "unit", "better", "averaged by"], metrics)]
    heads = ["parameter", "meaning", "value", *SCALES]
    parameters = [
        [
            code(key),
            cell(parameter["about"]),
            cell(allowed(parameter["schema"], parameter["schema"])),
            *(_parameter(parameter.get(scale, parameter.get("value"))) for scale in SCALES),
        ]
        for key, parameter in declared.get("parameters", {}).items()
    ]
    sections += ["## Parameters", "Set them in `config.yaml` below `workloads`; the defaults are those of the scale."]
    sections.append(table(heads, parameters))
    sections += ["## A cell", f"Warm-up: {declared.get('warmup', {}).get('about', 'none')}."]
    for server in declared.get("servers", []):
        sections.append(f"Server {code(server['name'])}: {code(' '.join(server['argv']))}")
    sections.append("\n".join(_steps(declared["run"])))
    sections.append("It counts only if its log has these:")
    sections.append("\n".join(f"- {check['name']}: {code(check['pattern'])}" for check in declared["checks"]))
    packages = ", ".join(code(package) for package in declared.get("packages", [])) or "none"
    planned = "; in the image only where the page names the workload" if declared.get("image") == "planned" else ""
    sections.append(f"Packages of the distribution that it brings into the image: {packages}{planned}.")
    return "\n\n".join(sections) + "\n"


def _parameter(value: object) -> str:
    if isinstance(value, dict) and "rule" in value:
        rest = ", ".join(f"{key} {inner}" for key, inner in value.items() if key != "rule")
        return f"by the rule {code(value['rule'])}" + (f" ({rest})" if rest else "")
    return code(json.dumps(value))


def _steps(steps: list[dict], depth: int = 0) -> list[str]:
    """The steps of a cell as a list of Markdown."""
    lines = []
    for step in steps:
        if "for" in step:
            lines.append(f"{'    ' * depth}- for each value of {code(step['for'])}:")
            lines += _steps(step["steps"], depth + 1)
        elif "observe" in step:
            lines.append(f"{'    ' * depth}- the time of the host's processors is read")
        else:
            at = ", at the client" if step.get("at") == "client" else ""
            fresh = ", in a system that is brought up for it" if "fresh" in step else ""
            lines.append(f"{'    ' * depth}- {code(' '.join(step['argv']))}{at}{fresh}")
    return lines
