"""Every link of a document leads to a file that is there, and to a heading that it has."""

import re

import projects

LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")


def headings(text):
    """The link names of headings: lowercase letters, hyphens for spaces, no punctuation."""
    found = re.findall(
        r"^#+ +(.+?) *$",
        re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL),
        re.MULTILINE,
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_no_link_is_dead():
    pages = [*projects.ROOT.glob("*.md"), *(projects.ROOT / "docs").rglob("*.md")]
    assert len(pages) > 25
    dead = []
    for page in pages:
        for name, heading in LINK.findall(page.read_text()):
            target = (page.parent / name).resolve() if name else page
            missing = not target.exists() or (
                heading and heading not in headings(target.read_text())
            )
            dead += [f"{page.name}: {name}#{heading}"] * bool(missing)
    assert dead == []
