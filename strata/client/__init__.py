"""The client: where load generators run, outside of the system under test.

It is a network namespace of this host joined by a veth pair, or a second machine reached by ssh.
Both run the image's own files.
"""

from strata.client.client import Client
from strata.host.context import Context


def settle(chosen: str | dict) -> dict:
    """The config's ``client`` with every default: ``{kind: namespace|ssh, rate, ssh, ssh_config}``."""
    given = {} if isinstance(chosen, str) else chosen
    kind = "ssh" if "ssh" in given else "namespace"
    wanted = {"kind": kind, "rate": given.get("rate")}
    return {**wanted, "ssh": given["ssh"], "ssh_config": given.get("ssh_config")} if kind == "ssh" else wanted


def make(settled: dict, context: Context) -> Client:
    """The client of a system; the context is the client's own."""
    if settled["kind"] == "ssh":
        from strata.client.remote import Remote

        return Remote(settled, context)
    from strata.client.namespace import Namespace

    return Namespace(settled, context)
