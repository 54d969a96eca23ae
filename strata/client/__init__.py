"""Configure, test and build the client, where load generators run outside of the system under test.

The client is a stack of layers with the image's files: in a network namespace of this host, joined
by a veth pair, or on a second machine that is reached by ssh.
"""

from hashlib import sha256

from strata.client.link import Link
from strata.environments import chroot, host
from strata.environments.common.layer import Layer
from strata.host.context import Context
from strata.util import paths
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.files import read_json, write_json


def resolve_client_options(client_settings: str | Fields) -> Fields:
    """Return the client's options for the plan: ``{kind, rate}``; for ssh also `machine`.

    client_settings: the configuration's ``client``.
    Returns:
    kind: "namespace" or "ssh";
    rate: the limit of the link, such as "10gbit"; None for no limit;
    machine: eight hexadecimal digits of a hash, which distinguishes second machines without naming
    them.
    The plan identifies cells by these options: if the hash or a key changes, cells are measured
    again.
    """
    connection = {} if isinstance(client_settings, str) else client_settings
    options = {
        "kind": "ssh" if "ssh" in connection else "namespace",
        "rate": connection.get("rate"),
    }
    if "ssh" in connection:
        options["machine"] = sha256(connection["ssh"].encode()).hexdigest()[:8]
    return options


def write_client_connection(client_settings: str | Fields) -> None:
    """Write the ssh destination of a second machine to a file, for the cells of a run.

    The plan does not have it, since plans are published.
    client_settings: the configuration's ``client``; nothing is written for a namespace.
    :func:`build_client_stack` reads the file's keys: ``ssh``, and ``ssh_config``, a path or None.
    """
    if not isinstance(client_settings, str) and "ssh" in client_settings:
        write_json(
            paths.CLIENT,
            {"ssh": client_settings["ssh"], "ssh_config": client_settings.get("ssh_config")},
        )


def format_client_doctor_line(client_settings: str | Fields) -> tuple[str, bool | None, str]:
    """Return the client's line of `make doctor`; log in to the second machine if there is one.

    client_settings: the configuration's ``client``; a network namespace is not tested.
    The line is (topic, whether the client is available, text).  The second value is None if the
    MTUs of the two ends differ, so that packets may be lost.
    """
    connection = {} if isinstance(client_settings, str) else client_settings
    rate = f"; limited to {connection['rate']}" if connection.get("rate") else ""
    if "ssh" not in connection:
        return "client", True, f"a network namespace of this host, joined by a veth pair{rate}"
    from strata.client.remote import read_connection_facts

    # No prompt, and a time limit for connecting: `make doctor` must end.
    ssh = ["ssh", "-oBatchMode=yes", "-oConnectTimeout=10", "-oLogLevel=ERROR"]
    if connection.get("ssh_config"):
        ssh += ["-F", connection["ssh_config"]]
    try:
        this_end, client_end = read_connection_facts([*ssh, connection["ssh"]])
    except UserError as error:
        return "client", False, str(error)
    has_equal_mtus = this_end["mtu"] == client_end["mtu"]
    text = (
        f"{connection['ssh']} at {client_end['address']}, MTU {this_end['mtu']} here, "
        f"{client_end['mtu']} there{rate}"
    )
    return "client", True if has_equal_mtus else None, text


def build_client_stack(resolved: Fields, context: Context) -> tuple[list[Layer], Link]:
    """Return the client's layers, from the bottom to the top, and the link among them; none is up.

    resolved: the options, as :func:`resolve_client_options` returns them.
    context: the client's own context, not that of the system under test.
    :class:`strata.testbed.lifecycle.Client` brings the layers up in this order.
    Raises UserError if the run did not write the ssh destination of the second machine
    (:func:`write_client_connection`).
    """
    bottom = host.Layer(None, {}, context)
    if resolved["kind"] == "namespace":
        from strata.client.namespace import Namespace

        link = Namespace(bottom, resolved, context)
        return [bottom, link, chroot.Layer(link, {}, context)], link
    from strata.client.remote import Remote

    connection = read_json(paths.CLIENT)
    if connection is None:
        raise UserError(
            f"{paths.CLIENT}: is missing, which says how to reach the client: run snakemake"
        )
    remote = Remote(bottom, {**resolved, **connection}, context)
    return [bottom, remote], remote
