"""Communicators beside those of the same size in the same job: how many times longer their operations take."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import fsum, log
from statistics import median

from topodiag.lazy import dataclass
from topodiag.model.inspector import CallsOfOneSize, InspectorCommunicator

FEWEST_SIBLINGS = 4
"""Communicators of one kind below which none is odd."""
FEWEST_CALLS = 50
SLOWER = 1.25
"""Times the peers' median above which a communicator is slow: sizes within a class differ by 1.19."""
TIMES_THE_SPREAD = 5.0
MOST_SHARE = 0.25
"""Share of the peers above which it is two kinds of communicators, not a slow one."""

Process = tuple[str, int, int]
"""Host, pid, and the rank in the communicator of all where a process has several: what one GPU and its NIC serve."""


@dataclass(frozen=True, slots=True)
class BesideSiblings:
    """A communicator beside its peers: how many times longer it takes, over the sizes that take most time."""

    comm: InspectorCommunicator
    times: float
    worst: CallsOfOneSize
    usual_gbs: float
    siblings: int
    slow: bool


def beside_siblings(communicators: Sequence[InspectorCommunicator]) -> list[BesideSiblings]:
    """Each communicator that has enough peers, with how much longer than theirs its calls take."""
    series: dict[tuple[int, int, str, int], list[tuple[InspectorCommunicator, CallsOfOneSize]]] = defaultdict(list)
    for comm in communicators:
        for size in comm.sizes if comm.is_one else ():
            if size.calls >= FEWEST_CALLS * comm.enough_calls and size.clean_us > 0 and size.bytes > 0:
                octave = round(log(size.bytes, 2) * 4)
                series[comm.nranks, comm.nnodes, size.collective, octave].append((comm, size))
    ratios: dict[int, list[tuple[float, float, CallsOfOneSize, float, int, bool]]] = defaultdict(list)
    known = {}
    for several in series.values():
        if len(several) < FEWEST_SIBLINGS:
            continue
        usual = median(size.clean_us for _, size in several)
        gbs = median(size.busbw_gbs for _, size in several)
        spread = 1.4826 * median(abs(log(size.clean_us / usual)) for _, size in several)
        slow = [log(size.clean_us / usual) > max(log(SLOWER), TIMES_THE_SPREAD * spread) for _, size in several]
        few_slow = sum(slow) <= max(1, MOST_SHARE * len(several))
        for (comm, size), odd in zip(several, slow, strict=True):
            weight = size.calls * size.clean_us
            known[id(comm)] = comm
            ratios[id(comm)].append((weight, size.clean_us / usual, size, gbs, len(several) - 1, odd and few_slow))
    made = []
    for key, found in ratios.items():
        total = fsum(weight for weight, *_ in found)
        odd = fsum(weight for weight, _, _, _, _, slow in found if slow) * 2 > total
        _, times, worst, gbs, siblings, _ = max(found, key=lambda each: (each[5], each[0]))
        made.append(BesideSiblings(known[key], times, worst, gbs, siblings, odd))
    return made


def processes_of(comm: InspectorCommunicator) -> frozenset[Process]:
    counted = Counter((member.host, member.pid) for member in comm.members.values())
    return frozenset((m.host, m.pid, m.rank if counted[m.host, m.pid] > 1 else -1) for m in comm.members.values())
