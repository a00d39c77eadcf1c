"""Metrics of NCCL's Inspector: files of the node exporter, a saved scrape, results of Prometheus' query API.

    nccl_bus_bandwidth_gbs{version="v5.1",slurm_job_id="7",node="n1",gpu="GPU0",comm_name="dp",n_nodes="2",nranks="16",
     collective="AllReduce",message_size="64-65MB",algo_proto="RING_SIMPLE"} 181.5
    nccl_collective_exec_time_microseconds{...the same...} 684

SOURCE: NCCL plugins/profiler/inspector/inspector_prom.cc. Since 2.30 a sample is the mean of the times (the geometric
mean of the bandwidths) of one GPU's calls since the dump before; neither communicator nor rank is named, so that GPUs
are set together by name, ranks and nodes where their number shows that they are one communicator. In 2.29 a sample is
the last call, with communicator, rank and sequence number, and whose clock timed it is not told: it is not judged.

Most dashboards ask for `nccl_bus_bandwidth_gbs` alone: the time of a call is then what the smallest message of the
label takes at that bandwidth, which is no longer than the true one and keeps the order of the GPUs.

Written for what breaks: one bad line costs itself, where prometheus_client's parser gives up the whole text.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from math import isfinite

import msgspec
import numpy as np

from topodiag.evidence.interface import to_int
from topodiag.evidence.live.inspector_calls import BEHIND_NAME, Calls, Records
from topodiag.evidence.metrics_text import MAX_LINE, SAMPLE, labels_of
from topodiag.lazy import dataclass
from topodiag.model.inspector import InspectorCommunicator, InspectorMember, MadeOf
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.words.units import grouped, read_number

CELL_S = 60.0
"""Ranks dump every 30 s or more, each at a moment of its own: samples of a minute are set side by side."""
EPOCH = 1e8
"""Times below are no seconds since the epoch but the place of a dump among those without a time."""
MAX_SAMPLES = 20_000_000
MAX_SERIES = 500_000
MAX_QUERY = 512 << 20
MAX_US = 1e12
_TIMES = frozenset({"nccl_collective_exec_time_microseconds"})
_RATES = frozenset({"nccl_bus_bandwidth_gbs"})
_FILE = "nccl_inspector_metrics_"
_UNITS = {"B": 0, "KB": 10, "MB": 20, "GB": 30, "TB": 40}


class _QueriedSeries(msgspec.Struct, gc=False):
    metric: dict[str, str] = msgspec.field(default_factory=dict)
    values: list[tuple[float, str]] = msgspec.field(default_factory=list)
    value: tuple[float, str] | None = None


class _Data(msgspec.Struct):
    result: list[_QueriedSeries] = msgspec.field(default_factory=list)


class _Answer(msgspec.Struct):
    data: _Data


_ANSWERS = msgspec.json.Decoder(_Answer, strict=False)


@dataclass(slots=True)
class _Series:
    """The samples of one GPU, communicator's name, collective, size and algorithm. `at` are seconds since the epoch or
    the number of the dump; `gbs_at` those of the bandwidths, kept until the first time is known."""

    labels: Mapping[str, str]
    device: str
    origin: Origin
    at: array[float] = field(default_factory=lambda: array("d"))
    us: array[float] = field(default_factory=lambda: array("f"))
    gbs_at: array[float] = field(default_factory=lambda: array("d"))
    gbs: array[float] = field(default_factory=lambda: array("f"))

    def number(self, name: str) -> int:
        return to_int(self.labels.get(name), low=0, high=9_999_999) or 0

    def timed_by_rates(self) -> bool:
        """Where no time was asked for: the times that the bandwidths make. False for a series without."""
        moved = _range(self.labels.get("message_size", ""))[0] * _usual(self, self.number("nranks")) / 1e3
        if self.us or not self.gbs or moved <= 0:
            return False
        self.at, self.us = self.gbs_at, array("f", (moved / rate for rate in self.gbs))
        return True

    @property
    def node(self) -> str:
        return self.labels.get("node", "")[:255]

    @property
    def communicator(self) -> tuple[str, int, int, str]:
        """Its name, ranks and nodes, and the host where that is one: on one node, one host is one communicator."""
        nodes = self.number("n_nodes")
        return self.labels.get("comm_name", ""), self.number("nranks"), nodes, self.node if nodes == 1 else ""

    @property
    def member(self) -> tuple[str, int, str]:
        """Node, number of the GPU, and what tells GPUs apart that are the first of their process each."""
        gpu = to_int(self.labels.get("gpu", "").removeprefix("GPU"), low=0, high=9999)
        return self.node, -1 if gpu is None else gpu, self.device


class InspectorMetrics:
    """Samples of many files, held until all are there."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str], _Series | None] = {}
        self._met: Counter[tuple[str, tuple[str, str]]] = Counter()
        self._told: Counter[tuple[str, str]] = Counter()
        self.samples = self.rates = self.unread = self.others = self.of_other_jobs = 0
        self.full = False

    def most(self, kind: str) -> int:
        """The samples of a kind (`calls`; `transfers`: of sends and receives; `unclocked`: of 2.29, whatever they are
        of), by the name of which there are most: the others say the same of the same calls."""
        return _most(self._told, kind)

    def read(self, blocks: Iterable[bytes], source: str, *, is_answer: bool) -> int:
        """The samples of one file: its times, or its bandwidths where no time is in it."""
        before = self._told.copy()
        if is_answer:
            self.query(blocks, source)
        else:
            self.text(blocks, source)
        labels = self._told - before
        return sum(_most(labels, kind) for kind in ("calls", "transfers", "unclocked"))

    def text(self, blocks: Iterable[bytes], source: str) -> None:
        """Blocks of whole lines of the text format."""
        device, number = source.partition(_FILE)[2].partition(".prom")[0], 0
        for block in blocks:
            for raw in block.split(b"\n"):
                number += 1
                line = raw.decode("utf-8", "replace").strip()
                if not line or line.startswith("#"):
                    continue
                match = SAMPLE.fullmatch(line) if len(line) <= MAX_LINE else None
                if match is None or not match[2]:
                    self.unread += line.startswith("nccl_")
                    self.others += not line.startswith("nccl_")
                    continue
                at = _seconds(match[4]) if match[4] else None
                self._take(match[1], (match[2], device), match[3], at, Origin(source, number, line[:MAX_QUOTE]))

    def query(self, blocks: Iterable[bytes], source: str) -> None:
        """A result of /api/v1/query or query_range."""
        data = bytearray()
        for block in blocks:
            data += block
            if len(data) > MAX_QUERY:
                self.unread += 1
                return
        try:
            answer = _ANSWERS.decode(bytes(data))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            self.unread += 1
            return
        for series in answer.data.result:
            name = series.metric.pop("__name__", "")
            labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in sorted(series.metric.items()))
            origin = Origin(source, 1, f"{name}{{{labels}}}"[:MAX_QUOTE])
            for at, value in (*series.values, *((series.value,) if series.value else ())):
                self._take(name, (labels, ""), value, at if isfinite(at) else None, origin)

    def _take(self, name: str, key: tuple[str, str], text: str, at: float | None, origin: Origin) -> None:
        if name.startswith("nccl_p2p_"):
            self._told["transfers", name] += 1
            return
        if name not in _TIMES | _RATES:
            self.others += not name.startswith("nccl_algorithm_bandwidth")
            return
        try:
            value = float(text)
        except ValueError:
            self.unread += 1
            return
        series = self._of(key, origin)
        if series is None:
            self._told["unclocked", name] += 1
            return
        if not 0 < value < MAX_US:
            return
        self._told["calls", name] += 1
        if name in _RATES and series.us:
            if len(series.gbs) < len(series.us) + 64:
                series.gbs.append(value)
            return
        self.samples += name in _TIMES
        if at is None:  # the order of the dumps stands in for their time, also for those that repeat the one before
            self._met[name, key] += 1
            at = CELL_S * self._met[name, key]
        if self._told["calls", name] > MAX_SAMPLES:
            self.full = True
            return
        times, values = (series.at, series.us) if name in _TIMES else (series.gbs_at, series.gbs)
        # The exporter tells the last file until there is a new one, for days where the job has ended.
        if not values or values[-1] != array("f", (value,))[0]:
            times.append(at)
            values.append(value)

    def _of(self, key: tuple[str, str], origin: Origin) -> _Series | None:
        """The series of these labels; None for the form of 2.29."""
        if key in self._series:
            return self._series[key]
        labels = labels_of(key[0])
        series = None if "comm_id" in labels else _Series(labels, key[1], origin)
        if len(self._series) < MAX_SERIES:
            self._series[key] = series
        else:
            self.full = True
        return series

    def communicators(self) -> Iterator[InspectorCommunicator]:
        """What the samples of the largest job say, by communicator."""
        known = [series for series in self._series.values() if series is not None]
        self.rates += sum(len(series.us) for series in known if series.timed_by_rates())
        by_job = grouped((series.labels.get("slurm_job_id", ""), series) for series in known if series.us)
        if not by_job:
            return
        job = max(by_job, key=lambda name: sum(len(series.us) for series in by_job[name]))
        self.of_other_jobs = len(by_job) - 1
        named = grouped((series.communicator, series) for series in by_job[job])
        cells = np.unique(np.concatenate([_cells(series) for series in by_job[job]]))
        for own, several in sorted(named.items()):
            yield _communicator(job, own, several, cells)


