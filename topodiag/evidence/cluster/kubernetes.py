"""A cluster from `kubectl get nodes -o json`: the topology labels of topograph and of the clouds, and allocatable GPUs.

Which label stands for what is data (`labels.toml`), each with its source.

A node is some 20 KB of JSON, most of it the images that it holds, and a few hundred bytes of that matter: the list is
cut into nodes first, and of each only what is asked for becomes objects.

Which pod runs on which node: `kubectl get pods -o wide`, `-o json`, `-o yaml`, `kubectl describe pod`, and events.

The name of a pod is the host name that its processes print; its node is the machine that a capture is of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from topodiag.evidence.interface import Blob, to_int
from topodiag.evidence.json_values import member, objects, text
from topodiag.evidence.marks import POD
from topodiag.evidence.yaml_values import load_yaml
from topodiag.model.cluster_facts import ClusterFacts, check_nodes, nested, partition_of
from topodiag.model.errors import InputError
from topodiag.model.result import Tie
from topodiag.words.hosts import address_of
from topodiag.words.node_sets import MAX_GPUS, MAX_NODES, short
from topodiag.words.own_data import own_data
from topodiag.words.units import most_of

_Labels = tuple[tuple[str, str], ...]
"""Labels with the kinds of levels that they stand for, innermost first."""
_KINDS = ("leaf", "spine", "core", "fabric", "tier 4", "tier 5", "tier 6", "tier 7")
TABLES: tuple[tuple[str, _Labels], ...] = tuple(
    (table["name"], tuple((label, kind) for label, kind in table["labels"]))
    for table in own_data("evidence/cluster/labels")["table"]
)
"""The labels of each writer. The first that labels the most nodes counts."""
DOMAINS: tuple[str, ...] = tuple(domain["label"] for domain in own_data("evidence/cluster/labels")["domain"])
"""Labels of NVLink domains."""
_INSTANCE = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_GPU = "nvidia.com/gpu"
_PRODUCT = "nvidia.com/gpu.product"
_WANTED = frozenset((*_INSTANCE, _PRODUCT, *DOMAINS, *(label for _, labels in TABLES for label, _ in labels)))
"""Labels that are kept: a node has a hundred others."""


def read(blob: Blob) -> ClusterFacts:
    """The nodes with GPUs. Raises InputError for what is no list of nodes."""
    nodes = _nodes(blob)
    with_gpus = [node for node in nodes if node.gpus > 0]
    kept = with_gpus or nodes
    names = tuple(node.name for node in kept)
    check_nodes(blob.name, names, "kubectl get nodes -o json")
    notes: list[str] = []
    if len(kept) < len(nodes):
        notes.append(f"{len(nodes) - len(kept)} nodes without {_GPU} are left out")
    labels = [node.labels for node in kept]
    writer, kinds = max(TABLES, key=lambda table: _covered(table[1], labels))
    rows = _levels(kinds, labels)
    notes += _level_notes(writer, rows)
    by_most = max(DOMAINS, key=lambda label: _covered([(label, "")], labels))
    domain = [row.get(by_most) for row in labels]
    out = {number: () for number, node in enumerate(kept) if not node.usable}
    if out:
        notes.append(f"{len(out)} nodes are not ready or not schedulable: their GPUs do not count")
    return ClusterFacts(
        name=blob.name,
        format=f"Kubernetes labels of {writer}" if rows else "Kubernetes nodes",
        nodes=names,
        partitions=nested([kind for kind, _ in rows], [row for _, row in rows]),
        domain=partition_of("nvlink", domain) if any(domain) else None,
        gpus=np.asarray([node.gpus if with_gpus else -1 for node in kept], np.int64),
        free=out,
        system=most_of(filter(None, (row.get(label) for row in labels for label in _INSTANCE)), ""),
        gpu=most_of(filter(None, (row.get(_PRODUCT) for row in labels)), ""),
        notes=tuple(notes),
    )


_Rows = list[tuple[str, list[str | None]]]
"""By level, innermost first: its kind, and the label of each node."""


def _levels(kinds: Sequence[tuple[str, str]], labels: Sequence[Mapping[str, str]]) -> _Rows:
    """The levels that some node has a label of, with kinds that differ: a tree deeper than usual repeats one."""
    levels: _Rows = [(kind, [row.get(label) for row in labels]) for label, kind in kinds]
    rows = [(kind, row) for kind, row in levels if any(row)]
    if len({kind for kind, _ in rows}) == len(rows):
        return rows
    return [(kind, row) for kind, (_, row) in zip(_KINDS, rows, strict=False)]


def _level_notes(table: str, rows: _Rows) -> list[str]:
    if not rows:
        return ["no topology label is known: all nodes count as equally near"]
    return [
        f"{row.count(None)} nodes without the {table} label of the {kind}: each counts as alone there"
        for kind, row in rows
        if None in row
    ]


class _Node(NamedTuple):
    name: str
    labels: Mapping[str, str]
    gpus: int
    usable: bool


class _List(msgspec.Struct):
    """The document, its nodes not looked into."""

    kind: Any = None
    items: msgspec.Raw = msgspec.Raw(b"null")


class _Meta(msgspec.Struct):
    name: str
    labels: dict[str, Any] = {}


class _Spec(msgspec.Struct):
    unschedulable: Any = False


class _Status(msgspec.Struct):
    allocatable: dict[str, Any] = {}
    capacity: dict[str, Any] = {}
    conditions: Any = None


class _Entry(msgspec.Struct):
    """What is read of a node; whatever else it has is passed over unread."""

    metadata: _Meta
    kind: Any = "Node"
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_ENTRY = msgspec.json.Decoder(_Entry)


def _nodes(blob: Blob) -> list[_Node]:
    """The nodes one after the other; an entry that is none is passed over."""
    rows: list[_Node] = []
    try:
        for raw in _items(blob):
            node = _node(raw)
            if node is not None:
                rows.append(node)
    except UnicodeDecodeError:
        raise InputError(blob.name, f"is not UTF-8 (read up to {rows[-1].name})" if rows else "is not UTF-8") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(blob.name, f"is no JSON: {short(str(error))}", hint="was the copy cut short?") from None
    return rows


def _items(blob: Blob) -> Sequence[msgspec.Raw]:
    lacking = InputError(blob.name, "has no list of nodes", hint="kubectl get nodes -o json")
    try:
        document = msgspec.json.decode(blob.data, type=_List)
        if document.kind == "Node":
            return (msgspec.Raw(blob.data),)
        return msgspec.json.decode(document.items, type=list[msgspec.Raw])
    except msgspec.ValidationError:
        raise lacking from None


def _node(raw: msgspec.Raw) -> _Node | None:
    try:
        entry = _ENTRY.decode(raw)
    except msgspec.ValidationError:
        return None
    name, status = entry.metadata.name, entry.status
    if entry.kind != "Node" or not 0 < len(name) < 254 or not name.isprintable() or " " in name:
        return None
    pairs = ((key, value) for key, value in entry.metadata.labels.items() if key in _WANTED)
    labels = {key: value for key, value in pairs if isinstance(value, str) and value}
    gpus = to_int(str(status.allocatable.get(_GPU, status.capacity.get(_GPU, 0))), low=0, high=9999) or 0
    ready = not any(
        condition.get("type") == "Ready" and condition.get("status") != "True"
        for _, condition in objects(status.conditions, MAX_NODES)
    )
    return _Node(name, labels, min(gpus, MAX_GPUS), ready and entry.spec.unschedulable is not True)


def _covered(kinds: Sequence[tuple[str, str]], labels: Sequence[Mapping[str, str]]) -> int:
    """Labels on all nodes together: more levels count more."""
    return sum(label in row for row in labels for label, _ in kinds)


MAX_PODS = 1 << 17
_NONE = frozenset({"", "<none>", "none", "<unknown>"})


def read_pods(blob: Blob) -> tuple[Tie, ...]:
    """The names of each machine that a text ties together: pod, its addresses, its node. Raises InputError for what
    begins as JSON or YAML and is none."""
    head = blob.text[: 1 << 16]
    if POD["header"].search(head):
        ties = _table(blob)
    elif POD["object"].search(head) and "nodeName" in head:
        ties = _objects(blob)
    elif POD["scheduled"].search(head):
        ties = _events(blob)
    else:
        ties = _described(blob)
    by_key: dict[tuple[str, ...], Tie] = {}
    for tie in ties:
        by_key.setdefault(tie.names, tie)
        if len(by_key) >= MAX_PODS:
            break
    return tuple(by_key.values())


def _table(blob: Blob) -> Iterator[Tie]:
    """`kubectl get pods -o wide`: columns stand where the header has them."""
    columns: Mapping[str, int] | None = None
    for number, line in blob.lines():
        if POD["header"].match(line):
            columns = {match[0]: match.start() for match in re.finditer(r"\S+(?: (?=[A-Z])\S+)*", line)}
            continue
        if columns is None or not line.strip():
            continue
        cells = {name: _cell(line, at) for name, at in columns.items()}
        yield from _tie(blob, number, line, cells.get("NAME", ""), cells.get("NODE", ""), [cells.get("IP", "")])


def _cell(line: str, at: int) -> str:
    """The word that begins in a column. A cell that is wider than its header moves the ones behind it: then the row
    does not fit, and says nothing."""
    if at >= len(line) or (at and line[at - 1] != " "):
        return ""
    word = line[at:].split(" ", 1)[0]
    return "" if word.lower() in _NONE else word


def _events(blob: Blob) -> Iterator[Tie]:
    for number, line in blob.lines():
        for match in POD["scheduled"].finditer(line[:4096]):
            yield from _tie(blob, number, line, match[1] or match[3], match[2] or match[4], [])


def _described(blob: Blob) -> Iterator[Tie]:
    """`kubectl describe pod`: `Node: name/address`, one pod after the other."""
    pod, node, at, shown = "", "", 0, ""
    addresses: list[str] = []
    for number, line in blob.lines():
        match = POD["described"].match(line)
        if match is None:
            continue
        if match[1] == "Name":
            yield from _tie(blob, at, shown, pod, node, addresses)
            pod, node, addresses = match[2], "", []
        elif match[1] == "Node":
            node, _, address = match[2].partition("/")
            addresses, at, shown = [*addresses, address], number, line
        else:
            addresses = [*addresses, match[2]]
    yield from _tie(blob, at, shown, pod, node, addresses)


def _objects(blob: Blob) -> Iterator[Tie]:
    """Pods as JSON or YAML. The address of a pod is its node's where it uses the network of its host alone."""
    document = load_yaml(blob)
    items = member(document, "items")
    for _, pod in objects(items if isinstance(items, list) else [document], MAX_PODS):
        if pod.get("kind", "Pod") != "Pod":
            continue
        addresses = [text(member(pod.get("status"), key)) or "" for key in ("podIP", "hostIP")]
        node, host = (text(member(pod.get("spec"), key)) or "" for key in ("nodeName", "hostname"))
        name = text(member(pod.get("metadata"), "name")) or ""
        yield from _tie(blob, None, f"{name}: nodeName {node}", name, node, addresses, host)


def _tie(  # noqa: PLR0917 - where it stands, and what it says
    blob: Blob, number: int | None, line: str, pod: str, node: str, addresses: Sequence[str], host: str = ""
) -> Iterator[Tie]:
    """Nothing for a pod that has no node yet."""
    if pod and node and node.lower() not in _NONE:
        own = [address for host in addresses if (address := address_of(host))]
        names = tuple(dict.fromkeys((node, pod, *([host] if host else []), *own)))
        yield Tie(names, "the list of pods says so", blob.origin(number, line))
