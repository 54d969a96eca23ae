"""A system's own network, which a program in user space joins to the host's by sockets."""

import os
from abc import abstractmethod

from strata.environments.common import layer
from strata.host import addresses
from strata.util.data_types import Fields
from strata.util.process import capture_output

TUN = "/dev/net/tun"
# The third byte of the first network that is tried: clients and machines have lower ones.
FIRST_SUBNET = 220
# Prints the id of a process that keeps a new network namespace.  The process has no capabilities:
# only then may a program that dropped most of its own open the namespace.
HOLD_NAMESPACE = """
setsid unshare --net setpriv --bounding-set=-all sleep infinity </dev/null >/dev/null 2>&1 &
until [ "$(cat "/proc/$!/comm")" = sleep ]; do sleep 0.01; done
echo $!
"""


class UserNetwork(layer.Layer):
    """Native programs in a network namespace, whose interface is a tap of a program of the image.

    The program forwards the servers' ports from the host's address.  It and the namespace are in
    the system's control group: they are frozen and ended with it.  Option `mtu`: of the interface.
    """

    isolation = "bare"
    stands_on = ("chroot",)
    image_forms = ()
    stands_idle = True
    needs_root = True
    peers_are_clients = True
    refuses_own_images = "its programs are in Strata’s image; images of your own lack them"
    options_schema = layer.build_options_schema(
        mtu={"enum": [1500, 65520], "description": "of the interface: 1500 or 65520 (default)"}
    )

    guest_number: int
    """The number of the interface's address in the network of the namespace."""

    @classmethod
    def explain_unavailability(cls) -> str | None:
        """Return why this machine cannot provide the layer, with the remedy; None if it can."""
        if not os.path.exists(TUN):
            return f"the kernel has no {TUN}, for {cls.name}’s interface: try `modprobe tun`"
        return super().explain_unavailability()

    @classmethod
    def resolve_options(cls, options: Fields, config: Fields) -> Fields:
        """Return the options with `mtu`, by default 65520 bytes."""
        return {"mtu": 65520, **options}

    @classmethod
    def get_labels(cls, resolved: Fields) -> Fields:
        """Return the paper's names of the network, with its MTU in bytes, and of the data."""
        return {**super().get_labels(resolved), "network": f"{cls.name}, MTU {resolved['mtu']}"}

    def start(self) -> None:
        """Create the namespace, and start the program that joins it to the host's network.

        Sets `network` (a free subnet), `guest_address` (an address in it) and `holder` (the ID, as
        text, of the process that keeps the namespace), on which the other methods rely.
        The journal needs no entry: both processes end with the system's control group.
        Raises UserError if one of them does not start.
        """
        # The namespace's network must not overlap with the client's, which exists by now.
        self.network = addresses.find_free_subnet(addresses.read_host_routes(), FIRST_SUBNET)
        self.guest_address = addresses.compute_nth_address(self.network, self.guest_number)
        hold_command = self.below.build_plain_command(["sh", "-uc", HOLD_NAMESPACE])
        self.holder = capture_output(hold_command, timeout=10).stdout.strip()
        self.join_namespace(f"/proc/{self.holder}/ns/net")

    @abstractmethod
    def join_namespace(self, namespace: str) -> None:
        """Start the program that forwards the servers' ports to `guest_address`.

        namespace: the path of the network namespace, in the layer below.
        The attribute `network` is the namespace's network, which overlaps with no network of the
        host.  The ports must be forwarded when the method returns: servers and clients start next.
        """

    def wrap_command(self, argv: list[str], reads_stdin: bool = False) -> list[str]:
        """Return the command that runs `argv` in the network namespace.

        reads_stdin: not used; the command always gets its standard input.
        """
        return ["nsenter", f"--net=/proc/{self.holder}/ns/net", "--", *argv]

    def get_listen_address(self) -> str:
        """Return the IP address of the namespace, to which the servers' ports are forwarded."""
        return self.guest_address

    def collect_facts(self) -> Fields:
        """Return ``{user_network: {program, version}}`` for the records.

        Runs the program in the layer below.  schemas/record.schema.json has the keys.
        """
        # pasta does not flush what it prints.
        output = self.run_in_layer_below(["stdbuf", "-o0", self.name, "--version"])
        # The line is "pasta VERSION" or "slirp4netns version VERSION".
        first_line = output.split("\n")[0]
        version = first_line.removeprefix(self.name).removeprefix(" version").strip()
        return {"user_network": {"program": self.name, "version": version}}
