"""The host's packet filter: the rules that a system needs, and those that its packets meet."""

import contextlib
import re

from strata.host import observe
from strata.host.context import Context
from strata.host.daemons import find_program
from strata.host.observe import NOT_AVAILABLE
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.process import capture_output, wrap_as_root

# Arguments: iptables, the ID of a system, which marks its rules, a table and its chain.
REMOVE_RULES = """
"$1" --wait --table "$3" --list-rules "$4" |
    sed -n "s/^-A \\(.* --comment $2 .*\\)/-D \\1/p" |
    xargs --no-run-if-empty -L 1 "$1" --wait --table "$3"
"""
# Arguments: iptables, a new chain, and the number of its rules, each for another address of those
# for benchmarks (RFC 2544), which no packet has.
FILL_CHAIN = """
{
    printf '%s\\n' '*filter' ":$2 - [0:0]"
    seq "$3" | while read -r number; do
        address=198.18.$((number / 256)).$((number % 256))
        echo "-A $2 -d $address/32 -p tcp -m tcp --dport 80 -j RETURN"
    done
    echo COMMIT
} | "$1-restore" --noflush --wait
"""
# Arguments: iptables, the chain, and its table.  Succeeds, too, if the chain does not exist.
REMOVE_CHAIN = """
! "$1" --wait --table "$3" --list-rules "$2" 2>/dev/null ||
    { "$1" --wait --table "$3" --flush "$2" && "$1" --wait --table "$3" --delete-chain "$2"; }
"""
# Arguments: iptables, the id of a system, and a table.  Prints the system's rules and chains in it.
FIND_RULES = """
"$1" --wait --table "$3" --list-rules | grep -F -e "$2" || true
"""


def allow_forwarded_packets(context: Context, *matches: list[str]) -> None:
    """Add firewall rules that accept forwarded packets; they stay until the system is removed.

    context: the system whose ID marks the rules.
    matches: options of iptables, one list for each rule.
    Does nothing if iptables is not installed.
    Raises UserError if iptables refuses a rule.
    """
    if find_program("iptables"):
        _insert_rules(context, "filter", "FORWARD", "ACCEPT", *matches)


def add_untranslated_port_rules(context: Context, address: str) -> None:
    """Add firewall rules that exempt packets to a system's ports from address translation.

    context: the system, with its `ports`.
    address: the IP address to which clients send packets.
    The rules stay until the system is removed.  :meth:`PacketFilter.is_port_translated` recognizes
    them by their options and their comment.
    Raises UserError if iptables is not installed or refuses a rule.
    """
    matches = [
        ["--destination", address, "--protocol", protocol, "--dport", str(port)]
        for port in context.ports
        for protocol in ("tcp", "udp")
    ]
    _insert_rules(context, "nat", "PREROUTING", "ACCEPT", *matches)


def add_nonmatching_rules(context: Context, address: str, count: int) -> None:
    """Add firewall rules that match no packet, but are checked for each one from or to an address.

    They show what further rules cost.  They are in a chain with the system's ID as its name, and
    stay until the system is removed.
    context: the system whose ID the chain has.
    address: the IP address of the container.
    count: the number of rules, at most 65,535: each is for another address of 198.18.0.0/16.
    Raises UserError if iptables is not installed or refuses a rule.
    """
    iptables = _find_iptables()
    _record_rule_removal(context, REMOVE_CHAIN, "filter")
    capture_output(
        wrap_as_root(["sh", "-euc", FILL_CHAIN, "strata", iptables, context.id, str(count)])
    )
    matches = (["--destination", address], ["--source", address])
    _insert_rules(context, "filter", "FORWARD", context.id, *matches)


def _find_iptables() -> str:
    """Return the path of iptables; if it is not installed, its bare name, which fails to run."""
    return find_program("iptables") or "iptables"


def _record_rule_removal(context: Context, script: str, table: str, *arguments: str) -> None:
    """Write into the journal how root finds and removes the firewall rules that are added next.

    script: removes the rules, run by `sh`.  Its arguments are iptables, the system's ID, the table,
    and `arguments`.  It must also succeed if the rules do not exist.
    table: the table of the rules, such as nat.
    """
    common = ["strata", _find_iptables(), context.id, table]
    find = ["sh", "-c", FIND_RULES, *common]
    remove = ["sh", "-c", script, *common, *arguments]
    entry = {"kind": "rule", "id": context.id, "root": True, "find": find, "remove": [remove]}
    context.note_cleanup(entry)


def _insert_rules(
    context: Context, table: str, chain: str, target: str, *matches: list[str]
) -> None:
    """Insert rules at the head of a chain, marked with the system's ID, and note their removal.

    context: the system; its journal gets the removal before the first rule is inserted.
    table: the table of the chain, such as nat.
    chain: the chain, such as PREROUTING.
    target: the action, such as ACCEPT, or a chain for the packets that match.
    matches: options of iptables, one list for each rule.
    The mark is a comment: :data:`REMOVE_RULES` and :meth:`PacketFilter.is_port_translated` rely
    on it.
    Raises UserError if iptables is not installed or refuses a rule.
    """
    iptables = _find_iptables()
    _record_rule_removal(context, REMOVE_RULES, table, chain)
    mark = ["--match", "comment", "--comment", context.id, "--jump", target]
    for match in matches:
        argv = [iptables, "--wait", "--table", table, "--insert", chain, *match, *mark]
        capture_output(wrap_as_root(argv))


