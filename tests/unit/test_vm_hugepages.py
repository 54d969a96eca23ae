"""Huge pages: reserved on the host, or on those of its memory nodes that a machine is bound to, and given back."""

import os

import pytest

from strata.host.context import Context
from strata.testbed import journal
from strata.vm import hugepages


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host's counts of huge pages; a node gives 600 at most, of which those that were there are in use."""
    places = {"host": tmp_path / "host", "0": tmp_path / "node0", "1": tmp_path / "node1"}
    for number, place in enumerate(places.values()):
        place.mkdir()
        (place / "nr_hugepages").write_text(f"{number}\n")
        (place / "free_hugepages").write_text("0\n")
    monkeypatch.setattr(hugepages, "HOST", str(places["host"]))
    monkeypatch.setattr(hugepages, "NODE", str(tmp_path / "node{node}"))

    def run(argv, check=True):
        place, count = os.path.dirname(argv[-1]), argv[-2]
        if os.path.isdir(place) and count.isdecimal():
            used = hugepages._read(place, "nr") - hugepages._read(place, "free")
            given = min(int(count), 600)
            (tmp_path / place / "nr_hugepages").write_text(f"{given}\n")
            (tmp_path / place / "free_hugepages").write_text(f"{max(0, given - used)}\n")
        return type("Done", (), {"returncode": 0, "stdout": ""})

    for module in (hugepages, journal):
        monkeypatch.setattr(module, "capture", run)
        monkeypatch.setattr(module, "as_root", list)
    return lambda: {name: hugepages._read(str(place), "nr") for name, place in places.items()}


def machine(*cells, nodes=None):
    """What is read of a machine's settings: the MiB of its nodes, and the host's nodes to which these are bound."""
    return {
        "memory_mib": sum(cells),
        "numa": [{"memory": mib} for mib in cells],
        "extra": {"memory_nodes": nodes},
    }


@pytest.fixture
def noted():
    return []


@pytest.fixture
def context(tmp_path, noted):
    return Context("strata-x", str(tmp_path), None, note=noted.append)


def test_pages_are_reserved_on_the_host_and_given_back(host, context, noted):
    assert hugepages.reserve([machine(512), machine(512)], context) is None
    assert host() == {"host": 512, "0": 1, "1": 2}
    for _ in range(2):
        journal.remove(noted[0])
        assert host() == {"host": 0, "0": 1, "1": 2}


def test_pages_are_reserved_on_the_nodes_that_are_asked_for(host, context, noted):
    assert (
        hugepages.reserve([machine(512, 256, nodes=[0, 1]), machine(256, nodes=[0])], context)
        is None
    )
    assert host() == {"host": 0, "0": 385, "1": 130}
    journal.remove(noted[0])
    assert host() == {"host": 0, "0": 1, "1": 2}


def test_what_the_host_cannot_give_is_said_and_given_back(host, context, monkeypatch, tmp_path):
    assert "600 of 1024 huge pages" in hugepages.reserve([machine(2048)], context)
    assert "memory nodes" in hugepages.reserve([machine(2048, nodes=[0])], context)
    assert host() == {"host": 0, "0": 1, "1": 2}
    monkeypatch.setattr(hugepages, "HOST", str(tmp_path / "none"))
    assert "no huge pages" in hugepages.reserve([machine(2)], context)
