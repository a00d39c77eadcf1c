"""`--ranks` and `--comms`: which rank ran where, and every communicator."""

from __future__ import annotations

import numpy as np

from topodiag.model.connections import distinct
from topodiag.model.job import Communicator, Job
from topodiag.model.job_wires import nics_of
from topodiag.report.grid import Field, draw_grid
from topodiag.report.job.words import name_of, seconds, spell_channels, spell_connections, spell_hosts, spell_ranks
from topodiag.report.node.marks import more
from topodiag.report.text import Page, Part
from topodiag.words.fold import fold_labels

RANKS_SHOWN = 64
COMMS_SHOWN = 40


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
    shown = job.ranks if page.style.verbose else job.ranks[:RANKS_SHOWN]
    rows: list[list[Part]] = [
        [str(rank.rank), rank.host, _known(rank.pid), _known(rank.cuda_dev), _known(rank.nvml_dev), rank.bus_id,
         fold_labels(nics.get(rank.rank, ()))]
        for rank in shown
    ]  # fmt: skip
    fields = (
        Field("rank", right=True), Field("host", least=12), Field("pid", right=True, drop=2),
        Field("CUDA", right=True, drop=1), Field("NVML", right=True), Field("bus id"), Field("NICs", least=12),
    )  # fmt: skip
    if rows:
        draw_grid(page, fields, rows)
    else:
        page.add("  ", ("no line names a rank", "unknown"))
    if len(job.ranks) > len(shown):
        page.add("  ", (more(len(job.ranks) - len(shown), "rank"), "dim"))
    if (missing := job.world_size - len(job.ranks)) > 0:
        seen = {rank.rank for rank in job.ranks}
        numbers = [rank for rank in range(min(job.world_size, 1 << 20)) if rank not in seen]
        page.add(page.text("  ", (f"{missing} not seen: ", "doubtful")), spell_ranks(numbers))


def _known(value: int) -> str:
    return str(value) if value >= 0 else "?"


def draw_comms(page: Page, job: Job) -> None:
    shown = job.communicators if page.style.verbose else job.communicators[:COMMS_SHOWN]
    rows: list[list[Part]] = [_comm_row(comm) for comm in shown]
    fields = (
        Field("#", right=True), Field("name", least=10), Field("ranks", right=True), Field("members", least=12),
        Field("nodes", right=True), Field("on", least=11, drop=4), Field("of", right=True, drop=2),
        Field("channels", drop=1), Field("connections", least=16), Field("init"), Field("role by", least=10, drop=3),
    )  # fmt: skip
    if rows:
        draw_grid(page, fields, rows)
    else:
        page.add("  ", ("no communicator is in the logs", "unknown"))
    if len(job.communicators) > len(shown):
        page.add("  ", (more(len(job.communicators) - len(shown), "communicator"), "dim"))


def _comm_row(comm: Communicator) -> list[Part]:
    slow = float(np.nanmax(comm.init_s)) if np.isfinite(comm.init_s).any() else float("nan")
    done = int(comm.completed.sum()) if comm.completed.size else 0
    state: Part = seconds(slow) or "complete"
    if comm.inferred:
        state = ("not logged", "unknown")
    elif not comm.init_complete:
        state = (f"{done} of {comm.nranks} done", "doubtful")
    unseen = int((comm.ranks < 0).sum())
    return [
        str(comm.index),
        (name_of(comm) or "?") + (f" {comm.color}" if comm.color >= 0 and comm.parent >= 0 else ""),
        str(comm.nranks),
        spell_ranks(comm.ranks, 6) + (f" +{unseen} unseen" if unseen else ""),
        str(comm.nodes if comm.nodes > 0 else len(comm.hosts) or "?"),
        spell_hosts(comm.hosts, 40),
        str(comm.parent) if comm.parent >= 0 else "",
        spell_channels(comm),
        spell_connections(comm.transports),
        state,
        f"{comm.role_why} ({comm.role_sure} confidence)" if comm.role_why else "",
    ]
