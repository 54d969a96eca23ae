"""A network namespace that slirp4netns joins to the host: a TCP/IP stack that is a program."""

import json

from strata.environments.common import layer
from strata.environments.common.user_network import UserNetwork
from strata.util.process import capture_output, wrap_as_root

# Where slirp4netns takes requests, in its own root.
SOCKET = "/tmp/slirp4netns"
# Arguments: a socket's path and a JSON object for each request.  Waits up to 5 s for the socket to
# listen, and fails with the answer to a request that is refused.
SEND_REQUESTS = """
import socket, sys, time
path, *requests = sys.argv[1:]
for request in requests:
    for attempt in range(500):
        try:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(path)
            break
        except OSError:
            time.sleep(0.01)
    else:
        sys.exit("slirp4netns took no request within 5 s")
    connection.sendall(request.encode())
    connection.shutdown(socket.SHUT_WR)
    answer = connection.makefile().read()
    if not answer or '"error"' in answer:
        sys.exit(f"slirp4netns forwards no port: {request}: {answer}")
"""


class Layer(UserNetwork):
    """A native system whose network is slirp4netns', as an older rootless container has it.

    Ports are forwarded by slirp4netns itself, as by Podman's port_handler=slirp4netns.
    """

    title = "network namespace with slirp4netns"
    image_packages = ("slirp4netns",)
    # slirp4netns always gives this number to the guest.
    guest_number = 100

    def join_namespace(self, namespace: str) -> None:
        """Start slirp4netns, and request that it forwards the servers' ports.

        namespace: the path of the network namespace.
        Raises UserError if slirp4netns does not start, or refuses a port.
        """
        options = ["--configure", f"--mtu={self.options['mtu']}", f"--cidr={self.network}"]
        options += ["--disable-host-loopback", "--disable-dns", f"--api-socket={SOCKET}"]
        argv = ["slirp4netns", *options, "--netns-type=path", namespace, "eth0"]
        self.run_in_layer_below(["sh", "-c", layer.START_IN_BACKGROUND, "strata", *argv])
        # This request changes nothing.  If there are no ports, its answer shows that slirp4netns
        # runs.
        requests = ['{"execute": "list_hostfwd"}']
        for port in self.context.ports:
            target = {"guest_addr": self.guest_address, "guest_port": port}
            for protocol in ("tcp", "udp"):
                source = {"host_addr": self.below.get_listen_address(), "host_port": port}
                arguments = {"proto": protocol, **source, **target}
                requests.append(json.dumps({"execute": "add_hostfwd", "arguments": arguments}))
        # The kernel limits the paths of sockets, and the path of the system's folder may be longer.
        path = f"/proc/{self.holder}/root{SOCKET}"
        capture_output(wrap_as_root(["python3", "-S", "-c", SEND_REQUESTS, path, *requests]))
