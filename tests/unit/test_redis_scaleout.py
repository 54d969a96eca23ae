"""Redis at scale: what of a server's log fails a cell, as its declaration says."""

import re

import projects
import pytest
import yaml


@pytest.fixture(scope="module")
def trouble():
    page = yaml.safe_load((projects.ROOT / "workloads/redis-scaleout/workload.yaml").read_text())
    assert len({server["trouble"] for server in page["servers"]}) == 1
    return re.compile(page["servers"][0]["trouble"])


@pytest.mark.parametrize(
    "line",
    [
        "1392:C 22 Nov 2026 13:58:54.771 # WARNING Memory overcommit must be enabled! Without it, a save may fail",
        "1392:C 22 Nov 2026 13:58:54.771 * oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo",
        "1392:M 22 Nov 2026 13:58:54.829 * Ready to accept connections tcp",
        "1392:M 22 Nov 2026 14:02:15.280 # Redis is now ready to exit, bye bye...",
        '{"pinned": 28000, "cpu": 0, "node": 0, "memory": "bound"}',
    ],
)
def test_what_a_server_says_anyway_is_no_trouble(trouble, line):
    assert not trouble.search(line)


@pytest.mark.parametrize(
    "line",
    [
        "1392:M 22 Nov 2026 14:02:15.280 # Error accepting a client connection: Too many open files",
        "1392:M 22 Nov 2026 14:02:15.280 # Error writing to the AOF file: No space left on device",
        "1392:M 22 Nov 2026 14:02:15.280 # Out Of Memory allocating 4096 bytes!",
        "=== REDIS BUG REPORT START: Cut & paste starting from here ===",
        "*** FATAL CONFIG FILE ERROR (Redis 8.0.2) ***",
    ],
)
def test_what_a_server_logs_as_a_warning_or_worse_is_trouble(trouble, line):
    assert trouble.search(line)
