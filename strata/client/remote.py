"""The link to a client on a second machine, which is reached by ssh."""

import os
import re
import shlex
from collections.abc import Sequence

from strata.client.link import HANDLE, Link
from strata.environments.chroot import MOUNT
from strata.environments.common.layer import Layer
from strata.host import addresses, firewall, ssh_connection
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.process import capture_output, wrap_as_root

# The second machine's folder for the files of images and for those of systems.
CACHE = "/var/cache/strata-client"

# Prints lines "NAME VALUE": the IP addresses of the ssh connection's ends, the network interface of
# this end and its MTU, how root's rights are obtained, and missing programs.
EXAMINE = r"""
exec 2>/dev/null
PATH=$PATH:/usr/sbin:/sbin
set -- $SSH_CONNECTION
device=$(ip -o route get "$1" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
mtu=$(ip -o link show dev "$device" | sed -n 's/.* mtu \([0-9]*\).*/\1/p')
printf '%s\n' "from $1" "address $3" "device $device" "mtu ${mtu:-unknown}"
if [ "$(id -u)" = 0 ]; then echo "root yes"; elif sudo -n true; then echo "root sudo"; fi
lacks=$(for tool in tar mount chroot ip tc; do command -v "$tool" >/dev/null || echo "$tool"; done)
[ -z "$lacks" ] || echo "lacks" $lacks
"""
# The pattern of a line of this output: the name, then the value.
LINE = r"(?m)^(\w+) (\S.*)$"
# Seconds within which the script must end on the second machine.
EXAMINE_TIMEOUT = 30.0

# Argument: a system's folder.  Ends the programs in its root, then unmounts and removes it.  A
# folder where something is still mounted stays.
UNMOUNT = """
root=$1/root
for process in /proc/[0-9]*; do
    [ "$(readlink "$process/root")" != "$root" ] || kill -KILL "${process#/proc/}"
done
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    grep -q " $root" /proc/mounts || break
    # A recursive bind mount, such as /dev, may share its mounts with its source, where they stay.
    mount --make-rprivate "$root"
    umount -R "$root" || sleep 0.2
done
grep -q " $1/" /proc/mounts || rm -rf --one-file-system -- "$1"
"""


def read_connection_facts(ssh: list[str]) -> tuple[Fields, Fields]:
    """Log in to the second machine, and return the facts of both ends of the connection.

    ssh: the command that logs in to the second machine; its last argument is that machine's name.
    The facts of this host come first, then those of the second machine.  Both have `from` (the
    other machine's IP address), `device` (the network interface to it) and `mtu`.  The second
    machine's also have `address` (its own IP address) and `root`, "yes" or "sudo".  The script
    EXAMINE prints them at both ends.  Nothing is changed on either machine.
    Raises UserError with the remedy if the second machine cannot be the client.
    """
    name = ssh[-1]
    key = "config.yaml: client.ssh"
    examine = [*ssh, "--", shlex.join(["sh", "-c", EXAMINE])]
    result = capture_output(examine, EXAMINE_TIMEOUT, check=False)
    client = dict(re.findall(LINE, result.stdout))
    if result.returncode != 0 or "address" not in client:
        # ssh's own reason is the last line.
        error_lines = result.stderr.strip().splitlines() or [f"exit code {result.returncode}"]
        raise UserError(
            f"{key}: cannot log in to {name} ({error_lines[-1]}); `ssh {name} true` must work "
            "without a prompt"
        )
    if "root" not in client:
        raise UserError(
            f"{key}: the user at {name} is not root: log in as root, or allow `sudo -n` there"
        )
    if "lacks" in client:
        programs = ", ".join(client["lacks"].split())
        raise UserError(f"{key}: {name} has no {programs}: install them there")
    # Seen from this host, the other end of the connection is the second machine.  The script needs
    # only the first of the addresses in the variable.
    variable = f"SSH_CONNECTION={client['address']}"
    output = capture_output(["env", variable, "sh", "-c", EXAMINE]).stdout
    host = dict(re.findall(LINE, output))
    return host, client


