"""Where a guest's devices belong by what was measured between its GPUs and its NICs.

A GPU is near to the NICs before the first clear step down in its row; GPUs and NICs that are near to each other share a
switch. A second step, between the groups, tells the sockets apart. Where the steps make no groups (one GPU near to two
NICs, its neighbour to only one of them) nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import fsum

from topodiag.lazy import dataclass
from topodiag.model.links import Affinity
from topodiag.nccl.topo.virtual import Guest, Place, Plan, Switch, VirtualError
from topodiag.words.units import grouped

STEP = 1.15
"""The least ratio of neighbouring values that is a step: well above the few percent by which repeated measurements
differ, well below what a way through a processor costs (NCCL itself reckons 48 against 22 GB/s across sockets)."""


@dataclass(frozen=True, slots=True)
class Group:
    """GPUs and NICs, by their bus ids in the guest, that are near to each other."""

    gpus: tuple[str, ...]
    nics: tuple[str, ...]


def plan_by_affinity(guest: Guest, measured: Affinity, numa_of: Mapping[str, int] | None = None) -> Plan:
    """One switch for each group of the matrix, whose rows may be GPUs or NICs. `numa_of`: NUMA nodes by bus id, as far
    as the guest knows them.

    Raises VirtualError where a name is of no device of the guest, a GPU was not measured, or the values make no groups.
    """
    measured = _upright(guest, measured)
    gpus = [_find(guest, name, guest.gpus, "GPU") for name in measured.gpus]
    nics = [_find(guest, name, guest.nics, "NIC") for name in measured.nics]
    missing = [guest.label(bus_id) for bus_id in guest.gpus if bus_id not in gpus]
    if missing:
        raise VirtualError(f"{', '.join(missing[:4])} was not measured: every GPU of the guest needs a row")
    is_latency = measured.unit in ("us", "ns")
    good = [[1 / value if is_latency else value for value in row] for row in measured.values]
    near = [_near(row) for row in good]
    if all(len(row) == len(nics) for row in near):
        raise VirtualError("all GPUs measure all NICs alike: it says nothing of switches")
    groups = _groups(gpus, nics, near, guest)
    sockets = _sockets(groups, gpus, nics, good)
    numbers = _numbers(groups, sockets, dict(numa_of or {}))
    places = {}
    for at, group in enumerate(groups):
        above = (Switch(f"group {at}"),)
        places.update({bus_id: Place(numbers[at], above) for bus_id in (*group.gpus, *group.nics)})
    done = [f"made {len(groups)} groups of GPUs and NICs by what was measured, each below a switch"]
    if len(groups) > 1 and len(set(sockets)) == 1:
        done.append("the measurements do not tell sockets apart: NUMA nodes are those of the guest, else 0")
    return Plan(places, tuple(done))


def _upright(guest: Guest, measured: Affinity) -> Affinity:
    """The matrix with GPUs as its rows."""
    rows = [guest.find(name) for name in measured.gpus]
    if not all(row in guest.nics for row in rows):
        return measured
    columns = tuple(zip(*measured.values, strict=True))
    return Affinity(measured.nics, measured.gpus, columns, measured.unit)


def _find(guest: Guest, name: str, devices: Mapping[str, object], kind: str) -> str:
    bus_id = guest.find(name)
    if bus_id is None or bus_id not in devices:
        raise VirtualError(f"the guest has no {kind} {name[:60]}")
    return bus_id


def _near(row: Sequence[float]) -> frozenset[int]:
    """The places in a row before its first step down; all of them where there is none."""
    order = sorted(range(len(row)), key=lambda at: -row[at])
    for count, (a, b) in enumerate(pairwise(order), start=1):
        if row[a] >= row[b] * STEP:
            return frozenset(order[:count])
    return frozenset(order)


def _groups(gpus: Sequence[str], nics: Sequence[str], near: Sequence[frozenset[int]], guest: Guest) -> list[Group]:
    """GPUs that are near to the very same NICs; sets that overlap make no groups."""
    members = grouped(zip(near, gpus, strict=True))
    sets = list(members)
    for at, one in enumerate(sets):
        for other in sets[at + 1 :]:
            if one & other:
                a, b = guest.label(members[one][0]), guest.label(members[other][0])
                shared = ", ".join(guest.label(nics[place]) for place in sorted(one & other)[:3])
                raise VirtualError(
                    f"the values make no groups: {a} and {b} are both near to {shared}, else they differ"
                )
    return [Group(tuple(members[row]), tuple(nics[place] for place in sorted(row))) for row in sets]


def _sockets(groups: Sequence[Group], gpus: Sequence[str], nics: Sequence[str], good: list[list[float]]) -> list[int]:
    """A socket for each group: groups between which traffic flows better than across the widest step."""
    between: dict[tuple[int, int], float] = {}
    for a, one in enumerate(groups):
        for b, other in enumerate(groups):
            if a != b:
                rows = [good[gpus.index(gpu)] for gpu in one.gpus]
                values = [row[nics.index(nic)] / max(row) for row in rows for nic in other.nics]
                between[a, b] = fsum(values) / len(values)
    steps = [(high / low, low) for high, low in pairwise(sorted(between.values(), reverse=True))]
    ratio, below = max(steps, default=(1.0, 0.0))
    if ratio < STEP:
        return [0] * len(groups)
    sockets: list[int] = []
    for at in range(len(groups)):
        mates = [socket for before, socket in enumerate(sockets) if between[at, before] > below]
        sockets.append(mates[0] if mates else len(set(sockets)))
    return sockets


def _numbers(groups: Sequence[Group], sockets: Sequence[int], known: Mapping[str, int]) -> list[int]:
    """NUMA nodes of the groups: the guest's own where it knows them and they fit the sockets, else 0, 1, ..."""
    guest_numbers = [next((known[gpu] for gpu in group.gpus if known.get(gpu, -1) >= 0), None) for group in groups]
    if len(set(sockets)) == 1:
        return [numa if numa is not None else 0 for numa in guest_numbers]
    by_socket = grouped(zip(sockets, guest_numbers, strict=True))
    single = {socket: numas[0] for socket, numas in by_socket.items() if len(set(numas)) == 1}
    numbers = [numa for numa in single.values() if numa is not None]
    if len(numbers) == len(by_socket) and len(set(numbers)) == len(numbers):
        return [single[socket] or 0 for socket in sockets]
    return list(sockets)
