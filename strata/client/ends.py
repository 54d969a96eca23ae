"""What can be seen of both ends of the client's link before a run: for `make doctor`.

Each end is asked by the same shell script, which needs no rights; what an end does not tell is "not available".
"""

import contextlib
import re
import shlex
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import IO

from strata.base.errors import UserError
from strata.base.patience import stretched
from strata.base.process import capture
from strata.host.observe import NOT_AVAILABLE

# A row of `make doctor`: what it is about, whether it is there (None: it lacks, and that is no fault), and in words.
Row = tuple[str, bool | None, str]

# "$1": the address of the other end; without it, that from which ssh came.  A device's files in /sys may be those of
# another network, so that they count only where the card's address is the same.  Each line on standard input is
# answered by the time.
LOOK = r"""
exec 2>/dev/null
PATH=$PATH:/usr/sbin:/sbin
if [ -z "$1" ]; then
    set -- $SSH_CONNECTION
    echo "address $3"
fi
if [ "$(id -u)" = 0 ]; then echo "rights root"; elif sudo -n true; then echo "rights sudo"; else echo "rights none"; fi
for tool in tar mount chroot ip tc; do command -v "$tool" >/dev/null || echo "lacks $tool"; done
device=$(ip -o route get "$1" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
echo "device $device"
shown=$(ip -o link show dev "$device")
echo "mtu $(echo "$shown" | sed -n 's/.* mtu \([0-9]*\).*/\1/p')"
card=$(echo "$shown" | sed -n 's/.* link\/[a-z]* \([0-9a-f:]*\).*/\1/p')
rate=$(ethtool "$device" | sed -n 's/^\tSpeed: \([0-9]*\)Mb.*/\1/p')
if [ -z "$rate" ] && [ "$(cat "/sys/class/net/$device/address")" = "$card" ]; then
    rate=$(cat "/sys/class/net/$device/speed")
fi
echo "speed $rate"
ethtool --show-features "$device" | sed -n 's/^\([a-z-]*\): \(on\|off\).*/offload \1 \2/p'
echo "clocksource $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
echo "kept $(timedatectl show --property=NTPSynchronized --value)"
echo end
while read -r line; do date +%s%N; done
"""
# What is told of the offloads, as `ethtool` calls them, and shorter.
OFFLOADS = {
    "rx-checksumming": "checksums in",
    "tx-checksumming": "checksums out",
    "tcp-segmentation-offload": "TSO",
    "generic-segmentation-offload": "GSO",
    "generic-receive-offload": "GRO",
    "large-receive-offload": "LRO",
}
# How often the other clock is asked (the quickest answer counts), and how long all of it may take.
ASKED, PATIENCE = 20, 30.0


@dataclass
class End:
    """An end of the link.  speed in Mbit/s, mtu in bytes; None is what could not be seen."""

    device: str | None
    speed: int | None
    mtu: int | None
    offloads: dict[str, bool]
    clocksource: str | None
    kept: bool | None
    address: str | None
    rights: str | None
    lacks: list[str]


def read(lines: list[str]) -> End:
    """An end from the lines of :data:`LOOK`; whatever else stands among them is left out."""
    told: dict[str, str] = {}
    offloads, lacks = {}, []
    for line in lines:
        key, _, value = line.strip().partition(" ")
        name, _, state = value.partition(" ")
        if key == "offload":
            offloads[name] = state == "on"
        elif key == "lacks":
            lacks.append(value)
        elif value:
            told.setdefault(key, value)

    def number(key: str) -> int | None:
        # A card without a carrier has the speed -1.
        return int(told[key]) if re.fullmatch("[1-9][0-9]{0,8}", told.get(key, "")) else None

    return End(
        device=told.get("device"),
        speed=number("speed"),
        mtu=number("mtu"),
        offloads={short: offloads[name] for name, short in OFFLOADS.items() if name in offloads},
        clocksource=told.get("clocksource"),
        kept={"yes": True, "no": False}.get(told.get("kept", "")),
        address=told.get("address"),
        rights=told.get("rights"),
        lacks=lacks,
    )


def link_row(topic: str, end: End) -> Row:
    """What is told of an end's device."""
    speed = f"{end.speed} Mbit/s" if end.speed else f"speed {NOT_AVAILABLE}"
    states = {word: [name for name, on in end.offloads.items() if on == (word == "on")] for word in ("on", "off")}
    offloads = "; ".join(f"{word}: {', '.join(names)}" for word, names in states.items() if names)
    if not offloads:
        offloads = NOT_AVAILABLE + (" (`ethtool` would tell)" if end.device else "")
    words = f"{end.device or 'device ' + NOT_AVAILABLE}: {speed}, MTU {end.mtu or NOT_AVAILABLE}, offloads {offloads}"
    return topic, True if NOT_AVAILABLE not in words else None, words


