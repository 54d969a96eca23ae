"""The house: which room calls which."""

import ast
import functools
import graphlib
from pathlib import Path

import projects
import pytest

import strata

PACKAGE = projects.ROOT / "strata"


def modules():
    """Name of every module of the package → its file."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def imported(path: Path, known) -> set[str]:
    """Modules of the package that a file imports, also within its functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in inner}
    return {name for name in found if name in known}


@functools.cache
def arrows():
    known = modules()
    return {name: imported(path, known) - {"strata", name} for name, path in known.items()}


def room(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and (PACKAGE / parts[1]).is_dir() else None


def test_every_folder_is_a_room_in_the_order_and_says_what_it_is_for():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == set(strata.ROOMS)
    for name in strata.ROOMS:
        assert ast.get_docstring(ast.parse((PACKAGE / name / "__init__.py").read_text()))


@pytest.mark.parametrize("name", strata.ROOMS)
def test_a_room_calls_only_what_lies_below_it(name):
    allowed = {*strata.ROOMS[: strata.ROOMS.index(name) + 1]}
    upward = {
        (module, other)
        for module, others in arrows().items()
        if room(module) == name
        for other in others
        if room(other) not in allowed
    }
    assert not upward


def test_no_modules_form_a_circle():
    graphlib.TopologicalSorter(arrows()).prepare()
