"""The network devices of a process: ports as NCCL lists them, and the virtual NICs that it makes of them.

Wordings: nccl src/transport/net_ib.cc up to v2.28, src/transport/net_ib/init.cc, src/graph/topo.cc (ncclTopoMakeVnic).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from sys import intern

from topodiag.lazy import regex
from topodiag.model.devices import ports_of
from topodiag.model.job import Hca
from topodiag.model.provenance import Origin

Text = tuple[str, str, Origin | None, int]
"""Kind, text, place, count."""

OF_DEVICES = frozenset({"hca", "gdr hca", "virtual nic"})
"""Kinds that tell more of the devices in a list, whose place stands for theirs. A large job has a line for each device
of each rank: they are not kept as messages."""

GDR_OFF = "GPU Direct RDMA Disabled"
"""Of a device this is a verdict, and its line the evidence."""

_HCA = regex(r"\[(\d{1,6})\]\s?([^\s:\[\]{}]+):(\d{1,6})?(?::-?\d{0,6}){0,2}((?:/[A-Za-z0-9]+)+)?")
"""Behind the port rail and plane, where NCCL_IB_HCA gives them: `[0]mlx5_0:1:0:1/IB` (2.30 and later)."""
_JOINED = regex(r"\[(\d{1,6})\]=\{([^{}]{1,600})\}")
_HCA_LONG = regex(
    r"NET/IB\s?: \[(\d{1,6})\] ([^\s:]+):[^\s:]+:(\d{1,6})/(\S+) .*?speed=(\d{1,12})(?:.*?pciPath=(\S+))?"
)
_GDR_HCA = regex(r"GPU Direct RDMA (Enabled|Disabled) for HCA (\d{1,6}) '([^']*)'")
_VIRTUAL = regex(r"Made virtual device \[(\d{1,6})\] name=(\S+) speed=(\d{1,12})")


def devices_of(texts: Sequence[Text]) -> tuple[tuple[Hca, ...], tuple[Hca, ...]]:
    """The RDMA ports of the first list with what other lines say of each, and the virtual NICs made of them."""
    listed = next(((text, origin) for kind, text, origin, _ in texts if kind == "hcas"), None)
    named = sorted(_numbered(texts, listed).values(), key=lambda nic: (-len(ports_of(nic.name)), nic.index))
    gdr = {port: nic for nic in named if nic.gdr is not None for port in ports_of(nic.name)}
    if listed is None and any(kind == "no hca" for kind, *_ in texts):
        return (), ()
    if listed is None:  # an excerpt without the list: what is said of each device stands for it
        ports = tuple(nic if nic.name == port else replace(nic, index=-1, name=port) for port, nic in gdr.items())
        return ports, _virtual(ports, named)
    details: dict[str, tuple[int | None, str]] = {
        found[0]: found[1:] for kind, text, *_ in texts if kind == "hca" and (found := _hca(text)) is not None
    }
    none = Hca(-1, "")
    ports = tuple(
        Hca(each.index, each.name, each.port, each.link_layer, *details.get(each.name, (None, "")),
            gdr.get(each.name, none).gdr, listed[1], gdr.get(each.name, none).gdr_origin)
        for each in _hcas(listed[0])
    )  # fmt: skip
    return ports, _virtual(ports, named)


def _numbered(texts: Sequence[Text], listed: tuple[str, Origin | None] | None) -> dict[tuple[int, str], Hca]:
    """The devices that lines give a number, and what such lines say of them."""
    made: dict[tuple[int, str], Hca] = {}
    for nic in _joined(listed[0]) if listed is not None else ():
        made[nic.index, nic.name] = replace(nic, origin=listed[1] if listed is not None else None)
    for kind, text, origin, _ in texts:
        if kind == "virtual nic" and (found := _VIRTUAL.search(text)) is not None:
            nic = Hca(int(found[1]), found[2], speed_mbps=int(found[3]), origin=origin)
            made.setdefault((nic.index, nic.name), nic)
        elif kind == "gdr hca" and (found := _GDR_HCA.search(text)) is not None and not text.startswith("NET/Socket"):
            on = found[1] == "Enabled"
            nic = made.get((int(found[2]), found[3])) or Hca(int(found[2]), found[3], origin=origin)
            made[nic.index, nic.name] = replace(nic, gdr=on, gdr_origin=None if on else origin)
    return made


def _virtual(ports: Sequence[Hca], named: Sequence[Hca]) -> tuple[Hca, ...]:
    """The devices in use that are not ports under their own numbers. NCCL lists each port first, and then the virtual
    NIC that it is part of under a higher number; 2.24 to 2.26 also one of a single port (src/graph/topo.cc)."""
    used: dict[str, Hca] = {}
    for nic in sorted(named, key=lambda nic: (len(ports_of(nic.name)), nic.index)):
        used |= dict.fromkeys(ports_of(nic.name), nic)
    listed = {(port.index, port.name) for port in ports}
    return tuple(dict.fromkeys(_of_ports(nic, ports) for nic in used.values() if (nic.index, nic.name) not in listed))


def _of_ports(nic: Hca, ports: Sequence[Hca]) -> Hca:
    """A virtual NIC: as its first port, and as fast as all of them together where no line says how fast."""
    own = [port for port in ports if port.name in ports_of(nic.name)]
    speeds = [port.speed_mbps for port in own if port.speed_mbps is not None]
    speed = nic.speed_mbps or (sum(speeds) if speeds and len(speeds) == len(own) else None)
    return replace(own[0] if own else nic, index=nic.index, name=nic.name, speed_mbps=speed)


@lru_cache(maxsize=65536)
def _hca(text: str) -> tuple[str, int, str] | None:
    """Name, speed in Mb/s and path of a device. Processes print the same paths with pointers of their own beside."""
    found = _HCA_LONG.search(text)
    return (found[2], int(found[5]), intern(found[6] or "")) if found is not None else None


@lru_cache(maxsize=4096)
def _hcas(text: str) -> tuple[Hca, ...]:
    """`[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB ib0:10.0.0.1<0>`, the ports of merged `[0]={[0] mlx5_0:1/IB, ..}`."""
    made = []
    for found in _HCA.finditer(text.partition("; OOB")[0].partition(" ;")[0]):
        layer = (found[4] or "").strip("/")
        made.append(Hca(int(found[1]), found[2], int(found[3] or 1), layer))
    return tuple(made)


@lru_cache(maxsize=4096)
def _joined(text: str) -> tuple[Hca, ...]:
    """The virtual NICs of a list up to 2.23, which has the ports of one adapter in braces."""
    return tuple(
        Hca(int(found[1]), "+".join(port.name for port in _hcas(found[2]))) for found in _JOINED.finditer(text)
    )