def clock_row(here: End, there: End, ahead: tuple[float, float] | None) -> Row:
    """What is told of both clocks.  ahead: by how many seconds the other one is, and within how many that is known."""

    def one(end: End) -> str:
        kept = {True: "kept by a time service", False: "kept by none", None: f"time service {NOT_AVAILABLE}"}[end.kept]
        return f"{end.clocksource or 'clock source ' + NOT_AVAILABLE}, {kept}"

    words = f"here {one(here)}; there {one(there)}; difference "
    if ahead is None:
        return "clocks", None, words + NOT_AVAILABLE
    return "clocks", True, words + f"{1e3 * ahead[0]:+.2f} ms ± {1e3 * ahead[1]:.2f} ms"


def difference(answers: list[tuple[int, int, int]]) -> tuple[float, float] | None:
    """By how many seconds the other clock is ahead, and half of what the quickest question took; None without any.

    answers: (asked, told, heard) in nanoseconds, the middle one by the other clock.
    """
    if not answers:
        return None
    asked, told, heard = min(answers, key=lambda times: times[2] - times[0])
    return (told - (asked + heard) / 2) / 1e9, (heard - asked) / 2e9


def _ask(write: IO[str], answer: IO[str]) -> list[tuple[int, int, int]]:
    found = []
    for _ in range(ASKED):
        asked = time.time_ns()
        write.write("\n")
        write.flush()
        told = answer.readline().strip()
        # A `date` that knows no nanoseconds prints the letter.
        if not re.fullmatch("[0-9]{19}", told):
            break
        found.append((asked, int(told), time.time_ns()))
    return found


def look_there(ssh: list[str]) -> tuple[End, tuple[float, float] | None]:
    """The end to which a command `ssh` leads, and how its clock stands.  Raises UserError where there is no way in."""
    command = [*ssh, shlex.join(["sh", "-c", LOOK, "strata", ""])]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        process = subprocess.Popen(command, text=True, errors="replace", **pipes)  # type: ignore[call-overload]
    except FileNotFoundError:
        raise UserError(f"{command[0]} is not installed: run `make setup`") from None
    late = threading.Timer(stretched(PATIENCE), process.kill)
    late.start()
    try:
        lines = []
        for line in process.stdout:
            if line == "end\n":
                break
            lines.append(line)
        else:
            words = process.stderr.read().strip() or f"exit code {process.wait()}"
            raise UserError(words.splitlines()[-1] if late.is_alive() else f"no answer in {stretched(PATIENCE):g} s")
        try:
            answers = _ask(process.stdin, process.stdout)
        except OSError:
            answers = []
        return read(lines), difference(answers)
    finally:
        late.cancel()
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            # What was not yet sent to a process that has ended is of no use.
            with contextlib.suppress(OSError):
                pipe.close()


def look_here(address: str) -> End:
    """The end on this host of the way to an address."""
    return read(capture(["sh", "-c", LOOK, "strata", address], timeout=PATIENCE, check=False).stdout.splitlines())


def examine(settled: dict) -> list[Row]:
    """What `make doctor` says of the client as config.yaml has it (as from :func:`strata.client.settle`)."""
    rate = f"; limited to {settled['rate']}" if settled["rate"] else ""
    if settled["kind"] != "ssh":
        words = (
            "a network namespace of this host, joined by a veth pair that is made for each cell: speed, MTU and "
            f"offloads are {NOT_AVAILABLE} before, and both ends have one clock{rate}"
        )
        return [("client", True, words)]
    name = settled["ssh"]
    own = ["-F", settled["ssh_config"]] if settled["ssh_config"] else []
    options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "LogLevel=ERROR"]
    try:
        there, ahead = look_there(["ssh", *own, *options, name, "--"])
    except UserError as error:
        return [("client", False, f"no way into {name} ({error}); `ssh {name} true` must work without a question")]
    here = look_here(there.address or "")
    rows = [
        _way_in(name, there, rate),
        link_row("link, this end", here),
        link_row("link, its end", there),
        clock_row(here, there, ahead),
    ]
    if here.mtu and there.mtu and here.mtu != there.mtu:
        words = f"{here.mtu} here, {there.mtu} there: set both ends alike, or large packets are lost or cut"
        rows.insert(3, ("MTU", None, words))
    return rows


def _way_in(name: str, there: End, rate: str) -> Row:
    if there.rights not in ("root", "sudo"):
        return "client", False, f"{name} lets in one who is not root and may not `sudo -n`"
    if there.lacks:
        return "client", False, f"{name} lacks {', '.join(there.lacks)}"
    how = "as root" if there.rights == "root" else "with `sudo -n`"
    return "client", True, f"{name} at {there.address or 'an address that is ' + NOT_AVAILABLE}, {how}{rate}"
