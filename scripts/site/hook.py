"""What MkDocs does not do by itself for docs/: generated pages, and links to files beside docs/, which it lacks.

MkDocs calls the functions that begin with ``on_``.
"""

import posixpath
import re
from pathlib import Path

import yaml
from keys import cell, code, table
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PROJECT = Path(__file__).resolve().parent.parent.parent
# A link in Markdown that leads upward: its text, and what it leads to.
LINK = re.compile(r"\[([^\[\]]*)\]\((\.\./[^)#\s]*)(?:#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the workloads' declarations: one of all, and one of each."""
    explained = (PROJECT / "docs/workloads.md").read_text()
    measured = {
        name: command
        for page, command in (("everything", "make everything"), ("config", "make paper"))
        for name in yaml.safe_load((PROJECT / f"{page}.yaml").read_text())["workloads"]
    }
    rows = []
    for path in sorted(PROJECT.glob("workloads/*/workload.yaml")):
        name, text = path.parent.name, path.read_text()
        declared = yaml.safe_load(text)
        title, about, question = declared["title"], declared["about"], declared.get("question", "")
        by = code(measured[name]) if name in measured else "where a page names it"
        rows.append([f"[{cell(title)}](workloads/{name}.md)", code(name), question, cell(about), by])
        how = f"How it works: [The workloads](../../workloads.md#{name}). " if f"\n## {name}\n" in explained else ""
        keys = "Its declaration ([the keys](../../workload-reference.md)); `config.yaml` sets its parameters:"
        content = f"# {title}\n\n{about}\n\n{how}{keys}\n\n```yaml\n{text}```\n"
        files.append(File.generated(config, f"reference/workloads/{name}.md", content=content))
    heads = ["workload", "name", "question", "what it measures", "measured by"]
    about = "The folders of `workloads/`. A page of your own chooses among them, and sets their parameters."
    content = f"# Workloads\n\n{about}\n\n{table(heads, rows)}\n"
    files.append(File.generated(config, "reference/workloads.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave the text alone of a link out of docs/, where what it leads to is in the project."""
    here = page.file.src_uri

    def text(match: re.Match) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(here), match[2]))
        if path.startswith("docs/"):
            return match[0]
        if path.startswith("../") or not (PROJECT / path).exists():
            raise PluginError(f"{here} links {match[2]}, which is not in the project")
        return match[1]

    return LINK.sub(text, markdown)
