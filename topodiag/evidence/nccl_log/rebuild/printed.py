"""What NCCL prints once in a while and what a job prints at all: versions, the library, subsystems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from topodiag.evidence.bench_devices import device_of
from topodiag.evidence.nccl_log.grammar.stated import HOST, RANK, SIZE, STATED
from topodiag.evidence.nccl_log.rebuild.frame import Frame
from topodiag.evidence.nccl_log.rebuild.process import version_of
from topodiag.evidence.nccl_log.tables.hashes import distinct
from topodiag.lazy import regex
from topodiag.model.job import Event, Process, Rank, Stated
from topodiag.words.own_data import own_data

_TABLES = own_data("evidence/nccl_log/rebuild/printed")
_OF_RCCL = regex("|".join(_TABLES["rccl"]["lines"]))
_ASKED = 64
"""Processes of a job that are asked: what one says of the library holds for all."""


def versions(frame: Frame, processes: Sequence[Process], *, first: bool) -> tuple[str, ...]:
    """NCCL's versions that the processes print; of the first job also those that stand in no process's lines."""
    known = {process.versions["nccl"] for process in processes if "nccl" in process.versions}
    if not known and first:
        rows = frame["text"]
        texts = rows.words["text"]
        codes = rows["text"][rows.is_word("kind", "version")]
        known = {version_of(texts[code]) for code in distinct(codes).tolist()} - {""}
    # One build that is named twice, with the CUDA that it is for and without: `2.21.5+cuda12.4`, torch's `2.21.5`.
    return tuple(sorted(version for version in known if not any(other.startswith(f"{version}+") for other in known)))


def stated(frame: Frame, files: frozenset[int] | None) -> Stated:
    """What lines without a head state of the job whose processes alone print to these files (None: to all files)."""
    rows = frame["text"]
    chosen = rows.is_word("kind", *STATED)
    if files is not None:
        chosen &= np.isin(frame["threads"]["file"][rows["thread"]], list(files))
    by_kind: dict[str, dict[str, None]] = {kind: {} for kind in STATED}
    for row in np.flatnonzero(chosen).tolist():
        by_kind[rows.word("kind", row)][rows.word("text", row)] = None
    return Stated(
        size=int(*by_kind[SIZE]) if len(by_kind[SIZE]) == 1 else -1,
        ranks=_listed(by_kind[RANK]),
        hosts=tuple(sorted(by_kind[HOST])),
        comm_sizes=printed_sizes(frame) if files is None else (),
    )


def printed_sizes(frame: Frame) -> tuple[int, ...]:
    """The sizes of communicators that operations print."""
    return tuple(size for size in distinct(frame["op"]["nranks"]).tolist() if size > 0)


def _listed(lines: Iterable[str]) -> tuple[Rank, ...]:
    """The ranks of one list of devices, the first where a text holds several."""
    ranks: dict[int, Rank] = {}
    for device in filter(None, map(device_of, lines)):
        ranks.setdefault(
            device.rank, Rank(device.rank, device.host, device.pid, cuda_dev=device.device, bus_id=device.bus_id)
        )
    return tuple(ranks[rank] for rank in sorted(ranks))


def library(frame: Frame, processes: Sequence[Process], events: Sequence[Event] = ()) -> str:
    """RCCL names itself in its version, which no head precedes, and in lines of its own."""
    asked = processes[:_ASKED]
    if any("rccl" in process.versions or _is_of_rccl(process) for process in asked):
        return "RCCL"
    if any(_OF_RCCL.search(f"{event.place} {event.text}") for event in events):
        return "RCCL"
    rows = frame["text"]
    lone = {rows.words["text"][code] for code in set(rows["text"][rows.is_word("kind", "version")].tolist())}
    if not lone:
        nics = {hca.name for process in asked for hca in process.hcas}
        return "RCCL" if any(name.startswith(_TABLES["rccl"]["nic"]) for name in nics) else "NCCL"
    return "RCCL" if all(text.lstrip().startswith("RCCL") for text in lone) else "NCCL"


def _is_of_rccl(process: Process) -> bool:
    """Whether a process printed a line, a setting or a link that only RCCL has."""
    links = process.system.links if process.system is not None else ()
    return (
        any(message.kind == "rccl" or _OF_RCCL.search(message.text) for message in process.messages)
        or any(name.startswith(tuple(_TABLES["rccl"]["settings"])) for name in process.settings)
        or any(link.kind == "XGMI" for link in links)
    )


def subsystems(frame: Frame) -> frozenset[str]:
    """Seen anywhere in the evidence: a job's processes share their settings."""
    tables = {"init": "INIT", "ring": "GRAPH", "print": "GRAPH", "op": "COLL", "choice": "TUNING"}
    texts = {name for table, name in tables.items() if len(frame[table])}
    kinds = set(frame["text"].words["kind"])
    texts.update(name for name, own in _TABLES["subsystems"].items() if kinds.intersection(own))
    for via in frame.vias:
        texts.add("NET" if via.startswith(("NET", "COLLNET")) else "SHM" if "SHM" in via else "P2P")
    return frozenset(texts)
