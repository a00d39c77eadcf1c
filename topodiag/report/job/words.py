"""What the views of a job say alike: ranks, hosts and communicators folded, transports in short, times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from topodiag.model.clock_text import LAST_S
from topodiag.model.job import Communicator
from topodiag.model.job_rings import bare_transport, is_net, uses_gdr
from topodiag.words.units import fold_hosts, fold_numbers, spell_s


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


def clock(ts: float | None, *, date: bool = False) -> str:
    """`13:05:07.250` in the log's own zone; "" without a time."""
    if ts is None or not 0 <= ts <= LAST_S:
        return ""
    when = datetime.fromtimestamp(ts, UTC)
    text = when.strftime("%Y-%m-%d %H:%M:%S" if date else "%H:%M:%S")
    return f"{text}.{when.microsecond // 1000:03d}" if when.microsecond else text
