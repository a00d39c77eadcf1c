"""NET004 by captures: InfiniBand ports that are cabled crosswise to two fabrics, so that port 1 of one node is in the
subnet of port 2 of another one.

    node1  mthca0:1 fe80:0:0:1  mthca0:2 fe80::          node2  mthca0:1 fe80::  mthca0:2 fe80:0:0:1

Nodes whose ports lie in other subnets altogether are of two fabrics, and nobody's fault. The upper half of the first
GID is the prefix of the subnet (InfiniBand Architecture Specification, volume 1, 4.1.1); RoCE has one prefix for all.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from topodiag.model.devices import NicPort
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity, Status, Where
from topodiag.model.node import Node

CROSSED = "NET004"
_PREFIX_BITS = 64
MOST_SHOWN = 8

Subnets = Mapping[str, tuple[int, NicPort]]
"""By port (`mlx5_0:1`) the prefix of its subnet."""


def crossed_ports(nodes: Sequence[Node]) -> tuple[Outcome, ...]:
    """One finding where nodes have the same subnets, and one of them on other ports than most; else nothing."""
    if len(nodes) < 2:  # what is asked of one node may be kept for its siblings: nothing of it is looked at here
        return ()
    told = [(node, ports) for node in nodes if len(ports := _subnets(node)) > 1]
    by_names: dict[tuple[tuple[str, ...], tuple[int, ...]], list[tuple[Node, Subnets]]] = {}
    for node, ports in told:
        prefixes = sorted(prefix for prefix, _ in ports.values())
        by_names.setdefault((tuple(sorted(ports)), tuple(prefixes)), []).append((node, ports))
    findings = tuple(islice((found for group in by_names.values() for found in _crossed(group)), MOST_SHOWN))
    return (Outcome(CROSSED, Status.FINDING, findings[0].where.nodes[0], findings),) if findings else ()


def _crossed(alike: Sequence[tuple[Node, Subnets]]) -> Iterator[Finding]:
    """Nodes with the same names of ports in the same subnets, of which some are not as most."""
    orders = Counter(_order(ports) for _, ports in alike)
    usual = max(orders, key=lambda order: orders[order])  # of as many, the one that was seen first
    like = next(node for node, ports in alike if _order(ports) == usual)
    for node, ports in alike:
        if _order(ports) == usual:
            continue
        wanted = dict(zip(sorted(ports), usual, strict=True))
        odd = [name for name in sorted(ports) if ports[name][0] != wanted[name]]
        other = next(name for name in odd if wanted[name] == ports[odd[0]][0])
        here, there = _spelled(ports[odd[0]][0]), _spelled(wanted[odd[0]])
        yield Finding(
            id=CROSSED,
            severity=Severity.WARNING,
            message=f"{odd[0]} of {node.host} is in the subnet of {other} of {like.host}: the ports are crossed",
            observed=f"{odd[0]}: subnet {here}",
            expected=f"{odd[0]}: subnet {there}, as on {like.host}",
            fix=(
                "`ibv_devinfo -v` on both nodes, GID[0]; then the cables: each port to the fabric of its name",
                "or name the port of each node (NCCL_IB_HCA): NCCL pairs ports by their order",
            ),
            where=Where(nodes=(node.host, like.host), nics=tuple(name.partition(":")[0] for name in odd[:1])),
            cost=Cost(text="ports of one name do not reach each other: connections fail, or cross between the fabrics"),
            evidence=tuple(origin for name in odd[:2] if (origin := ports[name][1].gids.origin) is not None),
            confidence=Confidence.MEDIUM,
        )


def _order(ports: Subnets) -> tuple[int, ...]:
    return tuple(ports[name][0] for name in sorted(ports))


def _subnets(node: Node) -> Subnets:
    """The subnets of a node's InfiniBand ports that are up."""
    found: dict[str, tuple[int, NicPort]] = {}
    for nic in node.nics:
        for port in nic.ports:
            gids = port.gids.value or ()
            if nic.rdma_name is None or not gids or port.state.value not in (None, "ACTIVE"):
                continue
            prefix = _prefix(gids[0]) if port.link_layer.value in (None, "InfiniBand") else None
            if prefix is not None:
                found[f"{nic.rdma_name}:{port.number}"] = (prefix, port)
    return found


def _prefix(entry: str) -> int | None:
    """Of `0 fe80::1:8:f104:396:62b5`; None for an address of RoCE, and for all but the first."""
    index, _, rest = entry.partition(" ")
    address, _, version = rest.partition(" ")
    if index != "0" or version:
        return None
    try:
        parsed = ipaddress.IPv6Address(address)
    except ValueError:
        return None
    return int(parsed) >> _PREFIX_BITS if parsed.ipv4_mapped is None else None


def _spelled(prefix: int) -> str:
    return f"{prefix:016x}"
