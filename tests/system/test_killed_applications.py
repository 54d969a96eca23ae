"""A cell of an application that is killed under load leaves none of its servers, natively and in a container."""

import os
import signal
import subprocess
import time

import projects
import pytest
import serving

from strata.system import state

pytestmark = pytest.mark.long

# By workload, the programs that it runs, the last that is started first; names as the kernel has them.
PROGRAMS = {
    "redis-scaleout": ("nutcracker", "haproxy", "redis-server", "redis-benchmark"),
    "dvdstore": ("apache2", "postgres"),
    "cloudstone": ("nginx", "mariadbd", "java", r"php-fpm[0-9.]*"),
    "auction": ("nginx", "uvicorn", "beam.smp", "epmd", "postgres"),
}
# Long enough to be met at work.
PARAMETERS = {name: {"seconds": 60} for name in PROGRAMS}


def running(workload):
    """Which of the programs of a workload run on this machine, in containers too."""
    return [
        name
        for name in PROGRAMS[workload]
        if subprocess.run(["pgrep", "-x", name], stdout=subprocess.DEVNULL, check=False).returncode == 0
    ]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project that measures them."""
    return serving.built(tmp_path_factory.mktemp("killed") / "p", PARAMETERS)


@pytest.mark.parametrize("environment", ["native", "docker"])
@pytest.mark.parametrize("workload", PROGRAMS)
def test_a_killed_cell_leaves_no_server(project, machine_stays, workload, environment):
    assert running(workload) == []
    log = f"results/raw/{environment}/{workload}/1.log"
    argv = projects.command("snakemake", "--cores", "1", log)
    run = subprocess.Popen(
        argv, cwd=project, env=projects.environment(), start_new_session=True, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 300
    while PROGRAMS[workload][0] not in running(workload):
        assert run.poll() is None, run.stderr.read().decode()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    os.kill(state.all_up()[-1]["owner"]["pid"], signal.SIGKILL)
    run.communicate(timeout=300)
    assert run.returncode != 0
    # What was up is removed at the end of the run, or by whoever measures next.
    deadline = time.monotonic() + 60
    while running(workload) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert running(workload) == []
    assert not (project / log).exists()
