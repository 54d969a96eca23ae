"""Whether a second machine can be the client: ssh access, missing programs, and the MTU of both ends of the link."""

import re
import shlex

from strata.base.errors import UserError
from strata.base.process import capture
from strata.base.shapes import Fields
from strata.host.observe import NOT_AVAILABLE

# A line of `make doctor`: its subject, whether it is available (None: neither needed nor an error), and the details.
Row = tuple[str, bool | None, str]
# "$1": the address of the other end; without it, that from which ssh came.
LOOK = r"""
exec 2>/dev/null
PATH=$PATH:/usr/sbin:/sbin
[ -n "$1" ] || { set -- $SSH_CONNECTION; echo "address $3"; }
if [ "$(id -u)" = 0 ] || sudo -n true; then echo "root yes"; fi
for tool in tar mount chroot ip tc; do command -v "$tool" >/dev/null || echo "lacks $tool"; done
device=$(ip -o route get "$1" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
echo "mtu $(ip -o link show dev "$device" | sed -n 's/.* mtu \([0-9]*\).*/\1/p')"
"""
PATIENCE = 30.0


def examine(chosen: str | Fields) -> list[Row]:
    """What `make doctor` says of the config's ``client``."""
    given = {} if isinstance(chosen, str) else chosen
    rate = f"; limited to {given['rate']}" if given.get("rate") else ""
    if "ssh" not in given:
        return [("client", True, f"a network namespace of this host, joined by a veth pair{rate}")]
    name = given["ssh"]
    own = ["-F", given["ssh_config"]] if given.get("ssh_config") else []
    ssh = ["ssh", *own, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "LogLevel=ERROR", name, "--"]
    try:
        done = capture([*ssh, shlex.join(["sh", "-c", LOOK, "strata", ""])], timeout=PATIENCE, check=False)
    except UserError as error:
        return [("client", False, str(error))]
    there = _told(done.stdout)
    if done.returncode != 0 or "address" not in there:
        words = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return [("client", False, f"no way into {name} ({words}); `ssh {name} true` must work without a question")]
    wrong = [] if "root" in there else ["lets in one who is not root and may not `sudo -n`"]
    wrong += [f"lacks {', '.join(there['lacks'])}"] if "lacks" in there else []
    if wrong:
        return [("client", False, f"{name} {' and '.join(wrong)}")]
    address = there["address"][0]
    here = _told(capture(["sh", "-c", LOOK, "strata", address], timeout=PATIENCE, check=False).stdout)
    ends = [end.get("mtu", [NOT_AVAILABLE])[0] for end in (here, there)]
    alike = ends[0] == ends[1] or NOT_AVAILABLE in ends
    words = f"MTU {ends[0]} here, {ends[1]} there" + (
        "" if alike else ": large packets are lost or cut; set both alike"
    )
    return [("client", True, f"{name} at {address}{rate}"), ("link", True if alike else None, words)]


def _told(text: str) -> dict[str, list[str]]:
    """What an end says, by its key; whatever else stands among it is left out."""
    found: dict[str, list[str]] = {}
    for key, value in re.findall(r"^(address|root|lacks|mtu) (\S+)$", text, re.MULTILINE):
        found.setdefault(key, []).append(value)
    return found
