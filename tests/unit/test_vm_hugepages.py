"""Huge pages are reserved on the host or on the memory nodes of machines, and given back."""

import os

import pytest

from strata.host.context import Context
from strata.testbed import journal
from strata.vm import hugepages

# Pages that are reserved already, and in use.
BEFORE = {"host": 0, "0": 1, "1": 2}


@pytest.fixture
def count_pages(tmp_path, monkeypatch):
    """An invented host of two memory nodes, each of which has 600 pages at most.

    Counts the reserved ones.
    """
    folders = {name: tmp_path / f"node{name}" for name in BEFORE}
    for name, folder in folders.items():
        folder.mkdir()
        (folder / "nr_hugepages").write_text(f"{BEFORE[name]}\n")
        (folder / "free_hugepages").write_text("0\n")
    monkeypatch.setattr(hugepages, "HOST", str(folders["host"]))
    monkeypatch.setattr(hugepages, "NODE", str(tmp_path / "node{node}"))

    def count(folder):
        return int((folder / "nr_hugepages").read_text())

    def run(argv, check=True):
        folder, wanted = tmp_path / os.path.dirname(argv[-1]), argv[-2]
        if folder.parent == tmp_path and wanted.isdecimal():
            pages = min(int(wanted), 600)
            (folder / "nr_hugepages").write_text(f"{pages}\n")
            (folder / "free_hugepages").write_text(f"{max(0, pages - BEFORE[folder.name[4:]])}\n")
        return type("Done", (), {"returncode": 0, "stdout": ""})

    for module in (hugepages, journal):
        monkeypatch.setattr(module, "capture_output", run)
        monkeypatch.setattr(module, "wrap_as_root", list)
    return lambda: {name: count(folder) for name, folder in folders.items()}


def machine(*cells, nodes=None):
    """A machine's settings: the MiB of its nodes, and the host's nodes to which these are bound."""
    return {
        "memory_mib": sum(cells),
        "numa": [{"memory": mib} for mib in cells],
        "extra": {"memory_nodes": nodes},
    }


@pytest.mark.parametrize(
    ("machines", "reserved", "refusal"),
    [
        ([machine(512), machine(512)], {**BEFORE, "host": 512}, None),
        (
            [machine(512, 256, nodes=[0, 1]), machine(256, nodes=[0])],
            {"host": 0, "0": 385, "1": 130},
            None,
        ),
        ([machine(2048)], BEFORE, "600 of 1024 huge pages"),
        ([machine(2048, nodes=[0])], BEFORE, "memory nodes"),
        ([machine(512, nodes=[7])], BEFORE, "no huge pages"),
    ],
)
def test_pages_are_reserved_and_given_back_or_refused(
    count_pages, tmp_path, machines, reserved, refusal
):
    entries = []
    context = Context("strata-x", str(tmp_path), None, note_cleanup=entries.append)
    reason = hugepages.reserve_huge_pages(machines, context)
    assert reason is None if refusal is None else refusal in reason
    assert count_pages() == reserved
    for entry in [*entries, *entries]:
        journal.run_cleanup(entry)
        assert count_pages() == BEFORE
