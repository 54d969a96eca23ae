"""The kernel's rules for packets to a system: those of this host's that let them through, and those that are found."""

import contextlib
import re

from strata.host import observe
from strata.host.context import Context
from strata.host.daemons import where
from strata.host.observe import NOT_AVAILABLE
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.process import as_root, capture

# Arguments: iptables, and the id of a system, by which its rules are marked.
REMOVE = """
"$1" --wait --list-rules FORWARD | sed -n "s/^-A \\(.* --comment $2 .*\\)/-D \\1/p" |
    xargs --no-run-if-empty -L 1 "$1" --wait
"""


def let_through(context: Context, *matches: list[str]) -> None:
    """Let through what fits one of the matches; the rules are noted first, and go with the system."""
    iptables = where("iptables")
    if iptables is None:
        return
    remove = ["sh", "-c", REMOVE, "strata", iptables, context.id]
    context.note(
        {"kind": "rule", "id": context.id, "root": True, "find": ["true"], "remove": [remove]}
    )
    mark = ["--match", "comment", "--comment", context.id, "--jump", "ACCEPT"]
    for match in matches:
        capture(as_root([iptables, "--wait", "--insert", "FORWARD", *match, *mark]))


# Prints the rules of all back ends, and the programs that pass packets on to containers; also in a machine.
LOOK = """
PATH=$PATH:/usr/sbin:/sbin
for words in iptables-save iptables-legacy-save "nft list ruleset"; do
    rules=$($words 2>/dev/null) && printf '==> /%s <==\\n%s\\n' "${words%% *}" "$rules"
done
if command -v pgrep >/dev/null; then echo "==> /pgrep <=="; pgrep -a docker-proxy; fi
tail -v -n +1 /proc/sys/net/ipv4/ip_forward /proc/sys/net/bridge/bridge-nf-call-iptables 2>/dev/null
"""
LOOKING = ["sh", "-c", LOOK]
SWITCHES = {"ip_forwarding": "ipv4/ip_forward", "bridge_nf": "bridge/bridge-nf-call-iptables"}


class Seen:
    """What :data:`LOOKING` printed where packets to a container arrive; empty where nobody may look."""

    def __init__(self, printed: str) -> None:
        files = observe.split(printed)
        self._files, self.known = files, "/iptables-save" in files or "/nft" in files
        self._saved, self._nft = files.get("/iptables-save", ""), files.get("/nft", "")
        legacy = files.get("/iptables-legacy-save", "")
        # Where there is one kind of iptables, both programs print the same rules.
        self._legacy = legacy if _rules(legacy) else ""
        if _rules(self._saved) and "(nf_tables)" not in self._saved:
            self._legacy, self._saved = self._saved, ""
        self._all = "\n".join([self._saved, self._legacy, self._nft])

    def facts(self) -> Fields:
        """``{firewall, firewall_version, rules, ip_forwarding, bridge_nf}``, the first by their back end."""
        modern = len(re.findall(r"(?m)^\t\t(?!type )[^\t}]", _chains(self._nft))) or _rules(
            self._saved
        )
        counts = {"nf_tables": modern, "legacy": _rules(self._legacy)}
        version = re.search(r"iptables(?:-nft|-legacy)?-save v(\S+)", self._all)
        switches = {
            name: {"0": "off", "1": "on"}.get(self._files.get(f"/proc/sys/net/{path}", ""))
            for name, path in SWITCHES.items()
        }
        found = {
            "firewall": " and ".join(name for name, count in counts.items() if count) or "none",
            "firewall_version": f"iptables {version[1]}" if version else None,
            "rules": sum(counts.values()),
        }
        found = {**(found if self.known else dict.fromkeys(found)), **switches}
        return {key: NOT_AVAILABLE if value is None else value for key, value in found.items()}

    def serves(self, bridge: str) -> bool | None:
        """Whether an engine made rules for its bridge; None where that cannot be seen."""
        name = re.escape(bridge)
        of_docker = rf'(?m)^-A (?=.*\bDOCKER).*-[io] {name}\b|"{name}" : jump '
        return bool(re.search(of_docker, self._all)) if self.known else None

    def leads(self, address: str, port: int) -> bool | None:
        """Whether a rule of the kernel leads a published port to a container; None where that cannot be seen."""
        rule = rf"\bdport {port}\b.*(?:DNAT --to-destination|dnat (?:ip )?to) {re.escape(address)}:{port}\b"
        return bool(re.search(rule, self._all)) if self.known else None

    def passes(self, address: str, port: int) -> bool | None:
        """Whether a docker-proxy passes a published port on; None where that cannot be seen."""
        words = rf"(?m)^\d+ \S*docker-proxy .*-container-ip {re.escape(address)} -container-port {port}\b"
        return bool(re.search(words, self._files["/pgrep"])) if "/pgrep" in self._files else None


def here() -> Seen:
    """What is seen on this host; nothing where this user may not look."""
    with contextlib.suppress(UserError):
        return Seen(capture(as_root(LOOKING), check=False).stdout)
    return Seen("")


def _rules(saved: str) -> int:
    return len(re.findall("(?m)^-A ", saved))


def _chains(ruleset: str) -> str:
    """The bodies of the chains that ``nft list ruleset`` prints: sets and maps are no rules."""
    return "\n".join(re.findall(r"(?ms)^\tchain [^\n]*\{\n(.*?)^\t\}", ruleset))
