"""The pages of reference that say what schemas and folders say: the keys of config.yaml and of a workload's file, the
workloads, the environments of the default page, the layers of which others are made, and the commands."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

# Prints of each layer what its class says of it.
LAYERS = """
import json
from strata import layers
each = {name: layers.kind(name) for name in layers.names()}
print(json.dumps({name: [one.title, one.kind, one.stands_on, one.options_schema] for name, one in each.items()}))
"""
SCALES = ("smoke", "quick", "paper")


def pages(project: Path) -> dict[str, str]:
    """Where in the site → Markdown."""
    workloads = {
        path.parent.name: yaml.safe_load(path.read_text())
        for path in sorted((project / "workloads").glob("*/workload.yaml"))
    }
    page = yaml.safe_load((project / "config.yaml").read_text())
    schemas = {
        name: json.loads((project / f"schemas/{name}.schema.json").read_text()) for name in ("config", "vm", "workload")
    }
    own = {name: (project / f"docs/workloads/{name}.md").exists() for name in workloads}
    return {
        "reference/config.md": _config(schemas["config"], schemas["vm"], page),
        "reference/environments.md": _environments(page, _layers(project)),
        "reference/workload-file.md": _workload_file(schemas["workload"]),
        "reference/workloads.md": _workloads(workloads, page, project),
        "reference/commands.md": _commands(project),
        **{
            f"reference/workloads/{name}.md": _workload(name, declared, own[name])
            for name, declared in workloads.items()
        },
    }


def _cell(text: str) -> str:
    """A text as a cell of a table, which a bar outside of code would end."""
    return re.sub(r"(`+).+?\1|\|", lambda match: match[0] if match[1] else "&#124;", text.replace("\n", " "))


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def allowed(schema: dict, root: dict) -> str:
    """What a schema lets through, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return allowed(root["$defs"][name], root) if name in root.get("$defs", {}) else "mapping"
    if "const" in schema:
        return _code(json.dumps(schema["const"]).strip('"'))
    if "enum" in schema:
        return ", ".join(_code(str(value)) for value in schema["enum"])
    if "oneOf" in schema and "type" not in schema:
        return "; or ".join(dict.fromkeys(allowed(one, root) for one in schema["oneOf"] if "required" not in one))
    kinds = schema.get("type", "anything")
    return " or ".join(_kind(kind, schema, root) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _kind(kind: str, schema: dict, root: dict) -> str:
    if kind in ("integer", "number"):
        low, high = schema.get("minimum"), schema.get("maximum")
        words = "whole number" if kind == "integer" else "number"
        if "exclusiveMinimum" in schema:
            return f"{words} above {schema['exclusiveMinimum']}"
        if low is not None and high is not None:
            return f"{words} from {low} to {high}"
        return f"{words} from {low} on" if low is not None else words
    if kind == "string":
        return f"text {_code(schema['pattern'])}" if "pattern" in schema else "text"
    if kind == "array":
        return f"list: {allowed(schema['items'], root)}" if "items" in schema else "list"
    return {"object": "mapping", "boolean": "`true`, `false`", "null": "empty"}.get(kind, kind)


def keys(schema: dict, root: dict, prefix: str = "") -> list[tuple[str, dict, bool]]:
    """(key, its schema, whether it must be there) of a mapping's schema, inner keys after the one that holds them."""
    found = []
    entries = [(f"{prefix}{name}", inner, name in schema.get("required", [])) for name, inner in _properties(schema)]
    for name, inner, needed in entries:
        found.append((name, inner, needed))
        for one in [inner, *inner.get("oneOf", [])]:
            if "$ref" in one:
                continue
            found += keys(one, root, f"{name}.")
            if isinstance(one.get("items"), dict):
                found += keys(one["items"], root, f"{name}[].")
    return found


def _properties(schema: dict) -> list[tuple[str, dict]]:
    """The keys of a mapping; where they are any names, NAME."""
    more = schema.get("additionalProperties")
    named = [("NAME", more)] if isinstance(more, dict) else []
    return [*schema.get("properties", {}).items(), *named]


def _key_table(schema: dict, default: dict | None = None) -> str:
    heads = ["key", "value", "meaning"] + (["default page"] if default is not None else [])
    rows = []
    for key, inner, needed in keys(schema, schema):
        meaning = [inner.get("description", ""), "**must be there**" if needed else ""]
        row = [_code(key), _cell(allowed(inner, schema)), _cell("; ".join(filter(None, meaning)))]
        if default is not None:
            row.append(_set(default, key.split(".")))
        rows.append(row)
    return _table(heads, rows)


def _set(page: object, path: list[str]) -> str:
    """What a page has under a key, where that is a single value."""
    for part in path:
        page = page.get(part) if isinstance(page, dict) else None
    return "" if page is None or isinstance(page, dict | list) else _code(_value(page))


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _config(schema: dict, machines: dict, page: dict) -> str:
    return f"""# config.yaml by its schema

What the schemas of `config.yaml` let through ([config](../../schemas/config.schema.json),
[virtual machines](../../schemas/vm.schema.json)); this page is made of them. What each key is for, with examples:
[config.yaml, key by key](../config.md). `NAME` stands for a name of your own. `python3 -m strata check` says of a page
what is wrong with it.

{_key_table(schema, page)}

## Profiles of virtual machines

Below `vm`; what they mean is told in [Virtual machines](../virtual-machines.md).

{_key_table(machines)}
"""


def _workload_file(schema: dict) -> str:
    return f"""# workload.yaml by its schema

What the schema of a workload's file lets through ([workload](../../schemas/workload.schema.json)); this page is made of
it. What each key is for: [Add a workload](../adding-a-workload.md), [what else](../workload-reference.md).

{_key_table(schema)}
"""


def _layers(project: Path) -> tuple[str, str]:
    """The layers, and their options."""
    asked = [sys.executable, "-c", LAYERS]
    said = json.loads(subprocess.run(asked, cwd=project, capture_output=True, text=True, check=True).stdout)
    rows = [[_code(name), _cell(told[0]), told[1], " or ".join(told[2])] for name, told in said.items()]
    options = [
        [_code(name), _code(key), _cell(allowed(inner, told[3])), "**must be there**" if needed else ""]
        for name, told in said.items()
        for key, inner, needed in keys(told[3], told[3])
    ]
    return _table(["layer", "isolation", "kind", "stands on"], rows), _table(["layer", "option", "value", ""], options)


def _environments(page: dict, known: tuple[str, str]) -> str:
    rows = []
    for name, entry in page["environments"].items():
        layers = ", on it ".join(_layer(layer) for layer in entry["layers"])
        rows.append([_code(name), _code(entry.get("label", name)), layers])
    return f"""# Environments

Those of the default page, made of `config.yaml`. An environment is a stack of layers, whose options are told in
[config.yaml, key by key](../config.md#layers); in labels `{{vm}}` becomes KVM where acceleration was proven, VM (TCG
emulation) elsewhere. More are added by an entry, or by a layer of your own
([Add an environment](../adding-an-environment.md)).

{_table(["name", "label", "layers"], rows)}

## Layers

What an environment may be a stack of, as the files of `strata/layers/` tell it.

{known[0]}

Their options; what each is for is told in [config.yaml, key by key](../config.md#layers).

{known[1]}
"""


def _layer(layer: str | dict) -> str:
    if isinstance(layer, str):
        return _code(layer)
    ((name, options),) = layer.items()
    return _code(f"{name}: " + ", ".join(f"{key} {_value(value)}" for key, value in (options or {}).items()))


def _workloads(workloads: dict[str, dict], page: dict, project: Path) -> str:
    more = yaml.safe_load((project / "everything.yaml").read_text())["workloads"]
    where = {name: "`make paper`" if name in page["workloads"] else "`make everything`" for name in workloads}
    rows = [
        [
            f"[{_cell(declared['title'])}](workloads/{name}.md)",
            _code(name),
            declared.get("question", ""),
            _cell(declared["about"]),
            where[name] if name in page["workloads"] or name in more else "where a page names it",
        ]
        for name, declared in workloads.items()
    ]
    return f"""# Workloads

The folders of `workloads/`, made of their `workload.yaml`. A page of your own chooses among them, and sets their
parameters.

{_table(["workload", "name", "question", "what it measures", "measured by"], rows)}
"""


def _workload(name: str, declared: dict, own: bool) -> str:
    sections = [f"# {declared['title']}", declared["about"]]
    if own:
        sections.append(f"Why it is as it is: [docs/workloads/{name}.md](../../workloads/{name}.md).")
    metrics = [
        [
            _code(key),
            _cell(metric["label"]),
            metric["unit"],
            metric["better"],
            metric.get("statistic", "mean"),
        ]
        for key, metric in declared["metrics"].items()
    ]
    sections += ["## What it gives", _table(["metric", "in words", "unit", "better", "averaged by"], metrics)]
    heads = ["parameter", "meaning", "value", *SCALES]
    parameters = [
        [
            _code(key),
            _cell(parameter["about"]),
            _cell(allowed(parameter["schema"], parameter["schema"])),
            *(_parameter(parameter.get(scale, parameter.get("value"))) for scale in SCALES),
        ]
        for key, parameter in declared.get("parameters", {}).items()
    ]
    sections += ["## Parameters", "Set in `config.yaml` below `workloads`; without that they are those of the scale."]
    sections.append(_table(heads, parameters))
    sections += ["## A cell", f"Warm-up: {declared.get('warmup', {}).get('about', 'none')}."]
    for server in declared.get("servers", []):
        sections.append(f"Server {_code(server['name'])}: {_code(' '.join(server['argv']))}")
    sections.append("\n".join(_steps(declared["run"])))
    sections.append("It counts only if these were found in its log:")
    sections.append("\n".join(f"- {check['name']}: {_code(check['pattern'])}" for check in declared["checks"]))
    packages = ", ".join(_code(package) for package in declared.get("packages", [])) or "none"
    planned = "; in the image only where the page names the workload" if declared.get("image") == "planned" else ""
    sections.append(f"Packages of the distribution that it brings into the image: {packages}{planned}.")
    return "\n\n".join(sections) + "\n"


def _parameter(value: object) -> str:
    if isinstance(value, dict) and "rule" in value:
        rest = ", ".join(f"{key} {inner}" for key, inner in value.items() if key != "rule")
        return f"by the rule {_code(value['rule'])}" + (f" ({rest})" if rest else "")
    return _code(json.dumps(value))


def _steps(steps: list[dict], depth: int = 0) -> list[str]:
    """The steps of a cell as a list of Markdown."""
    lines = []
    for step in steps:
        if "for" in step:
            lines.append(f"{'    ' * depth}- for each value of {_code(step['for'])}:")
            lines += _steps(step["steps"], depth + 1)
        elif "observe" in step:
            lines.append(f"{'    ' * depth}- what the host's processors spent is read")
        else:
            at = ", at the client" if step.get("at") == "client" else ""
            fresh = ", in a system that is brought up for it" if "fresh" in step else ""
            lines.append(f"{'    ' * depth}- {_code(' '.join(step['argv']))}{at}{fresh}")
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

{_table(["type", "to"], [[_code(f"make {name}"), _cell(text)] for name, text in targets])}

{
        _table(
            ["type", "to"],
            [[_code(f"python3 -m strata {name}"), _cell(text)] for name, text in commands],
        )
    }

`python3 -m strata COMMAND --help` names a command's own options.
"""