# Prints the rules of all back ends, and the programs that forward packets to containers.  It runs
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
    empty if the user may not read the rules.
    The attribute `is_readable` says whether the rules could be read.
    """

    def __init__(self, printed: str) -> None:
        """Divide the printed rules among the kernel's back ends: nft, nf_tables and legacy."""
        self._files = observe.split_printed_files(printed)
        self.is_readable = "/iptables-save" in self._files or "/nft" in self._files
        self._nft_rules = self._files.get("/nft", "")
        # The rules of iptables' two back ends, nf_tables and legacy.
        self._nf_tables_rules = self._files.get("/iptables-save", "")
        self._legacy_rules = self._files.get("/iptables-legacy-save", "")
        if not _count_rules(self._legacy_rules):
            self._legacy_rules = ""
        # iptables-save may be the legacy program itself: then both print the same rules.
        if _count_rules(self._nf_tables_rules) and "(nf_tables)" not in self._nf_tables_rules:
            self._legacy_rules = self._nf_tables_rules
            self._nf_tables_rules = ""
        self._all_rules = "\n".join([self._nf_tables_rules, self._legacy_rules, self._nft_rules])

    def collect_facts(self) -> Fields:
        """Return ``{firewall, firewall_version, rules, ip_forwarding, bridge_nf}`` for records.

        firewall: the back ends that have rules, such as "nf_tables and legacy", or "none".
        firewall_version: for example "iptables 1.8.9".
        rules: the number of rules.
        ip_forwarding, bridge_nf: "on" or "off".
        Each value that cannot be read is :data:`strata.host.observe.NOT_AVAILABLE`.  ENGINE_ROWS of
        analysis/markdown_tables.R reads the keys.
        """
        # Each line of a chain is a rule, except the first line, which has the chain's type.
        nft_count = len(re.findall(r"(?m)^\t\t(?!type )[^\t}]", _extract_chains(self._nft_rules)))
        counts = {
            # nft lists the rules of iptables' back end nf_tables, too.
            "nf_tables": nft_count or _count_rules(self._nf_tables_rules),
            "legacy": _count_rules(self._legacy_rules),
        }
        version = re.search(r"iptables(?:-nft|-legacy)?-save v(\S+)", self._all_rules)
        facts: Fields = {
            "firewall": " and ".join(name for name, count in counts.items() if count) or "none",
            "firewall_version": f"iptables {version[1]}" if version else None,
            "rules": sum(counts.values()),
        }
        if not self.is_readable:
            facts = dict.fromkeys(facts)
        for name, path in SWITCHES.items():
            text = self._files.get(f"/proc/sys/net/{path}", "")
            facts[name] = {"0": "off", "1": "on"}.get(text)
        return {key: NOT_AVAILABLE if value is None else value for key, value in facts.items()}

    def has_rules_for_bridge(self, bridge: str) -> bool | None:
        """Return whether the firewall has a container engine's rules for a bridge.

        bridge: the name of the bridge's interface, such as docker0.
        Returns None if the rules could not be read.
        """
        if not self.is_readable:
            return None
        name = re.escape(bridge)
        # An iptables rule that names a Docker chain and the bridge, or an element of an nft map
        # from bridges to chains.
        rule = rf'(?m)^-A (?=.*\bDOCKER).*-[io] {name}(?!\S)|"{name}" : jump '
        return bool(re.search(rule, self._all_rules))

    def is_port_translated(self, address: str, port: int, exempt: str = "") -> bool | None:
        """Return whether a rule translates a published port to a container's address and port.

        address: the container's own IP address.
        port: the container's own port, which is also the published one.
        exempt: the ID of a system whose rules of :func:`add_untranslated_port_rules` exempt the
        port from translation; empty: no system.
        Returns None if the rules could not be read.
        """
        if not self.is_readable:
            return None
        target = rf"(?:DNAT --to-destination|dnat (?:ip )?to) {re.escape(address)}:{port}\b"
        rule = rf"\bdport {port}\b.*{target}"
        exemption = rf"(?m)^-A PREROUTING .*--dport {port}\b.*--comment {exempt} -j ACCEPT$"
        # An exemption holds only for the rules of its own back end.
        for rules in (self._nf_tables_rules, self._legacy_rules):
            if exempt and re.search(exemption, rules) and re.search(rule, rules):
                return False
        return bool(re.search(rule, self._all_rules))

    def is_port_proxied(self, address: str, port: int) -> bool | None:
        """Return whether a docker-proxy process forwards a published port to a container.

        address: the container's own IP address.
        port: the container's own port.
        Returns None if the processes could not be listed.
        """
        if "/pgrep" not in self._files:
            return None
        container = rf"-container-ip {re.escape(address)} -container-port {port}\b"
        process = rf"(?m)^\d+ \S*docker-proxy .*{container}"
        return bool(re.search(process, self._files["/pgrep"]))


def read_packet_filter() -> PacketFilter:
    """Return this host's packet filter, read as root.

    Its `is_readable` is false if this user may not read the rules; that is not an error.
    """
    # wrap_as_root() raises without sudo; with check=False, a refused sudo gives an empty output.
    with contextlib.suppress(UserError):
        return PacketFilter(capture_output(wrap_as_root(LIST_COMMAND), check=False).stdout)
    return PacketFilter("")


def _count_rules(saved: str) -> int:
    """Return the number of rules in the output of ``iptables-save``."""
    return len(re.findall("(?m)^-A ", saved))


def _extract_chains(ruleset: str) -> str:
    """Return the bodies of all chains in the output of ``nft list ruleset``.

    Sets and maps are left out, since they hold no rules.  The lines keep their two tabs:
    :meth:`PacketFilter.collect_facts` counts the rules by them.
    """
    # nft indents a chain by one tab, and the brace that ends it, too.
    return "\n".join(re.findall(r"(?ms)^\tchain [^\n]*\{\n(.*?)^\t\}", ruleset))
