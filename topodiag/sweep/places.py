"""Node sets and racks: from the command line, a CSV or Slurm's topology.conf, in bounds whatever is written there."""

from __future__ import annotations

import re
from collections.abc import Sequence

from topodiag.evidence.intake.one_file import read_small
from topodiag.lazy import regex
from topodiag.model.errors import InputError, TopodiagError
from topodiag.sweep.values import Fabric
from topodiag.words import node_sets
from topodiag.words.node_sets import short
from topodiag.words.units import spell_bytes

MAX_NODES = 20_000
"""More would be a slip of the keyboard: the largest systems have about 10,000 GPU nodes."""
MAX_BYTES = 16 << 20
_SAFE = regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}", re.ASCII)
_SWITCH = regex(r"(\w{1,40})=(\S{1,100000})")


def expand(text: str) -> tuple[str, ...]:
    """The nodes of a ClusterShell node set in its order: `gpu[001-064]`, `a,b`, and `@group` where the site has such
    groups. Raises TopodiagError for anything that is no set of host names, or too large a one."""
    try:
        nodes = node_sets.expand(text, MAX_NODES, groups=True)
    except node_sets.NodeSetError as error:
        raise TopodiagError(str(error), hint="write gpu[001-064] or a,b,c") from None
    for node in nodes:
        check_name(node)
    return nodes


def check_name(node: str) -> str:
    """A name that a launcher takes for a host and never for an option. Raises TopodiagError."""
    if not _SAFE.fullmatch(node) or node.isdigit():
        raise TopodiagError(f"{short(node)!r} is no host name", hint="write gpu[001-064] or a,b,c")
    return node


def read_racks(data: bytes, name: str) -> dict[str, str]:
    """The rack by node: from CSV lines `NODES,RACK` (or node sets; a first line that names the columns is
    skipped), or from `SwitchName= Nodes=` lines of Slurm's topology.conf. Raises InputError."""
    if len(data) > MAX_BYTES:
        raise InputError(name, f"is larger than {spell_bytes(MAX_BYTES)}")
    lines = data.decode("utf-8", "replace").splitlines()
    slurm = any(line.lstrip().lower().startswith(("switchname", "blockname")) for line in lines)
    racks: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        bare = line.split("#", 1)[0].strip()
        if not bare:
            continue
        nodes, rack = _slurm(bare) if slurm else _csv(bare)
        if slurm and not nodes:
            continue  # a switch of switches
        if not nodes or not rack:
            raise InputError(
                name, f"{short(bare)!r} is not NODE,RACK", line=number, hint="one node and its rack a line"
            )
        if number == 1 and nodes.lower() in {"node", "nodes", "host", "hosts", "hostname", "name"}:
            continue
        try:
            texts = expand(nodes)
        except TopodiagError as error:
            raise InputError(name, error.message, line=number, hint=error.hint) from None
        for node in texts:
            if racks.setdefault(node, rack) != rack:
                raise InputError(name, f"{node} is in {short(racks[node])} and in {short(rack)}", line=number)
    if not racks:
        raise InputError(name, "names no rack", hint="lines of NODE,RACK, or Slurm's topology.conf")
    return racks


def _csv(line: str) -> tuple[str, str]:
    import csv  # noqa: PLC0415

    row = next(csv.reader([line]), [])
    if len(row) > 2 and "[" in row[0]:  # a node set whose commas nobody quoted: the rack is the last
        row = [",".join(row[:-1]), row[-1]]
    return (row[0].strip(), row[1].strip()[:100]) if len(row) >= 2 else ("", "")


def _slurm(line: str) -> tuple[str, str]:
    fields = {key.lower(): value for key, value in _SWITCH.findall(line)}
    return fields.get("nodes", ""), fields.get("switchname", fields.get("blockname", ""))[:100]


def fabric_from(
    sets: Sequence[str], *, gpus: int, nics: str, rails: int | None, racks: str | None, leaf_per_rail: bool
) -> Fabric:
    """The fabric of the command line's node sets, NIC set and rack file. Raises TopodiagError and InputError."""
    nodes = expand(",".join(sets))
    if not nodes:
        raise TopodiagError("no nodes were named", hint="write gpu[001-064] or a,b,c")
    parts = filter(None, map(str.strip, re.split(r",(?![^\[]*\])", nics)))  # at the commas that are not in brackets
    names = tuple(nic for part in parts for nic in expand(part))  # in the order of rails, as it was given
    count = rails or len(names) or gpus
    if names and len(names) != count:
        raise TopodiagError(f"{len(names)} NICs are named for {count} rails", hint="one NIC a rail, in their order")
    return Fabric(nodes, gpus, count, names, _racks(racks, nodes) if racks is not None else {}, leaf_per_rail)


def _racks(path: str, nodes: Sequence[str]) -> dict[str, str]:
    known = read_racks(read_small(path, MAX_BYTES), path)
    if not known.keys() & set(nodes):
        raise InputError(path, "names none of the nodes", hint="are names short in one place and long in the other?")
    return {node: known[node] for node in nodes if node in known}
