"""NVLink domains as Kubernetes sees them: a ComputeDomain of NVIDIA's DRA driver, and the clique labels of nodes.

    status:                                   NAME      STATUS   ROLES    AGE   VERSION   GPU.CLIQUE
      nodes:                                  gb200-1   Ready    <none>   20d   v1.32.1   9d1c5f6f-....32766
      - cliqueID: 9d1c5f6f-....32766          gb200-2   Ready    <none>   20d   v1.32.1
        name: gb200-1
        status: NotReady
      status: NotReady

    {"nodes": {"0": {"status": "READY", ...}, "1": {"status": "UNAVAILABLE", ...}}, "status": "DOWN"}

    [Sep 01 2026 09:11:40] [ERROR] [tid 937292] Node disconnect event detected for node 1 with address ...

    I0902 09:57:32.838156       1 computedomain.go:200] numNodes: 2, nodes seen: 1

    I0929 12:40:26.277236       1 nvlib.go:243] identified fabric clique UUID/ID (device 0/GPU-..): 6a13..917/32766

The third is `nvidia-imex-ctl -N -j`, the fourth the log of an IMEX daemon that goes on: a peer that did not come back
before the daemon itself ended, memory that it could not export or import. The fifth is the log of the DRA driver's own
daemon, which waits until it has seen all nodes of the domain, the last that of its plug-in on a node, whose GPUs are in
one clique. A node of a domain that is not ready has no IMEX daemon
that peers reach; a node without a clique beside nodes with one has GPUs whose fabric did not come up.
Format: k8s-dra-driver-gpu, api/nvidia.com/resource/v1beta1 (ComputeDomainStatus); gpu-feature-discovery, the label
nvidia.com/gpu.clique.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import Reporting, report
from topodiag.lazy import regex
from topodiag.model.events import Event, Trust
from topodiag.model.topics import Topic

MAX_LINE = 1000
MAX_EVENTS = 100
_DOMAIN = regex(r"\bkind: ComputeDomain\b|\"kind\": \"ComputeDomain\"|^\s{0,16}\"?-? ?\"?cliqueID\"?: ", re.M)
_TABLE = regex(r"^[ \t]{0,8}NAME {1,200}\S[^\n]{0,300}CLIQUE[ \t]*$", re.MULTILINE)
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
_DEVICE = regex(r"\bfabric clique UUID/ID \(device \d{1,3}/(GPU-[\w-]{8,40})\): ([\w-]{8,40}/\d{1,10})\b")
"""SOURCE: k8s-dra-driver-gpu, cmd/gpu-kubelet-plugin/nvlib.go: one line for each GPU of its node."""
_FIELD = regex(r"\s{0,24}(-?)\s{0,4}\"?(cliqueID|name|status|ipAddress|index)\"?: \"?([^\s\",]{1,200})\"?,?\s*\Z")
_ITEM = regex(r"\s{0,24}(?:- |\{\s*\Z)")
_NOT_READY = frozenset({"NotReady", "Failed", "Error"})


class ComputeDomain(Reporting):
    """Nodes of an NVLink domain that are not ready, or that have no clique."""

    kind = "compute-domain"
    speaks_of = frozenset({Topic.SERVICES})
    quiet_is_news = True
    trust = 45
    a_piece = "what the operator wrote of the domain"

    def recognises(self, head: str) -> bool:
        return ("lique" in head and _DOMAIN.search(head) is not None) or (
            _TABLE.search(head) is not None
            or _IMEX.match(head) is not None
            or _SEEN.search(head) is not None
            or _DEVICE.search(head) is not None
            or ("] [tid " in head and _DAEMON.search(head.encode()) is not None)
        )

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        parsed.lines = blob.data.count(b"\n") + 1
        told = (*_not_ready(blob), *_without_clique(blob), *_imex(blob), *_of_log(blob), *_waits(blob),
                *_of_devices(blob))  # fmt: skip
        for number, text, line in told:
            if len(parsed.records) < MAX_EVENTS:
                parsed.records.append(report("nvlink.fabric", text, blob, number, line, trust=Trust.PERSON))
        return parsed


def _not_ready(blob: Blob) -> Iterator[tuple[int, str, str]]:
    """Nodes of the status of a ComputeDomain that are not ready."""
    own: dict[str, str] = {}
    for number, whole in blob.lines():
        line = whole[:MAX_LINE]
        if _ITEM.match(line):
            own = {}
        field = _FIELD.match(line)
        if field is None:
            continue
        own[field[2]] = field[3]
        if "cliqueID" in own and own.get("status") in _NOT_READY and ("name" in own or "ipAddress" in own):
            node = own.get("name") or own["ipAddress"]
            yield number, f"the node {node} of the compute domain is {own['status']}", line
            own = {}


def _imex(blob: Blob) -> Iterator[tuple[int, str, str]]:
    """The state of an IMEX domain, and the nodes that are not ready."""
    if _IMEX.match(blob.text) is None:
        return
    try:
        held = msgspec.json.decode(blob.data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return
    nodes = held.get("nodes") if isinstance(held, dict) else None
    word = _IMEX_WORDS.get(str(held.get("status")), "") if isinstance(held, dict) else ""
    if word and isinstance(nodes, dict):
        out = [
            str(node.get("host", name))[:60]
            for name, node in nodes.items()
            if isinstance(node, dict) and node.get("status") not in ("READY", None)
        ]
        text = f"the IMEX domain is {word}" + (f": {', '.join(out[:4])} not ready" if out else "")
        line = next((number for number, line in blob.lines() if '"status"' in line), 1)
        yield line, text, text


def _of_log(blob: Blob) -> Iterator[tuple[int, str, str]]:
    """What the log of an IMEX daemon says of peers that are gone and of memory that is not shared. A daemon that is
    told to stop loses its peers as it should."""
    gone: dict[str, tuple[int, str, str]] = {}
    refused: list[tuple[int, str, str]] = []
    for number, whole in blob.lines():
        said = _LOGGED.search(whole[:MAX_LINE])
        if said is None:
            continue
        if _STOPS.search(said[2]):
            gone = {}
        elif (back := _FOUND_PEER.search(said[2])) is not None:
            gone.pop(back[1], None)
        elif said[1] in ("ERROR", "FATAL") and (lost := _LOST_PEER.search(said[2])) is not None:
            text = f"the IMEX daemon lost its peer {lost[1]} and did not get it back: {said[2]}"
            gone.setdefault(lost[1], (number, text, whole))
        elif said[1] in ("ERROR", "FATAL") and _NO_MEMORY.search(said[2]) is not None:
            refused.append((number, f"the IMEX daemon cannot share memory: {said[2]}", whole))
    yield from gone.values()
    yield from refused


def _waits(blob: Blob) -> Iterator[tuple[int, str, str]]:
    """The nodes that a domain still waits for at the end of its log: each start begins with few."""
    last = None
    for number, whole in blob.lines():
        if "nodes seen" in whole and (said := _SEEN.search(whole[:MAX_LINE])) is not None:
            last = (number, int(said[1]), int(said[2]), whole)
    if last is not None and last[2] < last[1]:
        text = f"the compute domain waits for {last[1]} nodes, and {last[2]} came: its channels are not given out"
        yield last[0], text, last[3]


def _of_devices(blob: Blob) -> Iterator[tuple[int, str, str]]:
    """A GPU that is in another clique than the first of its node, by the last word on each: a log holds restarts."""
    told: dict[str, tuple[str, int, str]] = {}
    for number, whole in blob.lines():
        said = _DEVICE.search(whole[:MAX_LINE]) if "clique" in whole else None
        if said is not None:
            told[said[1]] = (said[2], number, whole)
    first = next(iter(told.values()), ("", 0, ""))[0]
    for gpu, (clique, number, line) in told.items():
        if clique != first:
            yield number, f"{gpu} is in the clique {clique}, and another GPU of its node in {first}", line
            return


def _without_clique(blob: Blob) -> Iterator[tuple[int, str, str]]:
    """Rows of a table of nodes that have no clique where others have one."""
    at, empty, filled = -1, [], False
    for number, whole in blob.lines():
        line = whole[:MAX_LINE].rstrip()
        if _TABLE.match(line):
            at = line.index("CLIQUE")
            at = line.rfind(" ", 0, at) + 1
        elif at >= 0 and line.strip():
            cell = line[at:].strip()
            if cell in ("", "<none>") and re.match(r"\s{0,8}[a-z0-9][\w.-]{0,252}\s", line):
                empty.append((number, f"the node {line.split()[0]} has no clique, and others have one", line))
            filled = filled or "." in cell
    if filled:
        yield from empty
