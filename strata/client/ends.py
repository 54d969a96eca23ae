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
[ -n "$1" ] || { set -- $SSH_CONNECTION; echo "from $1"; echo "address $3"; }
if [ "$(id -u)" = 0 ]; then echo "root yes"; elif sudo -n true; then echo "root sudo"; fi
lacks=$(for tool in tar mount chroot ip tc; do command -v "$tool" >/dev/null || echo "$tool"; done)
[ -z "$lacks" ] || echo "lacks" $lacks
device=$(ip -o route get "$1" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
echo "device $device"
echo "mtu $(ip -o link show dev "$device" | sed -n 's/.* mtu \([0-9]*\).*/\1/p')"
"""
PATIENCE = 30.0


def there(ssh: list[str]) -> dict[str, str]:
    """What the machine at the end of an ssh command says: ``{from, address, root, device, mtu}``.

    Raises UserError where it cannot be the client.
    """
    name, key = ssh[-1], "config.yaml: client.ssh"
    done = capture([*ssh, "--", shlex.join(["sh", "-c", LOOK, "strata", ""])], timeout=PATIENCE, check=False)
    found = _told(done.stdout)
    if done.returncode != 0 or "address" not in found:
        words = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise UserError(f"{key}: no way into {name} ({words}); `ssh {name} true` must work without a question")
    wrong = [] if "root" in found else ["lets in one who is not root and may not `sudo -n`"]
    wrong += [f"lacks {', '.join(found['lacks'].split())}"] if "lacks" in found else []
    if wrong:
        raise UserError(f"{key}: {name} {' and '.join(wrong)}")
    return found


def here(address: str) -> dict[str, str]:
    """The same of this host, on the way to an address: ``{device, mtu}``."""
    return _told(capture(["sh", "-c", LOOK, "strata", address], timeout=PATIENCE, check=False).stdout)


def examine(chosen: str | Fields) -> list[Row]:
    """What `make doctor` says of the config's ``client``."""
    given = {} if isinstance(chosen, str) else chosen
    rate = f"; limited to {given['rate']}" if given.get("rate") else ""
    if "ssh" not in given:
        return [("client", True, f"a network namespace of this host, joined by a veth pair{rate}")]
    own = ["-F", given["ssh_config"]] if given.get("ssh_config") else []
    settings = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "LogLevel=ERROR"]
    try:
        found = there(["ssh", *own, *settings, given["ssh"]])
    except UserError as error:
        return [("client", False, str(error))]
    address = found["address"]
    ends = [end.get("mtu", NOT_AVAILABLE) for end in (here(address), found)]
    alike = ends[0] == ends[1] or NOT_AVAILABLE in ends
    words = f"MTU {ends[0]} here, {ends[1]} there" + (
        "" if alike else ": large packets are lost or cut; set both alike"
    )
    return [("client", True, f"{given['ssh']} at {address}{rate}"), ("link", True if alike else None, words)]


def _told(text: str) -> dict[str, str]:
    """What an end says, by its key; whatever else stands among it is left out."""
    return dict(re.findall(r"^(from|address|root|lacks|device|mtu) (\S.*)$", text, re.MULTILINE))
