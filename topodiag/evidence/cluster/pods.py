"""Which pod runs on which node: `kubectl get pods -o wide`, `-o json`, `-o yaml`, `kubectl describe pod`, and events.

The name of a pod is the host name that its processes print; its node is the machine that a capture is of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from topodiag.evidence.interface import Blob
from topodiag.evidence.json_values import text
from topodiag.evidence.marks import POD_DESCRIBED, POD_HEADER, POD_OBJECT, POD_SCHEDULED, POD_SPEC
from topodiag.evidence.yaml_values import load_yaml
from topodiag.model.identity import Tie
from topodiag.words.hosts import address_of

MAX_PODS = 1 << 17
_NONE = frozenset({"", "<none>", "none", "<unknown>"})


def read_pods(blob: Blob) -> tuple[Tie, ...]:
    """The names of each machine that a text ties together: pod, its addresses, its node. Raises InputError for what
    begins as JSON or YAML and is none."""
    head = blob.text[: 1 << 16]
    if POD_HEADER.search(head):
        found = _table(blob)
    elif POD_OBJECT.search(head) and POD_SPEC.search(head):
        found = _objects(blob)
    elif POD_SCHEDULED.search(head):
        found = _events(blob)
    else:
        found = _described(blob)
    made: dict[tuple[str, ...], Tie] = {}
    for tie in found:
        made.setdefault(tie.names, tie)
        if len(made) >= MAX_PODS:
            break
    return tuple(made.values())


def _table(blob: Blob) -> Iterator[Tie]:
    """`kubectl get pods -o wide`: columns stand where the header has them."""
    columns: Mapping[str, int] | None = None
    for number, line in blob.lines():
        if POD_HEADER.match(line):
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
        for match in POD_SCHEDULED.finditer(line[:4096]):
            yield from _tie(blob, number, line, match[1] or match[3], match[2] or match[4], [])


def _described(blob: Blob) -> Iterator[Tie]:
    """`kubectl describe pod`: `Node: name/address`, one pod after the other."""
    pod, node, at, shown = "", "", 0, ""
    addresses: list[str] = []
    for number, line in blob.lines():
        match = POD_DESCRIBED.match(line)
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
    for pod in _pods(load_yaml(blob)):
        meta, spec, status = (_mapping(pod.get(key)) for key in ("metadata", "spec", "status"))
        addresses = [text(status.get("podIP")) or "", text(status.get("hostIP")) or ""]
        name, node = text(meta.get("name")) or "", text(spec.get("nodeName")) or ""
        host = text(spec.get("hostname")) or ""
        yield from _tie(blob, None, f"{name}: nodeName {node}", name, node, addresses, host)


def _pods(value: Any) -> Sequence[Mapping[str, Any]]:
    if not isinstance(value, Mapping):
        return []
    items = value.get("items")
    listed = items if isinstance(items, list) else [value]
    return [each for each in listed[:MAX_PODS] if isinstance(each, Mapping) and each.get("kind", "Pod") == "Pod"]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _tie(  # noqa: PLR0917 - where it stands, and what it says
    blob: Blob, number: int | None, line: str, pod: str, node: str, addresses: Sequence[str], host: str = ""
) -> Iterator[Tie]:
    """Nothing for a pod that has no node yet."""
    if pod and node and node.lower() not in _NONE:
        own = [address for each in addresses if (address := address_of(each))]
        names = tuple(dict.fromkeys((node, pod, *([host] if host else []), *own)))
        yield Tie(names, "the list of pods says so", blob.origin(number, line))


__all__ = ["read_pods"]
