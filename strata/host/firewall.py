"""The host's packet filter: the rules that a system needs, and those that its packets meet."""

import contextlib
import re

from strata.host import observe
from strata.host.context import Context
from strata.host.daemons import find_program
from strata.host.observe import NOT_AVAILABLE
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.process import as_root, capture

# Arguments: iptables, and the id of a system, by which its rules are marked.
REMOVE = """
"$1" --wait --list-rules FORWARD | sed -n "s/^-A \\(.* --comment $2 .*\\)/-D \\1/p" |
    xargs --no-run-if-empty -L 1 "$1" --wait
"""


def allow_packets(context: Context, *matches: list[str]) -> None:
    """Add firewall rules that accept packets, which stay until the system is removed.

    matches: options of iptables, one list for each rule; each rule is marked with the system's ID.
    The cleanup of the rules is noted in the journal first.
    Does nothing where iptables is not installed.  Raises UserError where a rule is refused.
    """
    iptables = find_program("iptables")
    if iptables is None:
        return
    remove = ["sh", "-c", REMOVE, "strata", iptables, context.id]
    context.note_cleanup(
        {"kind": "rule", "id": context.id, "root": True, "find": ["true"], "remove": [remove]}
    )
    mark = ["--match", "comment", "--comment", context.id, "--jump", "ACCEPT"]
    for match in matches:
        capture(as_root([iptables, "--wait", "--insert", "FORWARD", *match, *mark]))


# Prints the rules of all back ends, and the programs that pass packets on to containers.  It runs
# on the host and in machines.
LIST_SCRIPT = """
PATH=$PATH:/usr/sbin:/sbin
for words in iptables-save iptables-legacy-save "nft list ruleset"; do
    rules=$($words 2>/dev/null) && printf '==> /%s <==\\n%s\\n' "${words%% *}" "$rules"
done
if command -v pgrep >/dev/null; then echo "==> /pgrep <=="; pgrep -a docker-proxy; fi
tail -v -n +1 /proc/sys/net/ipv4/ip_forward /proc/sys/net/bridge/bridge-nf-call-iptables 2>/dev/null
"""
LIST_COMMAND = ["sh", "-c", LIST_SCRIPT]
SWITCHES = {"ip_forwarding": "ipv4/ip_forward", "bridge_nf": "bridge/bridge-nf-call-iptables"}


class PacketFilter:
    """The packet filter that packets to a container pass, parsed from its printed rules.

    printed: the output of :data:`LIST_COMMAND` on the machine that runs the container's engine;
    empty where the user may not read the rules.
    The attribute `known` says whether the rules could be read.
    """

    def __init__(self, printed: str) -> None:
        self._files = observe.split_files(printed)
        self.known = "/iptables-save" in self._files or "/nft" in self._files
        self._saved = self._files.get("/iptables-save", "")
        self._nft = self._files.get("/nft", "")
        legacy = self._files.get("/iptables-legacy-save", "")
        # Where one kind of iptables is installed, both programs print the same rules.
        self._legacy = legacy if _count_rules(legacy) else ""
        if _count_rules(self._saved) and "(nf_tables)" not in self._saved:
            self._legacy, self._saved = self._saved, ""
        self._all = "\n".join([self._saved, self._legacy, self._nft])

    def facts(self) -> Fields:
        """Return ``{firewall, firewall_version, rules, ip_forwarding, bridge_nf}``.

        firewall: the back ends that have rules, or "none".  rules: the number of rules.
        Each value that cannot be read is :data:`strata.host.observe.NOT_AVAILABLE`.
        Records hold these keys.
        """
        modern = len(re.findall(r"(?m)^\t\t(?!type )[^\t}]", _chain_bodies(self._nft)))
        counts = {
            "nf_tables": modern or _count_rules(self._saved),
            "legacy": _count_rules(self._legacy),
        }
        version = re.search(r"iptables(?:-nft|-legacy)?-save v(\S+)", self._all)
        facts: Fields = {
            "firewall": " and ".join(name for name, count in counts.items() if count) or "none",
            "firewall_version": f"iptables {version[1]}" if version else None,
            "rules": sum(counts.values()),
        }
        if not self.known:
            facts = dict.fromkeys(facts)
        for name, path in SWITCHES.items():
            text = self._files.get(f"/proc/sys/net/{path}", "")
            facts[name] = {"0": "off", "1": "on"}.get(text)
        return {key: NOT_AVAILABLE if value is None else value for key, value in facts.items()}

    def serves_bridge(self, bridge: str) -> bool | None:
        """Return whether a container engine made rules for its bridge; None where not known."""
        name = re.escape(bridge)
        of_docker = rf'(?m)^-A (?=.*\bDOCKER).*-[io] {name}\b|"{name}" : jump '
        return bool(re.search(of_docker, self._all)) if self.known else None

    def translates_port(self, address: str, port: int) -> bool | None:
        """Return whether a rule translates a published port to a container's address and port.

        None where that is not known.  address, port: the container's own.
        """
        target = rf"(?:DNAT --to-destination|dnat (?:ip )?to) {re.escape(address)}:{port}\b"
        rule = rf"\bdport {port}\b.*{target}"
        return bool(re.search(rule, self._all)) if self.known else None

    def proxies_port(self, address: str, port: int) -> bool | None:
        """Return whether a docker-proxy process forwards a published port to a container.

        None where that is not known.  address, port: the container's own.
        """
        container = rf"-container-ip {re.escape(address)} -container-port {port}\b"
        program = rf"(?m)^\d+ \S*docker-proxy .*{container}"
        return bool(re.search(program, self._files["/pgrep"])) if "/pgrep" in self._files else None


def read_packet_filter() -> PacketFilter:
    """Return this host's packet filter, read as root.

    Its `known` is false where this user may not read the rules.
    """
    with contextlib.suppress(UserError):
        return PacketFilter(capture(as_root(LIST_COMMAND), check=False).stdout)
    return PacketFilter("")


def _count_rules(saved: str) -> int:
    """Return the number of rules in the output of ``iptables-save``."""
    return len(re.findall("(?m)^-A ", saved))


def _chain_bodies(ruleset: str) -> str:
    """Return the bodies of all chains in the output of ``nft list ruleset``.

    Sets and maps are left out, since they hold no rules.
    """
    return "\n".join(re.findall(r"(?ms)^\tchain [^\n]*\{\n(.*?)^\t\}", ruleset))
