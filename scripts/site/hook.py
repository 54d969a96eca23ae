"""What MkDocs does not do by itself for docs/: generated pages, drawn diagrams, and files beside docs/ that it links.

MkDocs calls the functions that begin with ``on_``.
"""

import posixpath
import re
from pathlib import Path

import merm
import reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PROJECT = Path(__file__).resolve().parent.parent.parent
# A link in Markdown that leads upward: its text's end, what it leads to, and where in it.
LINK = re.compile(r"(\]\()(\.\./[^)#\s]*)((?:#[^)\s]*)?\))")
MERMAID = re.compile(r"```mermaid\n(.*?)\n```", re.DOTALL)


def _named(entries: list) -> set[str]:
    """The pages that a navigation names."""
    found = set()
    for entry in entries:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        found |= _named(value) if isinstance(value, list) else {value}
    return found


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give pages of docs/ that the navigation does not name a place at the end of what explains."""
    pages = {path.relative_to(config.docs_dir).as_posix() for path in Path(config.docs_dir).rglob("*.md")}
    more = sorted(pages - _named(config.nav))
    explained = next(entry["Explanation"] for entry in config.nav if "Explanation" in entry)
    explained += [{"More": more}] if more else []
    return config


def _outside(page: str, link: str) -> str | None:
    """The file or folder of the project outside of docs/ to which a link of a page leads; None for all others."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link))
    return None if path.startswith("docs/") else path


def _shown(path: str) -> str:
    """Where the site has a file or folder of the project."""
    return f"source/{path}/index.md" if (PROJECT / path).is_dir() else f"source/{path}.txt"


def _brought(config: MkDocsConfig, path: str) -> list[File]:
    """What the site needs of a file or folder of the project that a page links."""
    place = PROJECT / path
    if place.is_file():
        return [File.generated(config, _shown(path), abs_src_path=str(place))]
    inner = sorted(item for item in place.iterdir() if item.is_file())
    rows = [f"- [{item.name}]({item.name}.txt)" for item in inner]
    index = File.generated(config, _shown(path), content="\n".join([f"# {path}", "", *rows, ""]))
    return [index, *(file for item in inner for file in _brought(config, f"{path}/{item.name}"))]


def _drawn(page: str, number: int) -> str:
    return f"drawn/{page.removesuffix('.md').replace('/', '-')}-{number}.svg"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, the drawings of Mermaid's diagrams, and what pages link outside of docs/."""
    for name, content in reference.pages(PROJECT).items():
        files.append(File.generated(config, name, content=content))
    for file in list(files.documentation_pages()):
        text = file.content_string
        for number, diagram in enumerate(MERMAID.findall(text)):
            drawing = merm.render_diagram(diagram.replace("<br>", "<br/>"))
            files.append(File.generated(config, _drawn(file.src_uri, number), content=drawing))
        for _, link, _ in LINK.findall(text):
            path = _outside(file.src_uri, link)
            if path and (path.startswith("../") or not (PROJECT / path).exists()):
                raise PluginError(f"{file.src_uri} links {link}, which is not in the project")
            for more in _brought(config, path) if path else []:
                if files.get_file_from_path(more.src_uri) is None:
                    files.append(more)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links out of docs/ to what the site has of it, and put the drawing in the place of a diagram."""
    here = page.file.src_uri
    up = posixpath.dirname(here) or "."

    def lead(match: re.Match) -> str:
        path = _outside(here, match[2])
        return match[1] + posixpath.relpath(_shown(path), up) + match[3] if path else match[0]

    numbers = iter(range(len(MERMAID.findall(markdown))))

    def draw(match: re.Match) -> str:
        source = posixpath.relpath(_drawn(here, next(numbers)), up)
        return f'<div class="wide" markdown>\n[![a diagram; it opens by itself]({source})]({source})\n</div>'

    return MERMAID.sub(draw, LINK.sub(lead, markdown))
