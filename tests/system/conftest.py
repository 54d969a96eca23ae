"""Real Docker, the real image, and a look at the machine before and after."""

import subprocess
import warnings

import leftovers
import projects
import pytest

from strata.environments.common import registry
from strata.testbed import journal, lifecycle
from strata.util import locks


def pytest_collection_modifyitems(items):
    """What needs no image comes first, what needs a machine last: a cheap failure is told early."""
    items.sort(
        key=lambda item: ("image" in item.fixturenames, item.path.name.startswith("test_vm"))
    )


@pytest.fixture(scope="session", autouse=True)
def services(request):
    """Start Docker and libvirt before all tests.

    So the look at the machine before a test includes everything that the distribution defines.
    """
    leftovers.wait_for_others(request.config)
    for name in ("dockerd", "libvirtd"):
        subprocess.run([projects.ROOT / "scripts" / f"{name}.sh"], check=True, timeout=120)
    # What was left before is nothing that a test left: it goes, and is told.
    if not journal.read_entries():
        for words in lifecycle.remove_marked_leftovers():
            warnings.warn(
                f"left on this machine before the tests, and removed: {words}", stacklevel=1
            )


@pytest.fixture
def machine_stays(request):
    """The test leaves nothing on the machine, nor of any layer what that finds by its own marks."""
    leftovers.wait_for_others(request.config)
    before = leftovers.calm()
    yield before
    assert leftovers.settle(before) == before
    if not journal.read_entries():
        assert [
            left
            for name in registry.list_layer_names()
            for left in registry.load_layer_class(name).remove_systems()
        ] == []


@pytest.fixture(scope="session")
def image():
    """The image of the checkout, built if it is not in the cache."""
    return projects.image(projects.ROOT)


@pytest.fixture
def see_image():
    """See that Docker on the host has an image, as a container that comes up does."""

    def see(image):
        with locks.hold_machine_lock():
            try:
                lifecycle.System(
                    "docker", [{"docker": {"network": "host", "data": "layered"}}], image
                )
            finally:
                lifecycle.take_down_systems()

    return see
