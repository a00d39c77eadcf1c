"""Lines of trouble on a node that no finding explains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from topodiag.checks.shared.devices import gpu_spec
from topodiag.checks.shared.phrases import meaning
from topodiag.checks.shared.tables import reported_by_tables
from topodiag.lazy import regex
from topodiag.model.devices import Nic, NicRole
from topodiag.model.events import OUT_OF_SERVICE, REMARK
from topodiag.model.finding import Finding, Outcome, Status
from topodiag.model.node import Node
from topodiag.model.result import Trouble
from topodiag.words.own_data import own_data
from topodiag.words.states import GOOD
from topodiag.words.units import in_gbps

_VARIES = regex(r"0x[0-9a-fA-F]{1,16}|\[[^\s\[\]]{1,40}:\d{1,10}\]$|\d{1,20}")
"""Numbers, and the task that the kernel names at the end of a line."""
_BEGIN = 60
"""Characters by which a line is recognised among a finding's words."""


def unexplained(lines: Iterable[Trouble], findings: Sequence[Finding]) -> list[Trouble]:
    """The lines that none of these findings shows as evidence; those that differ in numbers only as one, with their
    count."""
    shown = explained_by(findings)
    troubles: dict[tuple[str, str, str, str], Trouble] = {}
    for line in lines:
        if shown(line):
            continue
        key = (line.subject, line.what, shape(line.text), line.harmless)
        known = troubles.get(key)
        troubles[key] = line if known is None else replace(known, count=known.count + line.count)
    return list(troubles.values())


def explained_by(findings: Sequence[Finding]) -> Callable[[Trouble], bool]:
    """Tells of a line whether one of these findings has it, or one like it, among its evidence or its words."""
    evidence = [origin for finding in findings for origin in finding.evidence]
    places = {(origin.source, origin.line) for origin in evidence if origin.line is not None}
    texts = [*(origin.text for origin in evidence), *(f"{finding.message} {finding.observed}" for finding in findings)]
    words = set(map(shape, texts))

    def shown(line: Trouble) -> bool:
        if line.origin is not None and (line.origin.source, line.origin.line) in places:
            return True
        begin = shape(line.text)[:_BEGIN]
        return bool(begin) and any(begin in word for word in words)

    return shown


def shape(text: str) -> str:
    """A text without its numbers and its task, on one line: lines of one shape say the same of different things."""
    return _VARIES.sub("#", " ".join(text.split()))


_DATA = own_data("checks/troubles/node")
KERNEL = frozenset(_DATA["kernel"])
"""Kinds of kernel messages that say by themselves that something is wrong."""

PORT_DOWN = "NIC001"
_MISMATCH = "kernel.api_mismatch"

_BY_OTHERS = {OUT_OF_SERVICE: "word of a scheduler or a health check", REMARK: "what a line of a tool says"}
"""What is said by others than the kernel, by the kind of event: quoted, and believed by no check."""

REFUSED: dict[str, str] = _DATA["refused"]
"""Words of `nvidia-smi topo -p2p` for a pair without peer access."""

_TROUBLE = ("error", "fail", "fatal", "timeout", "mismatch", "cannot", "unable", "not ", "lost", "power", "health",
            "temperature")  # fmt: skip


def troubles(nodes: Sequence[Node], outcomes: Sequence[Outcome]) -> tuple[Trouble, ...]:
    """Of all nodes, in the order of their evidence. `outcomes` are those of the same nodes."""
    listed: list[Trouble] = []
    for node in nodes:
        own = [outcome for outcome in outcomes if outcome.node == node.host]
        findings = [finding for outcome in own for finding in outcome.findings]
        lines = (*_messages(node, own), *_ports(node, own), *_interfaces(node), *_peers(node), *_gids(node))
        listed += unexplained(lines, findings)
    return tuple(listed)


