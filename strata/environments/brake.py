"""A brake on a native system, as a positive control: it uses a known share of every CPU."""

from strata.environments.common import layer
from strata.host import cgroups
from strata.util.process import capture_output, wrap_as_root

# Argument: a share.  On every CPU, and on all at the same times, it runs for that share of each
# 5 ms, with priority over all that is not the kernel's.  Such a period is shorter than a trial of
# STREAM, whose result is that of the best trial.
TAKE_TIME = """
import os, sys, time
share, period = float(sys.argv[1]), 5_000_000
cpu, *further_cpus = os.sched_getaffinity(0)
for further_cpu in further_cpus:
    if os.fork() == 0:
        cpu = further_cpu
        break
os.sched_setaffinity(0, {cpu})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
since, used = time.monotonic_ns(), time.process_time_ns()
while True:
    start = (time.monotonic_ns() // period + 1) * period
    time.sleep((start - time.monotonic_ns()) / 1e9)
    now = time.monotonic_ns()
    if now > start + period:
        # It was frozen: the share of that time is not made up for.
        since, used = now, time.process_time_ns()
    while time.process_time_ns() - used < share * (time.monotonic_ns() - since):
        pass
"""


class Layer(layer.Layer):
    """A brake: processes in the system's control group that use a share of every CPU's time.

    The processes are frozen and ended with that control group.  Option `share`: the share, from 0
    to 0.5.
    """

    isolation = "bare"
    title = "a brake"
    stands_on = ("chroot",)
    image_forms = ()
    stands_idle = True
    needs_root = True
    options_schema = layer.build_options_schema(
        "share",
        share={
            "type": "number",
            "minimum": 0,
            "maximum": 0.5,
            "description": "of the processors' time",
        },
    )

    def start(self) -> None:
        """Start the brake's processes in the background, in the system's control group.

        The layer below created the group.  The journal needs no entry for the processes: they are
        ended with that group.
        Raises UserError if they cannot be started.
        """
        group_folders = []
        for folder in cgroups.list_group_folders(self.context.id):
            # The folder is /sys/fs/cgroup/HIERARCHY/...; in version 1 of control groups, HIERARCHY
            # names its controllers, for example cpu,cpuacct.
            hierarchy = folder.split("/")[4]
            # In a group of the controller cpu, processes of a real-time priority get no CPU time.
            if "cpu" not in hierarchy.split(","):
                group_folders.append(folder)
        join_command = ["sh", "-euc", cgroups.JOIN, "strata", *group_folders, "--"]
        brake = ["python3", "-S", "-c", TAKE_TIME, str(self.options["share"])]
        start = ["sh", "-euc", layer.START_IN_BACKGROUND, "strata", *join_command, *brake]
        capture_output(wrap_as_root(start))

    def wrap_command(self, argv: list[str], reads_stdin: bool = False) -> list[str]:
        """Return the command unchanged: it runs in the layer below."""
        return argv
