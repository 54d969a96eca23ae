"""Pages of the site that are made of the code: workloads, environments of the default page, layers, commands."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml
from keys import allowed, cell, code, keys, table

# Prints of each layer what its class says of it.
LAYERS = """
import json
from strata import layers
each = {name: layers.kind(name) for name in layers.names()}
print(json.dumps({name: [one.title, one.kind, one.stands_on, one.options_schema] for name, one in each.items()}))
"""
SCALES = ("tiny", "standard", "paper")


def pages(project: Path) -> dict[str, str]:
    """Where in the site → Markdown."""
    workloads = {
        path.parent.name: yaml.safe_load(path.read_text())
        for path in sorted((project / "workloads").glob("*/workload.yaml"))
    }
    page = yaml.safe_load((project / "config.yaml").read_text())
    told = (project / "docs/workloads.md").read_text()
    own = {name: f"\n## {name}\n" in told for name in workloads}
    return {
        "reference/environments.md": _environments(page, _layers(project)),
        "reference/workloads.md": _workloads(workloads, page, project),
        "reference/commands.md": _commands(project),
        **{
            f"reference/workloads/{name}.md": _workload(name, declared, own[name])
            for name, declared in workloads.items()
        },
    }


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _layers(project: Path) -> tuple[str, str]:
    """The layers, and their options."""
    asked = [sys.executable, "-c", LAYERS]
    said = json.loads(subprocess.run(asked, cwd=project, capture_output=True, text=True, check=True).stdout)
    rows = [[code(name), cell(told[0]), told[1], " or ".join(told[2])] for name, told in said.items()]
    options = [
        [code(name), code(key), cell(allowed(inner, told[3])), "required" if needed else ""]
        for name, told in said.items()
        for key, inner, needed in keys(told[3], told[3])
    ]
    return table(["layer", "isolation", "kind", "stands on"], rows), table(["layer", "option", "value", ""], options)


def _environments(page: dict, known: tuple[str, str]) -> str:
    rows = []
    for name, entry in page["environments"].items():
        layers = ", on it ".join(_layer(layer) for layer in entry["layers"])
        rows.append([code(name), code(entry.get("label", name)), layers])
    return f"""# Environments

Those of the default page. In labels `{{vm}}` becomes KVM where a guest ran under it, VM (TCG emulation) elsewhere.
To add one:
[Add an environment](../adding-an-environment.md).

{table(["name", "label", "layers"], rows)}

## Layers

{known[0]}

Their options ([what they mean](../config.md#layers)):

{known[1]}
"""


def _layer(layer: str | dict) -> str:
    if isinstance(layer, str):
        return code(layer)
    ((name, options),) = layer.items()
    return code(f"{name}: " + ", ".join(f"{key} {_value(value)}" for key, value in (options or {}).items()))


def _workloads(workloads: dict[str, dict], page: dict, project: Path) -> str:
    more = yaml.safe_load((project / "everything.yaml").read_text())["workloads"]
    where = {name: "`make paper`" if name in page["workloads"] else "`make everything`" for name in workloads}
    rows = [
        [
            f"[{cell(declared['title'])}](workloads/{name}.md)",
            code(name),
            declared.get("question", ""),
            cell(declared["about"]),
            where[name] if name in page["workloads"] or name in more else "where a page names it",
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


def _commands(project: Path) -> str:
    targets = re.findall(r"^([a-z-]+):[^#\n]*## (.*)$", (project / "Makefile").read_text(), re.MULTILINE)
    asked = [sys.executable, "-m", "strata", "--help"]
    # Wide enough for every command to be told in one line.
    wide = {**os.environ, "COLUMNS": "500"}
    said = subprocess.run(asked, cwd=project, env=wide, capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^    ([a-z-]+) +(\S.*)$", said, re.MULTILINE)
    return f"""# Commands

Made of the `Makefile` and of `python3 -m strata --help`. Targets of Snakemake: [the README's table and
Snakemake's own options](../snakemake.md).

{table(["type", "to"], [[code(f"make {name}"), cell(text)] for name, text in targets])}

{
        table(
            ["type", "to"],
            [[code(f"python3 -m strata {name}"), cell(text)] for name, text in commands],
        )
    }

`python3 -m strata COMMAND --help` names a command's own options.
"""
