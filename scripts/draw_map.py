"""Draw the way of a number through the rooms, and what each room may call, into docs/architecture.md.

Usage: python scripts/draw_map.py [--check]; with --check it only says whether the page is as the code is.
Rules and their order come from Snakemake, rooms and what they are for from the code itself.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PAGE = PROJECT / "docs" / "architecture.md"
sys.path.insert(0, str(PROJECT))

import strata  # noqa: E402

# What stands before the first rule: made when a run begins (strata/snakemake/workflow.py).
BEFORE = [
    ("config", "config.yaml and workloads/*/workload.yaml", ""),
    ("plan", "results/plan.json", "strata/experiment"),
    ("image", "results/image.json", "strata/image"),
]
ARROWS_BEFORE = [("config", "plan"), ("plan", "image"), ("plan", "cell"), ("image", "cell")]


def rules() -> dict[str, dict]:
    """Every rule that runs a command of ours: its first product, and the room that does it."""
    found = {}
    for path in sorted((PROJECT / "rules").glob("*.smk")):
        for name, body in re.findall(
            r"^ *(?:rule|checkpoint) (\w+):\n(.*?)(?=^\S|^ *rule |\Z)", path.read_text(), re.M | re.S
        ):
            script, command = re.search(r"analysis/(\w+)\.R", body), re.search(r"-m strata (\w+)", body)
            product = re.search(r'output:.*?"([^"]+)"', body, re.S)
            if command and product:
                room = _room(script[1] if script else None, command[1])
                found[name] = {"product": _product(body, product[1]), "room": room}
    return found


def _product(body: str, first: str) -> str:
    endings = re.search(r"multiext\(([^)]*)\)", body)
    if endings is None:
        return first
    # Those of its files that Snakemake's report shows stand by themselves.
    shown = re.findall(rf'"{re.escape(first)}(\.\w+)"', body)
    return first + ", ".join([*re.findall(r'"(\.\w+)"', endings[1]), *shown])


def _room(script: str | None, command: str) -> str:
    """The highest room that a command loads."""
    if script is None:
        return f"strata/{command}" if command in strata.ROOMS else "strata"
    loaded = re.search(r'load_rooms\(root, "(\w+)"', (PROJECT / "analysis" / f"{script}.R").read_text())
    return f"analysis/{loaded[1]}" if loaded else "analysis"


def arrows() -> list[tuple[str, str]]:
    """Rule → rule, as Snakemake sees it for an archive, without those that others stand for."""
    command = [sys.executable, "-m", "snakemake", "--rulegraph", "dot", "--config", "repetitions=5", "--", "archive"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    names = dict(re.findall(r'(\d+)\[label = "(\w+)"', done.stdout))
    pairs = {(names[a], names[b]) for a, b in re.findall(r"(\d+) -> (\d+)", done.stdout)}
    after: dict[str, set[str]] = {}
    for one, other in pairs:
        after.setdefault(one, set()).add(other)

    def reached(name: str) -> set[str]:
        return {far for near in after.get(name, ()) for far in {near, *reached(near)}}

    return sorted((one, other) for one, other in pairs if not any(other in reached(near) for near in after[one]))


def picture() -> str:
    """The way of a number, as a Mermaid diagram."""
    ways = arrows()
    known = rules()
    drawn = [(name, text, room) for name, text, room in BEFORE]
    drawn += [(name, known[name]["product"], known[name]["room"]) for name in known if any(name in way for way in ways)]
    nodes = [f'  {name}["{text}{f"<br>{room}" if room else ""}"]' for name, text, room in drawn]
    return "\n".join(
        ["```mermaid", "flowchart TD", *nodes, *(f"  {a} --> {b}" for a, b in [*ARROWS_BEFORE, *ways]), "```"]
    )


def called(room: str) -> list[str]:
    """The rooms of the package that a room calls, from the ground up."""
    found = set()
    for path in (PROJECT / "strata" / room).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                found |= {name.split(".")[1] for name in names if name.startswith("strata.")}
    return [name for name in strata.ROOMS if name in found - {room}]


def tables() -> str:
    """The rooms of both languages, from the ground up, with what they are for."""
    lines = ["| room | what it is for | calls |", "|---|---|---|"]
    for name in strata.ROOMS:
        purpose = ast.get_docstring(ast.parse((PROJECT / "strata" / name / "__init__.py").read_text())) or ""
        lines.append(f"| `strata/{name}` | {_first(purpose)} | {', '.join(called(name)) or 'nothing'} |")
    loader = (PROJECT / "analysis" / "load.R").read_text()
    rooms = re.findall(r'^  (\w+) = "(.*)",?$', loader[loader.index("ROOMS") :], re.M)
    lines += ["", "| room | what it is for |", "|---|---|"]
    lines += [f"| `analysis/{name}` | {purpose[0].upper()}{purpose[1:]}. |" for name, purpose in rooms]
    return "\n".join(lines)


def _first(docstring: str) -> str:
    """The first sentence, or paragraph, of a docstring in one line."""
    return " ".join(docstring.split("\n\n")[0].split())


def page(text: str) -> str:
    """The page's text with its drawn parts as the code is."""
    for mark, part in (("picture", picture()), ("rooms", tables())):
        start, end = f"<!-- drawn: {mark} -->", "<!-- end -->"
        before, _, rest = text.partition(start)
        text = f"{before}{start}\n{part}\n{end}{rest.partition(end)[2]}"
    return text


if __name__ == "__main__":
    told = PAGE.read_text()
    now = page(told)
    if sys.argv[1:] == ["--check"]:
        if now != told:
            sys.exit("docs/architecture.md is not as the code is: run `make map`")
    else:
        PAGE.write_text(now)
