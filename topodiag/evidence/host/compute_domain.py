"""NVLink domains as NVIDIA's IMEX daemon and its DRA driver for Kubernetes tell of them.

    {"nodes": {"0": {"status": "READY", ...}, "1": {"status": "UNAVAILABLE", ...}}, "status": "DOWN"}
    [Sep 01 2026 09:11:40] [ERROR] [tid 937292] Node disconnect event detected for node 1 with address ...
    I0902 09:57:32.838156       1 computedomain.go:200] numNodes: 2, nodes seen: 1

The first is `nvidia-imex-ctl -N -j`, the second the log of an IMEX daemon that goes on: a peer that did not come back
before the daemon itself ended, memory that it could not export or import. The third is the log of the DRA driver's own
daemon, which waits until it has seen all nodes of the domain.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.json_values import load, member
from topodiag.evidence.sentences import Reporting, report
from topodiag.lazy import regex
from topodiag.model.events import Event, Trust
from topodiag.model.topics import Topic

MAX_LINE = 1000
MAX_EVENTS = 100
_IMEX = regex(r"\A\s{0,64}\{\s{0,64}\"nodes\"\s{0,8}:(?=[^\0]{0,65536}\"connections\")")
_IMEX_WORDS = {"UP": "", "DEGRADED": "degraded", "DOWN": "down"}
_DAEMON = regex(rb"\] \[tid \d{1,9}\] [^\n]{0,200}(?:\bIMEX\b|isconnect event detected|(?:ex|im)port re)")
_LOGGED = regex(r"\[(\w{3,9}) {0,4}\] \[tid \d{1,9}\] (.{1,400})")
_LOST_PEER = regex(r"[Nn]ode disconnect event detected for node (\d{1,6})\b")
_FOUND_PEER = regex(r"[Cc]onnection established to node (\d{1,6})\b")
_NO_MEMORY = regex(
    r"[Ff]ailed to (?:get|allocate|create|find|release) (?:an? |new ){0,3}(?:memory|export|import) ref\w*"
    r"|import response .{0,60}failure status [1-9]|[Ff]ailed to (?:im|ex)port\b"
)
_STOPS = regex(
    r"\bSIG(?:TERM|INT)\b|[Ss]hutting down|[Tt]ermination signal|[Ee]xiting|[Ss]topping (?:IMEX|nvidia-imex)"
)
_SEEN = regex(r"\bnumNodes: (\d{1,5}), nodes seen: (\d{1,5})\b")
"""SOURCE: k8s-dra-driver-gpu, cmd/compute-domain-daemon/computedomain.go."""


class ComputeDomain(Reporting):
    """Nodes of an NVLink domain that are not ready, or that have no clique."""

    kind = "compute-domain"
    speaks_of = frozenset({Topic.SERVICES})
    quiet_is_news = True
    trust = 45
    a_piece = "what the operator wrote of the domain"

    def recognises(self, head: str) -> bool:
        return (
            _IMEX.match(head) is not None
            or _SEEN.search(head) is not None
            or ("] [tid " in head and _DAEMON.search(head.encode()) is not None)
        )

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        rows = chain(_imex(blob), _of_log(blob), _waits(blob))
        for number, text, line in islice(rows, MAX_EVENTS):
            parsed.records.append(report("nvlink.fabric", text, blob, number, line, trust=Trust.PERSON))
        return parsed


def _imex(blob: Blob) -> Iterator[tuple[int, str, str]]:
    """The state of an IMEX domain, and the nodes that are not ready."""
    if _IMEX.match(blob.text) is None:
        return
    document, _ = load(blob)
    nodes, word = member(document, "nodes"), _IMEX_WORDS.get(str(member(document, "status")), "")
    if word and isinstance(nodes, dict):
        out = [
            str(member(node, "host") or name)[:60]
            for name, node in nodes.items()
            if member(node, "status") not in ("READY", None)
        ]
        text = f"the IMEX domain is {word}" + (f": {', '.join(out[:4])} not ready" if out else "")
        line = next((number for number, line in blob.lines() if '"status"' in line), 1)
        yield line, text, text


def _of_log(blob: Blob) -> Iterator[tuple[int, str, str]]:
    """What the log of an IMEX daemon says of peers that are gone and of memory that is not shared. A daemon that is
    told to stop loses its peers as it should."""
    missing: dict[str, tuple[int, str, str]] = {}
    refused: list[tuple[int, str, str]] = []
    for number, whole in blob.lines():
        match = _LOGGED.search(whole[:MAX_LINE])
        if match is None:
            continue
        if _STOPS.search(match[2]):
            missing = {}
        elif (back := _FOUND_PEER.search(match[2])) is not None:
            missing.pop(back[1], None)
        elif match[1] in ("ERROR", "FATAL") and (lost := _LOST_PEER.search(match[2])) is not None:
            text = f"the IMEX daemon lost its peer {lost[1]} and did not get it back: {match[2]}"
            missing.setdefault(lost[1], (number, text, whole))
        elif match[1] in ("ERROR", "FATAL") and _NO_MEMORY.search(match[2]) is not None:
            refused.append((number, f"the IMEX daemon cannot share memory: {match[2]}", whole))
    yield from missing.values()
    yield from refused


def _waits(blob: Blob) -> Iterator[tuple[int, str, str]]:
    """The nodes that a domain still waits for at the end of its log: each start begins with few."""
    last = None
    for number, whole in blob.lines():
        if "nodes seen" in whole and (match := _SEEN.search(whole[:MAX_LINE])) is not None:
            last = (number, int(match[1]), int(match[2]), whole)
    if last is not None and last[2] < last[1]:
        text = f"the compute domain waits for {last[1]} nodes, and {last[2]} came: its channels are not given out"
        yield last[0], text, last[3]
