"""The client: where load generators run, outside of the system under test.

It is a stack, too: on this host a network namespace joined by a veth pair, or a second machine reached by ssh, and in
either the image's own files.
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


def settle(chosen: str | Fields) -> Fields:
    """The config's ``client`` as the plan holds it: ``{kind: namespace|ssh, rate, machine}``.

    The plan names nobody: `machine` tells one second machine from another.
    """
    given = {} if isinstance(chosen, str) else chosen
    wanted = {"kind": "ssh" if "ssh" in given else "namespace", "rate": given.get("rate")}
    return (
        {**wanted, "machine": sha256(given["ssh"].encode()).hexdigest()[:8]}
        if "ssh" in given
        else wanted
    )


def write_way(chosen: str | Fields) -> None:
    """Write down the way to a second machine, ``{ssh, ssh_config}``, for the cells of a run."""
    if not isinstance(chosen, str) and "ssh" in chosen:
        write_json(paths.CLIENT, {"ssh": chosen["ssh"], "ssh_config": chosen.get("ssh_config")})


def examine(chosen: str | Fields) -> tuple[str, bool | None, str]:
    """The line of `make doctor` for the client, as of
    :meth:`strata.environments.common.layer.Layer.examine`.
    """
    given = {} if isinstance(chosen, str) else chosen
    rate = f"; limited to {given['rate']}" if given.get("rate") else ""
    if "ssh" not in given:
        return "client", True, f"a network namespace of this host, joined by a veth pair{rate}"
    from strata.client.remote import look

    own = ["-F", given["ssh_config"]] if given.get("ssh_config") else []
    try:
        here, there = look(
            [
                "ssh",
                *own,
                "-oBatchMode=yes",
                "-oConnectTimeout=10",
                "-oLogLevel=ERROR",
                given["ssh"],
            ]
        )
    except UserError as error:
        return "client", False, str(error)
    # Where the ends differ, packets may be lost.
    words = (
        f"{given['ssh']} at {there['address']}, MTU {here['mtu']} here, {there['mtu']} there{rate}"
    )
    return "client", here["mtu"] == there["mtu"] or None, words


def make(settled: Fields, context: Context) -> tuple[list[Layer], Link]:
    """The stack of a client (the host, the link, what runs commands on top), and the link by itself.

    context: the client's own.  Raises UserError where nobody says the way to a second machine.
    """
    bottom = host.Layer(None, {}, context)
    if settled["kind"] == "namespace":
        from strata.client.namespace import Namespace

        link = Namespace(bottom, settled, context)
        return [bottom, link, chroot.Layer(link, {}, context)], link
    from strata.client.remote import Remote

    way = read_json(paths.CLIENT)
    if way is None:
        raise UserError(f"{paths.CLIENT}: missing, which says the way to the client: run snakemake")
    remote = Remote(bottom, {**settled, **way}, context)
    return [bottom, remote], remote