def _communicator(
    job: str, own: tuple[str, int, int, str], several: list[_Series], cells: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> InspectorCommunicator:
    """Series of one name, number of ranks and nodes: one communicator where there are as many GPUs as ranks."""
    name, nranks, nnodes, host = own
    label = name[:80] if name not in ("", "unknown") else f"the communicator of {nranks} ranks"
    label += f" on {host}" if nnodes == 1 else ""
    places = sorted({series.member for series in several})
    rank_of = {place: number for number, place in enumerate(places)}
    origins = {rank_of[series.member]: series.origin for series in reversed(several)}
    whole = len(places) == nranks and len({host for host, _, _ in places}) == nnodes and all(p[1] >= 0 for p in places)
    identity = "\0".join((job, name, host, str(nranks), str(nnodes)))
    key = int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=7).digest(), "big")
    calls = Calls()
    for series in several:
        kind = BEHIND_NAME.join(
            series.labels.get(name, "")[:80] for name in ("collective", "message_size", "algo_proto")
        )
        size, factor = _size_and_factor(series, nranks)
        hours = np.asarray(series.at) // 3600 * (np.asarray(series.at) >= EPOCH)
        records = Records(
            np.searchsorted(cells, _cells(series)).astype(np.int64),
            np.asarray(series.us, np.float32),
            np.full(len(series.us), size, np.int64),
            np.clip(hours, 0, 1 << 30).astype(np.int32),
        )
        calls.add(key, kind, rank_of[series.member], records, factor)
    members = {
        number: InspectorMember(number, host, -2 - gpu, origins[number])
        for (host, gpu, _), number in rank_of.items()
    }  # fmt: skip
    made_of = MadeOf.MEANS if whole else MadeOf.MEANS_OF_SEVERAL
    comm = InspectorCommunicator(key, label, max(nranks, 1), nnodes, members, made_of=made_of)
    # How often calls are missing is not known of means.
    return replace(calls.summed(comm, len(places)), missing=0)