class Remote(Link):
    """A link to a client on the second machine ``options["ssh"]``, over an existing network.

    ssh must work without a prompt, as root or as a user who may use sudo without a password.
    """

    kind = "network of a second machine"
    shares_host = False

    def _record_removal(self, *commands: list[str]) -> None:
        """Write into the journal the commands that remove what is made next on the second machine.

        commands: this host's commands; they are run in this order, and must be harmless if they run
        twice.
        The journal looks for remaining parts by the command `find`.  Here it is `true`, which
        prints nothing: a second machine that no longer answers keeps its part, without an error.
        """
        self.context.note_cleanup(
            {
                "kind": "second machine",
                "id": self.context.id,
                "find": ["true"],
                "remove": list(commands),
            }
        )

    def _build_ssh_command(self, *options: str) -> list[str]:
        """Return the ssh command that reaches the second machine, with these further options.

        Its last argument is the machine's name; a remote command may follow it.
        """
        configuration = []
        if self.options["ssh_config"]:
            # The journal's commands may run in another working directory.
            configuration = ["-F", os.path.abspath(self.options["ssh_config"])]
        # With these settings, all commands share one connection, which stays open.
        settings = ssh_connection.build_ssh_settings(self.context.folder)
        connection = [f"-o{key}={value}" for key, value in settings.items()]
        return ["ssh", *configuration, *connection, *options, self.options["ssh"]]

    def wrap_for_client_host(self, argv: list[str]) -> list[str]:
        """Return the ssh command that runs `argv` on the second machine, as root."""
        return [*self._build_ssh_command(), "--", shlex.join([*self._root, *argv])]

    def _run_on_client(self, argv: list[str], check: bool = True) -> str:
        """Run a command on the second machine as root, and return its standard output.

        check: whether an exit code other than 0, or a lost connection, is an error.
        Raises UserError if the command fails and `check` is set, and MachineError if it takes more
        than two minutes.
        """
        return capture_output(self.wrap_for_client_host(argv), check=check).stdout

    def start(self) -> None:
        """Connect to the second machine, limit the rate, and mount the image's files there.

        Each part's removal is written into the journal before the part is made.  The command that
        ends the shared ssh connection is written first, and so is run last.  Sets `host` and both
        interfaces.
        Raises UserError if the machine cannot be the client.
        """
        self._record_removal(self._build_ssh_command("-O", "exit"))
        host_end, client_end = read_connection_facts(self._build_ssh_command())
        self._root = [] if client_end["root"] == "yes" else ["sudo", "-n", "--"]
        self.host = client_end["from"]
        self._client = client_end["address"]
        self.host_interface = host_end["device"]
        self.client_interface = client_end["device"]
        if self.options["rate"]:
            host_removal = _build_limit_removal_command(self.host_interface)
            client_removal = _build_limit_removal_command(self.client_interface)
            self._record_removal(
                wrap_as_root(host_removal), self.wrap_for_client_host(client_removal)
            )
            self.limit_rate()
        self._mount_image_on_client(self._ensure_image_on_client())

    def _mount_image_on_client(self, tree: str) -> None:
        """Mount the image's files, a data folder and a temporary folder on the second machine.

        tree: the path of the image's files there.  Writes the removal into the journal first.
        :meth:`wrap_command` runs programs in the mounted root.
        """
        self._folder = f"{CACHE}/systems/{self.context.id}"
        unmount = ["sh", "-uc", UNMOUNT, "strata", self._folder]
        self._record_removal(self.wrap_for_client_host(unmount))
        root, data, temporary = (f"{self._folder}/{name}" for name in ("root", "data", "tmp"))
        # Programs of any user may write to the /tmp below; other users cannot enter this folder.
        self._run_on_client(["mkdir", "-p", "-m", "0700", self._folder])
        self._run_on_client(["mkdir", root, data])
        self._run_on_client(["mkdir", "-m", "1777", temporary])
        self._run_on_client(["sh", "-euc", MOUNT, "strata", root, tree, data, temporary])

    def _ensure_image_on_client(self) -> str:
        """Copy the image's files to the second machine, if missing, and return their path there.

        The copy stays for later runs.  A folder of this name is always complete: the copy gets its
        name atomically at the end.
        Raises UserError if a command fails.
        """
        image = self.context.image
        assert image
        tree = f"{CACHE}/images/{image['recipe'][:12]}-{image['manifest_sha256'][:12]}"
        find_tree = self.wrap_for_client_host(["test", "-d", tree])
        if capture_output(find_tree, check=False).returncode == 0:
            return tree
        # The ID is in the name because another home or host may be copying the same files.
        partial_tree = f"{tree}.{self.context.id}.part"
        remove_partial = ["rm", "-rf", "--one-file-system", "--", partial_tree]
        self._record_removal(self.wrap_for_client_host(remove_partial))
        self._run_on_client(["mkdir", "-p", partial_tree])
        source = os.path.join(image["folder"], "tree")
        pack = wrap_as_root(["tar", "-C", source, "--numeric-owner", "-cf", "-", "."])
        unpack = self.wrap_for_client_host(
            ["tar", "-C", partial_tree, "--numeric-owner", "-xpf", "-"]
        )
        pipe = f"{shlex.join(pack)} | {shlex.join(unpack)}"
        capture_output(["bash", "-o", "pipefail", "-c", pipe], timeout=3600)
        # If another run was first, the move fails, and that run's equal files are used: `test`
        # checks that one of the runs succeeded.
        self._run_on_client(["mv", "-T", "--", partial_tree, tree], check=False)
        self._run_on_client(["test", "-d", tree])
        return tree

    def join_bridge(self, machines: Sequence[Layer], bridge: str, subnet: str) -> None:
        """Set routes between the second machine and the virtual machines on this host.

        machines: the layers of all virtual machines, which are up.
        bridge: the name of their bridge on this host.
        subnet: their network, as ADDRESS/24.
        No address is translated.  This host's firewall is opened for packets between the second
        machine and the virtual ones.  The removal of the route on the second machine is written
        into the journal; the routes in the virtual machines end with them.
        Raises UserError if a command fails.
        """
        firewall.allow_forwarded_packets(
            self.context,
            ["-i", self.host_interface, "-o", bridge, "-s", self._client, "-d", subnet],
            ["-i", bridge, "-o", self.host_interface, "-s", subnet, "-d", self._client],
        )
        # The journal has the removal before the route exists.
        remove_route = ["ip", "route", "del", subnet, "via", self.host]
        self._record_removal(self.wrap_for_client_host(remove_route))
        route_to_machines = [subnet, "via", self.host, "dev", self.client_interface]
        self._run_on_client(["ip", "route", "replace", *route_to_machines])
        # The bridge's own address is the first one in its network.
        gateway = addresses.compute_nth_address(subnet, 1)
        add_route_to_client = ["ip", "route", "replace", f"{self._client}/32", "via", gateway]
        for machine in machines:
            capture_output(machine.build_plain_command(add_route_to_client))

    def set_client_interface(self, address: str, card: str, client_address: str | None) -> None:
        """Find the second machine's network interface that reaches an address directly.

        address: the IP address of the virtual machine's own network card.
        card: not used; only a namespace on this host needs it.
        client_address: not used; only a namespace on this host needs it.
        Sets `client_interface` to the interface's name.
        Raises UserError if the second machine does not reach the address, or only through a
        gateway.
        """
        route = self._run_on_client(["ip", "-o", "route", "get", address], check=False)
        # "ADDRESS dev NAME src …" on the same network; with "via GATEWAY" on another one.
        if " dev " not in route or " via " in route:
            raise UserError(
                f"config.yaml: vm.profiles: {address} belongs to a network card that a virtual "
                f"machine has for itself, and no interface of {self.options['ssh']} is on its "
                "network: give one of them an address of that network"
            )
        self.client_interface = route.split(" dev ", 1)[1].split()[0]

    def wrap_command(self, argv: list[str], reads_stdin: bool = False) -> list[str]:
        """Return the host's command that runs `argv` in the image's files on the second machine.

        The command runs as root.
        reads_stdin: not used; ssh always passes its standard input on.
        """
        return self.wrap_for_client_host(["chroot", f"{self._folder}/root", *argv])


def _build_limit_removal_command(device: str) -> list[str]:
    """Return the command that removes the rate limit of a network interface.

    device: the interface's name.
    The command can be run at any time: it fails for a queueing discipline that is not Strata's,
    whose handle differs.
    """
    return ["tc", "qdisc", "del", "dev", device, "root", "handle", HANDLE]