def _messages(node: Node, outcomes: Sequence[Outcome]) -> Iterator[Trouble]:
    families = {finding.id[:3] for outcome in outcomes for finding in outcome.findings}
    reloaded = any(outcome.check == "HST004" and outcome.status is Status.CLEAN for outcome in outcomes)
    for event in node.events:
        spoken_for = families.intersection(_DATA["around"].get(event.kind, ()))
        low = event.text.lower()
        if event.kind in KERNEL and not spoken_for and (event.kind != "nvrm" or any(word in low for word in _TROUBLE)):
            over = "another module was loaded since" if reloaded and event.signature == _MISMATCH else ""
            harmless = over or meaning("harmless_to_a_node", event.text)
            yield Trouble("kernel log", event.text.strip(), node.host, event.origin, harmless=harmless)
    for report in (*node.reports, *reported_by_tables(node)):
        if report.kind in _BY_OTHERS:
            yield Trouble(_BY_OTHERS[report.kind], report.text.strip(), node.host, report.origin)


def _ports(node: Node, outcomes: Sequence[Outcome]) -> Iterator[Trouble]:
    """Ports that are down and that NIC001 could not decide on; what it found or cleared is decided."""
    settled = [one.check for one in outcomes if one.status in (Status.FINDING, Status.CLEAN)]
    decided = PORT_DOWN in settled
    up = [nic for nic in node.nics if _is_up(nic)]
    for nic in node.nics:
        undecided = nic.role is NicRole.UNKNOWN or (nic.role is NicRole.COMPUTE and not decided)
        if undecided and nic.rdma_name is not None and up and nic.ports and not _is_up(nic):
            state = nic.ports[0].state
            if state.value is not None:
                text = f"{nic.name} is {state.value}, while {up[0].name} is up"
                yield Trouble("port that is down", text, node.host, state.origin)


def _interfaces(node: Node) -> Iterator[Trouble]:
    """Interfaces without a link, or slower than they can be, where a text shows interfaces and nothing else of the
    machine: whoever pastes one of them asks about it. Of a whole machine many have no cable, and no part in a job."""
    if node.nics or node.gpus or node.pci:
        return
    for netdev in node.netdevs:
        speed, best = netdev.speed_mbps.value or 0, netdev.max_speed_mbps.value or 0
        if netdev.carrier.value is False:
            yield Trouble("interface without a link", f"{netdev.name} has no link", node.host, netdev.carrier.origin)
        elif 0 < speed < best:
            text = f"{netdev.name} runs at {in_gbps(speed / 1000)}, and its port can do {in_gbps(best / 1000)}"
            yield Trouble("interface below its speed", text, node.host, netdev.speed_mbps.origin)


def _peers(node: Node) -> Iterator[Trouble]:
    """Pairs without peer access in a table of `nvidia-smi topo -p2p` alone: with the tree or the matrix of the machine
    the checks know whether the pair should have it."""
    if node.smi_matrix or node.pci or node.is_vm:
        return
    for name, table in node.p2p.items():
        refused = {pair: fact for pair, fact in table.items() if fact.value in REFUSED and pair[0] < pair[1]}
        for word in dict.fromkeys(fact.value or "" for fact in refused.values()):
            own = [(pair, fact) for pair, fact in refused.items() if fact.value == word]
            (a, b), fact = own[0]
            total = sum(pair[0] < pair[1] for pair in table)
            text = f"{len(own)} of {total} pairs have no peer access ({name}), as {a} and {b}: {word}, {REFUSED[word]}"
            geforce = any(not spec.p2p_pcie for gpu in node.gpus if (spec := gpu_spec(gpu)) is not None)
            why = "the driver gives this product no peer access" if word == "GNS" or geforce else ""
            yield Trouble("peer-to-peer", text, node.host, fact.origin, harmless=why)


def _gids(node: Node) -> Iterator[Trouble]:
    """Tables of RoCE ports that hold link-local addresses alone: of InfiniBand they are as they should be."""
    for nic in node.nics:
        for port in nic.ports:
            table = port.gids.value or ()
            rows = [entry.split() for entry in table]
            roce = any("RoCE" in entry for entry in table) and port.link_layer.value != "InfiniBand"
            if roce and all(len(row) > 1 and row[1].lower().startswith("fe80:") for row in rows):
                text = f"{nic.name} has link-local GIDs alone ({len(rows)}), as of an interface without an IP address"
                yield Trouble("RoCE port without an address", text, node.host, port.gids.origin)


def _is_up(nic: Nic) -> bool:
    return any((port.state.value or "").strip().lower() in GOOD for port in nic.ports)
