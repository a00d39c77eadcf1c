"""What the views of a job say alike: ranks, hosts and communicators folded, transports in short, times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from topodiag.lazy import dataclass
from topodiag.model.clock_text import LAST_S
from topodiag.model.job import Communicator, Job
from topodiag.model.transports import bare_transport, is_net, short_transport, uses_gdr
from topodiag.report.grid import UNKNOWN, Cell, figure
from topodiag.words.fold import fold_hosts, fold_numbers
from topodiag.words.units import spell_s


def spell_ranks(ranks: Iterable[int], most: int = 12) -> str:
    """`0-7,16`; long lists of ranges are cut with what is left counted."""
    known = sorted({int(rank) for rank in ranks if rank >= 0})
    ranges = fold_numbers(known).split(",") if known else []
    step = _step(known)
    if step > 1 and len(known) > 2:
        return f"{known[0]}-{known[-1]}:{step}"
    if len(ranges) > most:
        return f"{','.join(ranges[:most])} … ({len(known)} in all)"
    return ",".join(ranges)


def _step(known: Sequence[int]) -> int:
    """The distance of ranks that are all equally far apart, 0 where they are not."""
    gaps = {b - a for a, b in pairwise(known)}
    return gaps.pop() if len(gaps) == 1 else 0


def spell_hosts(hosts: Sequence[str], most: int = 100) -> str:
    words = fold_hosts([host for host in hosts if host])
    return words if len(words) <= most else words[: most - 1] + "…"


def transports_by(transports: Mapping[str, int], key: Callable[[str], str] = bare_transport) -> dict[str, int]:
    """Lines by bare transport, the most used first."""
    counted: Counter[str] = Counter()
    for label, count in transports.items():
        counted[key(label)] += int(count)
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def gdr_of(communicator: Communicator) -> bool | None:
    """Whether all network connections use GPUDirect RDMA; None without any."""
    over_net = [label for label in communicator.transports if is_net(label)]
    return all(uses_gdr(label) for label in over_net) if over_net else None


def algorithms_of(communicator: Communicator) -> tuple[str, ...]:
    return tuple(sorted({choice.algorithm for choice in communicator.choices}))


def name_of(communicator: Communicator) -> str:
    return communicator.name or communicator.role.value


def spell_connections(transports: Mapping[str, int]) -> str:
    """`P2P 688, IB+GDR 1024`."""
    return ", ".join(f"{name} {count}" for name, count in transports_by(transports, short_transport).items())


def channels_cell(communicator: Communicator) -> Cell:
    """`16 +16 nvls`: those of rings and trees, then NVLink SHARP's; what is zero or was not printed is left out."""
    counts = communicator.channels
    words = [str(counts.coll)] if counts.coll >= 0 else []
    return Cell(" ".join([*words, *([f"+{counts.nvls} nvls"] if counts.nvls > 0 else [])]), counts.coll)


def seconds(value: float) -> str:
    """`1.52 s`, `31 ms`; "" for NaN."""
    if not np.isfinite(value):
        return ""
    return spell_s(value)


def median(values: npt.NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else float("nan")


def slowest_s(*comms: Communicator) -> float:
    """The init of the slowest rank of any of them; NaN where none is known."""
    return max((float(np.nanmax(comm.init_s)) for comm in comms if np.isfinite(comm.init_s).any()), default=np.nan)


def nodes_cell(comm: Communicator) -> Cell:
    return figure((comm.nodes if comm.nodes > 0 else len(comm.hosts)) or None, str, "?")


def clock(ts: float | None, *, date: bool = False) -> str:
    """`13:05:07.250` in the log's own zone; "" without a time."""
    if ts is None or not 0 <= ts <= LAST_S:
        return ""
    when = datetime.fromtimestamp(ts, UTC)
    text = when.strftime("%Y-%m-%d %H:%M:%S" if date else "%H:%M:%S")
    return f"{text}.{when.microsecond // 1000:03d}" if when.microsecond else text


@dataclass(frozen=True, slots=True)
class Family:
    """Communicators of one role, size and state, which use the same transports."""

    members: list[Communicator]

    @property
    def first(self) -> Communicator:
        return self.members[0]

    @property
    def name(self) -> str:
        return (name_of(self.first) if len(self.members) == 1 else self.first.role.value) or "other"

    @property
    def transports(self) -> Counter[str]:
        """Connections of all of them by transport."""
        transports: Counter[str] = Counter()
        for member in self.members:
            transports.update({name: int(count) for name, count in member.transports.items()})
        return transports

    @property
    def algorithms(self) -> str:
        return " ".join(sorted({name for member in self.members for name in algorithms_of(member)}))

    @property
    def ranks(self) -> str:
        """The ranks of one communicator; "" of several."""
        return spell_ranks(self.first.ranks) if len(self.members) == 1 else ""


def families(job: Job) -> list[Family]:
    """In the order of their first communicators."""
    alike: dict[tuple[object, ...], Family] = {}
    for comm in job.communicators:
        key = (comm.role, comm.nranks, comm.nodes, len(comm.hosts), comm.channels, comm.init_complete,
               tuple(transports_by(comm.transports)))  # fmt: skip
        alike.setdefault(key, Family([])).members.append(comm)
    return list(alike.values())


def init_words(*comms: Communicator, complete: str = "") -> Cell:
    """The init of the slowest rank of communicators that are alike, or how far it came."""
    first = comms[0]
    if first.init_complete and not first.inferred:
        slowest = slowest_s(*comms)
        return Cell(seconds(slowest) or complete, slowest if np.isfinite(slowest) else UNKNOWN)
    if first.inferred:
        return Cell(("not logged", "unknown"), UNKNOWN)
    done = int(first.completed.sum()) if first.completed.size else 0
    return Cell((f"{done} of {first.nranks} done", "doubtful"), UNKNOWN)
