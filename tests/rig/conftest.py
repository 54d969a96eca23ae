"""An emulated host for the tests of a module, which may say what it is made of."""

import json

import pytest

from rig import host, images, root
from rig.hardware import Hardware


@pytest.fixture(scope="module")
def there(request):
    """Boot a host of a module's HARDWARE, with this checkout in it.

    The host has this machine's images, or the module's own IMAGE.
    """
    hardware = getattr(request.module, "HARDWARE", None) or Hardware()
    disk = root.host_disk()
    with host.up(
        hardware, [disk, images.disk(disk, getattr(request.module, "IMAGE", None))], disk
    ) as rig:
        rig.bring_checkout()
        yield rig


@pytest.fixture
def run(there):
    """Run a command in the checkout there, which must end well; what it printed."""
    return lambda command, limit=1800: there.good(f"{host.begin()} && {command}", limit)


@pytest.fixture
def records(there):
    """All records of the checkout there, by environment, workload and repetition."""

    def read():
        text = there.good(f"cd {host.PROJECT} && find results/raw -name '*.json' -exec cat {{}} +")
        decoder, found = json.JSONDecoder(), {}
        while text.strip():
            record, end = decoder.raw_decode(text.lstrip())
            text = text.lstrip()[end:]
            found[record["environment"], record["workload"], record["repetition"]] = record
        return found

    return read
