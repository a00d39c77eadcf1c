"""`--ranks`: which rank ran where."""

from __future__ import annotations

import numpy as np

from topodiag.model.connections import distinct
from topodiag.model.job import Job, Rank
from topodiag.model.job_wires import nics_of
from topodiag.report.grid import Columns, Field, draw_listed
from topodiag.report.job.words import spell_ranks
from topodiag.report.text import Page
from topodiag.words.units import fold_labels

RANKS_SHOWN = 64


def nics_by_rank(job: Job) -> dict[int, tuple[str, ...]]:
    """The network devices that each world rank's own lines name; devices without a name as `NET 3`."""
    conns = job.connections
    by_rank: dict[int, set[int]] = {}
    for batch in conns.batches():
        used = np.flatnonzero((batch.net_dev >= 0) & (batch.printed_by >= 0) & (batch.proxy < 0))
        ranks, devices = batch.printed_by[used], batch.net_dev[used]
        first, _ = distinct(ranks, devices)
        for rank, device in zip(ranks[first].tolist(), devices[first].tolist(), strict=True):
            by_rank.setdefault(rank, set()).add(device)
    nics = {}
    for rank in job.ranks:
        process = job.process_of(rank)
        names = {number: nic.name for number, nic in nics_of(process).items()} if process else {}
        nics[rank.rank] = tuple(names.get(dev, f"NET {dev}") for dev in sorted(by_rank.get(rank.rank, ())))
    return nics


def draw_ranks(page: Page, job: Job) -> None:
    nics = nics_by_rank(job)
    columns: Columns[Rank] = {
        Field("rank", right=True): lambda rank: str(rank.rank),
        Field("host", least=12): lambda rank: rank.host,
        Field("pid", right=True, drop=2): lambda rank: _number_text(rank.pid),
        Field("CUDA", right=True, drop=1): lambda rank: _number_text(rank.cuda_dev),
        Field("NVML", right=True): lambda rank: _number_text(rank.nvml_dev),
        Field("bus id"): lambda rank: rank.bus_id,
        Field("NICs", least=12): lambda rank: fold_labels(nics.get(rank.rank, ())),
    }
    if job.ranks:
        draw_listed(page, columns, job.ranks, RANKS_SHOWN, "rank")
    else:
        page.add("  ", ("no line names a rank", "unknown"))
    if (missing := job.world_size - len(job.ranks)) > 0:
        seen = {rank.rank for rank in job.ranks}
        numbers = [rank for rank in range(min(job.world_size, 1 << 20)) if rank not in seen]
        page.add(page.text("  ", (f"{missing} not seen: ", "doubtful")), spell_ranks(numbers))


def _number_text(value: int) -> str:
    return str(value) if value >= 0 else "?"