def _cells(series: _Series) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.clip(np.asarray(series.at) // CELL_S, 0, 1 << 40).astype(np.int64)


def _size_and_factor(series: _Series, nranks: int) -> tuple[int, float]:
    """The size of the calls in bytes, within the range that the label tells, and bus bandwidth over bytes and time."""
    if not series.gbs or not series.us:
        return 1, 0.0
    moved = float(np.median(np.asarray(series.gbs)) * np.median(np.asarray(series.us))) * 1e3  # GB/s times us are KB
    low, high = _range(series.labels.get("message_size", ""))
    usual = _usual(series, nranks)
    size = int(min(max(moved / usual, low), high)) if usual > 0 else low
    return max(size, 1), moved / max(size, 1)


def _usual(series: _Series, nranks: int) -> float:
    """Bus bandwidth over bytes and time (inspectorComputeOpBw of plugins/profiler/inspector/inspector.cc); 0 unknown.
    Of AllGather and ReduceScatter the bytes are those of one rank."""
    collective = series.labels.get("collective", "")
    if collective == "AllReduce":
        return 2 * (nranks - 1) / max(nranks, 1)
    if collective in ("AllGather", "AllGatherV", "ReduceScatter"):
        return nranks - 1.0
    return 1.0 if collective in ("Broadcast", "Reduce") else 0.0


def _most(labels: Counter[tuple[str, str]], kind: str) -> int:
    """The samples of a kind by the name of which there are most: the others say the same of the same calls."""
    return max((count for (label, _), count in labels.items() if label == kind), default=0)


def _range(label: str) -> tuple[int, int]:
    """`64-65MB` as bytes; (0, 0) for what is no range."""
    low, _, rest = label.partition("-")
    high = rest.rstrip("KMGTB")
    unit = _UNITS.get(rest[len(high) :])
    if unit is None or not low.isdecimal() or not high.isdecimal() or len(low) > 4 or len(high) > 4:
        return 0, 0
    return int(low) << unit, int(high) << unit


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _seconds(text: str) -> float | None:
    """A time behind a sample: milliseconds in Prometheus' text, seconds in that of OpenMetrics."""
    value = read_number(text)
    return value / 1e3 if value is not None and value > 1e11 else value
