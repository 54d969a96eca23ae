"""What MkDocs does not do by itself for docs/: generated pages, and links to files beside docs/, which it lacks.

MkDocs calls the functions that begin with ``on_``.
"""

import posixpath
import re
from pathlib import Path

import reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PROJECT = Path(__file__).resolve().parent.parent.parent
# A link in Markdown that leads upward: its text, and what it leads to.
LINK = re.compile(r"\[([^\[\]]*)\]\((\.\./[^)#\s]*)(?:#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for name, content in reference.pages(PROJECT).items():
        files.append(File.generated(config, name, content=content))
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
