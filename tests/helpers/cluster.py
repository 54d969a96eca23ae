"""A real Slurm on this host for tests: munged, slurmctld and one slurmd for each node.

Each node acts as a separate machine.  It has its own name (UTS namespace), its own processes (PID
namespace) and its own place for state (mount namespace).  It dies like a machine, with everything
that runs on it.  All nodes have the processors of this host.
"""

import os
import secrets
import shutil
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "sinfo", "scontrol")
ROOM = "/usr/sbin:/sbin:" + os.environ.get("PATH", "")
CONFIG = """
ClusterName=strata
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
ReturnToService=2
SlurmdTimeout=10
InactiveLimit=0
KillWait=5
MinJobAge=300
MpiDefault=none
SlurmdParameters=config_overrides
{nodes}
PartitionName=measure Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    """The programs that a cluster needs and that are not here."""
    return [name for name in PROGRAMS if shutil.which(name, path=ROOM) is None]


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class Cluster:
    """A context manager that runs a separate Slurm below a folder and stops all of it at the end.

    own: folders of the host that each node replaces with its own ones (``folder/NODE/…``).
    """

    def __init__(self, folder: Path, names: list[str], own: list[Path]) -> None:
        self.folder, self.names, self.own = folder, names, own
        self.processes: dict[str, subprocess.Popen] = {}
        controller, *ports = free_ports(1 + len(names))
        rest = f"CPUs={os.cpu_count()} RealMemory=1000 State=UNKNOWN"
        nodes = "\n".join(
            f"NodeName={name} NodeAddr=127.0.0.1 Port={port} {rest}"
            for name, port in zip(names, ports, strict=True)
        )
        folder.mkdir(parents=True)
        (folder / "state").mkdir()
        (folder / "munge").mkdir(mode=0o755)
        host = os.uname().nodename.split(".")[0]
        text = CONFIG.format(
            host=host, controller=controller, folder=folder, nodes=nodes, names=",".join(names)
        )
        self.settings = folder / "etc"
        self.settings.mkdir()
        (self.settings / "slurm.conf").write_text(text)
        (self.settings / "cgroup.conf").write_text(
            "CgroupAutomount=no\nConstrainCores=no\nConstrainRAMSpace=no\n"
        )
        key = folder / "munge/key"
        key.write_bytes(secrets.token_bytes(64))
        key.chmod(0o600)

    @property
    def variables(self) -> dict[str, str]:
        """What makes programs of Slurm's speak with this cluster."""
        return {"SLURM_CONF": str(self.settings / "slurm.conf"), "PATH": ROOM}

    def __enter__(self) -> "Cluster":
        try:
            munge = self.folder / "munge"
            words = [
                "munged",
                "--foreground",
                "--force",
                "--num-threads=2",
                f"--socket={munge}/socket",
            ]
            words += [
                f"--{name}={munge}/{name.partition('-')[0]}"
                for name in ("key-file", "pid-file", "seed-file")
            ]
            self._start("munged", [*words, f"--log-file={munge}/log"])
            self._await(lambda: (munge / "socket").exists(), "munged")
            self._start("slurmctld", ["slurmctld", "-D"])
            for name in self.names:
                self.start(name)
            self._await(lambda: self.states() == dict.fromkeys(self.names, "idle"), "all nodes", 60)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in reversed(list(self.processes)):
            self.kill(name)

    def _start(self, name: str, words: list[str]) -> None:
        with open(self.folder / f"{name}.out", "ab") as output:
            self.processes[name] = subprocess.Popen(
                words,
                env={**os.environ, **self.variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def start(self, name: str) -> None:
        """Switch a node on."""
        room = self.folder / name
        # A step of a job that Snakemake's executor starts looks there, whatever SLURM_CONF says.
        script = [f"hostname {name}", f"mount --bind {self.settings} /etc/slurm"]
        for number, place in enumerate(self.own):
            (room / str(number)).mkdir(parents=True, exist_ok=True)
            place.mkdir(parents=True, exist_ok=True)
            script.append(f"mount --bind {room}/{number} {place}")
        (self.folder / f"spool-{name}").mkdir(exist_ok=True)
        script.append(f"exec slurmd -D -N {name}")
        alone = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self._start(name, [*alone, "sh", "-ec", "\n".join(script)])

    def kill(self, name: str) -> None:
        """Switch a node off, or end a daemon: at once, with all that runs there."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def states(self) -> dict[str, str]:
        """What Slurm holds of its nodes."""
        words = ["sinfo", "--noheader", "--Node", "--format=%N %t"]
        done = subprocess.run(
            words,
            env={**os.environ, **self.variables},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)

    def _await(self, is_so, what: str, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > deadline:
                told = "\n".join(
                    path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.out")
                )
                raise AssertionError(f"{what}: not there in {seconds} s; {self.states()}\n{told}")
            time.sleep(0.2)
