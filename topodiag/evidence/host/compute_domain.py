"""NVLink domains as NVIDIA's IMEX daemon and its DRA driver for Kubernetes tell of them.

    {"nodes": {"0": {"status": "READY", ...}, "1": {"status": "UNAVAILABLE", ...}}, "status": "DOWN"}
    I0902 09:57:32.838156       1 computedomain.go:200] numNodes: 2, nodes seen: 1

The first is `nvidia-imex-ctl -N -j`, the second the log of the DRA driver's own daemon, which waits until it has seen
all nodes of the domain. SOURCE: k8s-dra-driver-gpu, cmd/compute-domain-daemon/computedomain.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import MAX_LINE, Blob, Parsed, Source, to_int
from topodiag.evidence.json_values import line_of, load, member
from topodiag.evidence.sentences import report
from topodiag.model.events import Event, Trust

MAX_EVENTS = 100
_IMEX_WORDS = {"UP": "", "DEGRADED": "degraded", "DOWN": "down"}
_SEEN = ", nodes seen: "
_Row = tuple[int, str, str]
"""The number of a line, what it says, and the line."""


class ComputeDomain(Source):
    """Nodes of an NVLink domain that are not ready."""

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[Event]:
        rows = islice(chain(_imex(blob), _waits(blob)), MAX_EVENTS)
        events = [report("nvlink.imex", text, blob, number, line, trust=Trust.PERSON) for number, text, line in rows]
        draft.reports += events
        return Parsed(events)


def _is_imex(text: str) -> bool:
    return "".join(text[:200].split()).startswith('{"nodes":') and '"connections"' in text


def _imex(blob: Blob) -> Iterator[_Row]:
    """The state of an IMEX domain, and the nodes that are not ready."""
    document = load(blob)[0] if _is_imex(blob.text) else None
    nodes, word = member(document, "nodes"), _IMEX_WORDS.get(str(member(document, "status")), "")
    if word and isinstance(nodes, dict):
        out = [
            str(member(node, "host") or name)[:60]
            for name, node in nodes.items()
            if member(node, "status") not in ("READY", None)
        ]
        text = f"the IMEX domain is {word}" + (f": {', '.join(out[:4])} not ready" if out else "")
        yield line_of(blob.text, "status"), text, text


def _waits(blob: Blob) -> Iterator[_Row]:
    """The nodes that a domain still waits for at the end of its log: each start begins with few."""
    rows = [(number, line[:MAX_LINE]) for number, line in blob.lines() if _SEEN in line]
    for number, line in rows[-1:]:
        before, _, after = line.partition(_SEEN)
        wanted, came = to_int(before.rpartition("numNodes: ")[2]), to_int(after)
        if wanted is not None and came is not None and came < wanted:
            text = f"the compute domain waits for {wanted} nodes, and {came} came: its channels are not given out"
            yield number, text, line
