"""A network namespace that pasta joins to the host: it hands each connection to a host's socket."""

from strata.environments.common.user_network import UserNetwork
from strata.host import addresses


class Layer(UserNetwork):
    """A native system whose network is pasta's, as a rootless container has it.

    pasta runs as root here: who it is changes none of the steps that a packet takes.
    """

    title = "network namespace with pasta"
    image_packages = ("passt",)
    guest_number = 2

    def join_namespace(self, namespace: str) -> None:
        """Start pasta, which goes to the background once the ports are forwarded.

        namespace: the path of the network namespace.
        Raises UserError if pasta does not start.
        """
        gateway = addresses.compute_nth_address(self.network, 1)
        address = ["--address", self.guest_address, "--netmask", "24", "--gateway", gateway]
        interface = ["--config-net", "--ns-ifname", "eth0", "--mtu", str(self.options["mtu"])]
        # Without this option, packets to the gateway's address would reach the host.
        interface.append("--no-map-gw")
        # These options switch off the automatic forwarding of ports, and the forwarding of DNS.
        forwards = ["--tcp-ns", "none", "--udp-ns", "none", "--dns", "none"]
        ports = ",".join(map(str, self.context.ports))
        published = f"{self.below.get_listen_address()}/{ports}" if ports else "none"
        forwards += ["--tcp-ports", published, "--udp-ports", published]
        joined = ["--netns-only", "--netns", namespace, "--runas", "0"]
        self.run_in_layer_below(
            ["pasta", "--quiet", "-4", *joined, *interface, *address, *forwards]
        )
