"""Servers in the foreground, which end together, with the exit code of the worst."""

import subprocess
import time

import projects
import pytest

SOURCED = projects.ROOT / "workloads" / "common" / "sourced"
# Two servers with their numbers as arguments.
SCRIPT = """
source {folder}/supervise.sh
for number in 0 1; do
    bash -c '{server}' server "$number" &
    servers+=($!)
done
echo up
supervise {signal}
"""
OBEYS = 'trap "exit 0" TERM USR1; echo ready; while :; do sleep 0.05; done'
EXITS = 'trap "exit 3" TERM; echo ready; while :; do sleep 0.05; done'
# Ends by another signal than the one it gets.
KILLED = 'trap "kill -USR2 $$" TERM; echo ready; while :; do sleep 0.05; done'
# Ends with the number of signals that it got, less one.
COUNTS = 'n=0; trap "n=\\$((n + 1))" TERM; echo ready; until [ $n -gt 0 ]; do sleep 0.05; done; '
COUNTS += "sleep 0.3; exit $((n - 1))"
SLEEPS = "echo ready; exec sleep 60"


@pytest.mark.parametrize(
    ("server", "signal", "is_ended", "code"),
    [
        pytest.param(OBEYS, "TERM", True, 0, id="well"),
        pytest.param(OBEYS, "USR1", True, 0, id="well by another signal"),
        pytest.param(SLEEPS, "TERM", True, 0, id="by the signal itself"),
        pytest.param(SLEEPS, "USR1", True, 0, id="by another signal itself"),
        pytest.param(COUNTS, "TERM", True, 0, id="by one signal"),
        pytest.param(EXITS, "TERM", True, 3, id="badly"),
        pytest.param(KILLED, "TERM", True, 140, id="killed"),
        pytest.param(f"[ $1 = 0 ] || exit 0; {SLEEPS}", "TERM", False, 1, id="one by itself"),
        pytest.param(
            f"[ $1 = 0 ] || exit 7; {SLEEPS}", "TERM", False, 7, id="one by itself and badly"
        ),
    ],
)
def test_servers_end_together_by_one_signal(server, signal, is_ended, code):
    script = SCRIPT.format(folder=SOURCED, server=server, signal=signal)
    argv = ["bash", "-euo", "pipefail", "-c", script]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        try:
            if is_ended:
                assert run.stdout is not None
                lines = sorted(run.stdout.readline() for _ in range(3))
                assert lines == ["ready\n", "ready\n", "up\n"]
                time.sleep(0.1)
                run.terminate()
            output, _ = run.communicate(timeout=30)
        finally:
            run.kill()
    assert run.returncode == code
    assert ("ERROR: a server ended by itself" in output) == (not is_ended)
