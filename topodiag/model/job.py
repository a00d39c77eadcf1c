"""A job as its logs show it: ranks, communicators, who talks to whom over what, settings, and what went wrong.

World ranks are those of the job's largest root communicator. Unknown integers are -1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from topodiag.lazy import dataclass
from topodiag.model.connections import Connections, Ints
from topodiag.model.diagnostics import Diagnosis, Stack, StepWaits
from topodiag.model.events import Progress
from topodiag.model.finding import Confidence
from topodiag.model.inspector import Inspection
from topodiag.model.layout import JobSettings, Role
from topodiag.model.nccl_view import Graph, NcclSystem, Tuning
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.model.ras import RasAnswer
from topodiag.model.step_pace import Pace, last_starts
from topodiag.model.steps import StepSeries
from topodiag.words.units import grouped

PHASES = ("kernels", "alloc", "bootstrap", "allgathers", "topo", "graphs", "connections", "rest")


@dataclass(frozen=True, slots=True)
class Hca:
    """One network device as NCCL lists it, `NET/IB/<index>`; speed in Mb/s; `gdr`: GPUDirect RDMA, None unsaid."""

    index: int
    name: str
    port: int = 1
    link_layer: str = ""
    speed_mbps: int | None = None
    gdr: bool | None = None
    origin: Origin | None = None
    gdr_origin: Origin | None = None
    """The line that says that GPUDirect RDMA is off for it."""


@dataclass(frozen=True, slots=True)
class GivenSetting:
    """A setting in force. `how`: environment, command (no line of NCCL), application (ncclConfig_t), invalid."""

    name: str
    value: str
    how: str = "environment"
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A line that is known and kept: `kind` and `details` by {texts,facts}.toml of evidence/nccl_log/grammar."""

    kind: str
    text: str
    origin: Origin | None = None
    count: int = 1
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Process:
    """One process of the job, with what it said of itself and of its node. `pid` is that inside its container.

    `versions` by component: `nccl`, `driver` (CUDA driver API, as 12040), `net plugin`, `tuner plugin`, `ofi`, `rccl`.
    `network`: what NCCL uses between nodes, `IB`, `Socket`, `AWS Libfabric`, ..; "" when not said. `hcas`: its ports
    (`hcas_cut`: the text ends within the list), `vnics`: its virtual NICs, names joined by `+`. `bootstrap`: interface
    and address, `eth0:10.1.2.3<0>`; `addresses`: its node's. `messages`: what checks read but lines of one device.
    `system`, `graphs`: where no communicator is named. `opening`: its last call that makes one, none after: it waits.
    """

    host: str
    pid: int
    versions: Mapping[str, str] = field(default_factory=dict)
    network: str = ""
    hcas: tuple[Hca, ...] = ()
    vnics: tuple[Hca, ...] = ()
    bootstrap: str = ""
    settings: Mapping[str, GivenSetting] = field(default_factory=dict)
    messages: tuple[Message, ...] = ()
    origin: Origin | None = None
    system: NcclSystem | None = None
    graphs: tuple[Graph, ...] = ()
    addresses: tuple[str, ...] = ()
    opening: Message | None = None
    hcas_cut: bool = False

    def said(self, kind: str) -> tuple[Message, ...]:
        return tuple(message for message in self.messages if message.kind == kind)


@dataclass(frozen=True, slots=True)
class Rank:
    """A world rank and where it ran. `process` indexes `Job.processes`. bus_id as sysfs writes it, "" if unknown."""

    rank: int
    host: str
    pid: int
    cuda_dev: int = -1
    nvml_dev: int = -1
    bus_id: str = ""
    process: int = -1
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Channels:
    """Channel counts of a communicator; -1 where the version prints none."""

    coll: int = -1
    collnet: int = -1
    nvls: int = -1
    p2p: int = -1
    per_peer: int = -1


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm and protocol that NCCL took for one operation size, in bytes as printed."""

    collective: str
    bytes: int
    algorithm: str
    protocol: str
    count: int = 1
    channels: tuple[int, int] = (-1, -1)


@dataclass(frozen=True, slots=True)
class ChoiceApart:
    """What ranks chose differently for one operation size: processes (indexes) by `ALGORITHM/PROTOCOL`, and one line of
    each. `collective` is "" before 2.23."""

    collective: str
    bytes: int
    by_choice: Mapping[str, tuple[int, ...]]
    origins: tuple[Origin, ...] = ()


@dataclass(frozen=True, slots=True)
class Operations:
    """What one member enqueued: the last opCount (-1 none seen), how many calls, the bytes and the calls by collective,
    and the last operations in order without a gap."""

    last: int = -1
    calls: int = 0
    bytes_by_collective: Mapping[str, int] = field(default_factory=dict)
    calls_by_collective: Mapping[str, int] = field(default_factory=dict)
    tail: tuple[tuple[int, str, int, int, int, int], ...] = ()
    """(opCount, collective, elements, dtype, redop, root)"""
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Communicator:
    """One communicator. Arrays are indexed by the communicator's rank and have `nranks` entries.

    `ranks` are world ranks; -1 where that member left no line. `started`, `completed`: Init START and COMPLETE seen.
    `init_s` is the total in seconds, NaN unknown; `phases_s[name]` the same per phase of PHASES. `nodes` is NCCL's own
    count of nodes (-1 not printed), `hosts` the distinct host names of the known members. `parent` indexes
    `Job.communicators`. `destroyed` counts the members that were torn down, `aborted` those of them by an abort.

    `rings[c]` are communicator ranks in ring order, from rank 0, as far as the log shows them closed. `trees[c]` are
    (rank, parent) pairs. `channels_by_rank` holds the members whose counts differ from `channels`.
    `systems` maps a host to NCCL's print of it; GPUs there carry communicator ranks.
    """

    index: int
    nranks: int
    ranks: Ints
    name: str = ""
    role: Role = Role.OTHER
    role_sure: Confidence = Confidence.LOW
    role_why: str = ""
    parent: int = -1
    color: int = -1
    split: int = -1
    comm_id: int = 0
    func: str = ""
    nodes: int = -1
    hosts: tuple[str, ...] = ()
    mnnvl: bool | None = None
    started: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    completed: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    completed_ts: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """Seconds since the epoch of each member's Init COMPLETE, by the clock of its host; NaN unknown."""
    local_ranks: Mapping[str, int] = field(default_factory=dict)
    """NCCL's own count of ranks by host, of the hosts whose line says it."""
    destroyed: int = 0
    aborted: int = 0
    torn_down: tuple[int, ...] = ()
    """World ranks of the members that were torn down, as far as they are known."""
    init_s: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    phases_s: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    network: str = ""
    channels: Channels = Channels()
    channels_by_rank: Mapping[int, Channels] = field(default_factory=dict)
    rings: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    trees: Mapping[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    transports: Mapping[str, int] = field(default_factory=dict)
    """Lines by transport, with the network device and without the proxy: `P2P/CUMEM`, `NET/IB/3/GDRDMA`."""
    systems: Mapping[str, NcclSystem] = field(default_factory=dict)
    graphs: Mapping[str, tuple[Graph, ...]] = field(default_factory=dict)
    """By host, in the order that NCCL searched."""
    tuning: Tuning = field(default_factory=dict)
    choices: tuple[Choice, ...] = ()
    operations: Mapping[int, Operations] = field(default_factory=dict)
    """By communicator rank."""
    messages: tuple[Message, ...] = ()
    origin: Origin | None = None
    inferred: bool = False
    """No line names it: its members are the ranks that print, `nranks` is the highest rank named and one."""

    @property
    def known(self) -> Ints:
        """World ranks of the members that left a line."""
        return self.ranks[self.ranks >= 0]

    @property
    def unfinished(self) -> tuple[int, ...] | None:
        """Members that started init and show no sign of having completed it; None where the log shows no init."""
        size, started, completed = self.nranks, self.started, self.completed
        if len(started) != size or len(completed) != size or not (started.any() or completed.any()):
            return None
        if self.destroyed >= size:
            return ()
        timed = np.isfinite(self.init_s) if len(self.init_s) == size else np.zeros(size, bool)
        open_at = np.flatnonzero(started & ~completed & ~timed)
        return tuple(int(at) for at in open_at if int(at) not in self.operations)

    @property
    def init_complete(self) -> bool:
        return bool(self.completed.size) and bool(self.completed.all())

    @property
    def label(self) -> str:
        """How a reader would call it: its name or role, and its colour where it has siblings."""
        word = self.name or self.role.value or f"communicator {self.index}"
        return f"{word} {self.color}" if self.color >= 0 else word


@dataclass(frozen=True, slots=True)
class Event:
    """Something that went wrong, or the unwinding after it, first of its kind in its process.

    `ts` in seconds since the epoch (the log's own zone read as UTC), None without a timestamp. `kind` is the category:
    `ib completion`, `ib async`, `port`, `peer closed`, `connect`, `timeout`, `cuda`, `memory`, `bootstrap`, `version`,
    `duplicate gpu`, `topology`, `plugin`, `mismatch`, `watchdog`, `unwind`, `other`; of lines without a head of NCCL
    also `ended` (a process), `stalled` (ranks that others wait for), `device` (a fault), and without an error
    `launched` (a start), `met` (at torch's store), `tried` (a connect that is tried again) and `note` (no cause).
    `secondary` events follow from another one by nature: a peer that closed, a flushed work request, an unwinding.
    """

    kind: str
    text: str
    host: str
    pid: int = -1
    rank: int = -1
    place: str = ""
    label: str = ""
    ts: float | None = None
    last_ts: float | None = None
    count: int = 1
    level: str = "WARN"
    secondary: bool = False
    details: Mapping[str, str] = field(default_factory=dict)
    """What the text names: hca, port, peer, status, vendor_err, gid, ranks, bus_id, seq, work; of an end how, code,
    what, host; `fault` of a device, a limit or the host (ecc, nvlink, lost, fabric, shm, memlock, files, busy); and
    what it says by evidence/nccl_log/grammar/facts.toml."""
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class FlightRecord:
    """The last collectives of one rank in torch's flight recorder. `entries`: (process group, sequence number,
    operation, state), in the order recorded; state is scheduled, started, completed or timed out."""

    rank: int
    entries: tuple[tuple[str, int, str, str], ...]
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """World ranks by process group."""
    descriptions: Mapping[str, str] = field(default_factory=dict)
    origin: Origin | None = None
    created_s: tuple[float, ...] = ()
    """By entry, when the rank enqueued it, seconds since the epoch by the clock of its host; NaN unknown."""


@dataclass(frozen=True, slots=True)
class Stated:
    """What programs beside NCCL state of the job: its number of ranks (-1 where they state none, or several), the ranks
    of nccl-tests' list of devices, hosts of ranks as launchers name them, and sizes of communicators of which no line
    names the ranks."""

    size: int = -1
    ranks: tuple[Rank, ...] = ()
    hosts: tuple[str, ...] = ()
    comm_sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Job:
    """One job, or one start of a job that was restarted.

    `ranks` are those that left a line with their rank, by rank; `world_size` is what NCCL was told. `unplaced` are the
    processes that printed and never said a rank. `subsystems` are those whose lines were seen. `communicators`: parents
    first. `is_past`: its log shows a later launch. `done` are the lines, one a log, that show its work done.
    """

    name: str
    world_size: int
    ranks: tuple[Rank, ...]
    processes: tuple[Process, ...]
    communicators: tuple[Communicator, ...]
    connections: Connections
    hosts: tuple[str, ...]
    nccl_versions: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    flight: tuple[FlightRecord, ...] = ()
    ras: tuple[RasAnswer, ...] = ()
    stacks: tuple[Stack, ...] = ()
    inspection: Inspection | None = None
    diagnostics: tuple[Diagnosis, ...] = ()
    step_waits: tuple[StepWaits, ...] = ()
    steps: tuple[StepSeries, ...] = ()
    training: JobSettings | None = None
    progress: tuple[Progress, ...] = ()
    """Lines that its programs print while they work."""
    cut_logs: tuple[str, ...] = ()
    """Logs that end in the middle of a line: there the stream ended, not the job."""
    subsystems: frozenset[str] = frozenset()
    unplaced: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    choices_apart: tuple[ChoiceApart, ...] = ()
    machines: Mapping[str, Node] = field(default_factory=dict)
    """By host as the job names it, the capture of that machine, where a case has one as the job met it."""
    size_told: bool = True
    """False where no line names the communicator of all ranks: `world_size` counts the known ones."""
    stated: Stated = Stated()
    library: str = "NCCL"
    """Whose log it is: NCCL's, or RCCL's, which decides by rules of its own."""
    is_past: bool = False
    done: tuple[Origin, ...] = ()

    @property
    def is_cut(self) -> bool:
        """Whether every log of the job ends in the middle of a line: one that is whole shows how the job stood."""
        return bool(self.files) and set(self.files) <= set(self.cut_logs)

    @cached_property
    def by_rank(self) -> Mapping[int, Rank]:
        return {rank.rank: rank for rank in self.ranks}

    @cached_property
    def paces(self) -> tuple[Pace, ...]:
        """How steady its steps are, of the last start of each rank that prints them, by rank."""
        return last_starts(self.steps)

    @cached_property
    def messages(self) -> Mapping[str, Sequence[tuple[int, Message]]]:
        """By kind, what processes said: index of the process and the message, in the order of the processes."""
        pairs = ((number, message) for number, process in enumerate(self.processes) for message in process.messages)
        return grouped((pair[1].kind, pair) for pair in pairs)

    @property
    def only_ras(self) -> bool:
        """Whether answers of RAS are all that is known of it."""
        return bool(self.ras) and not (self.processes or self.ranks or self.flight or self.stacks or self.steps)

    @property
    def world(self) -> Communicator | None:
        return self.communicators[0] if self.communicators else None

    def process_of(self, rank: Rank) -> Process | None:
        return self.processes[rank.process] if 0 <= rank.process < len(self.processes) else None

    def settings(self) -> Mapping[str, Mapping[str, Sequence[int]]]:
        """By name, then by value, the indexes of the processes with that value."""
        numbers: dict[str, dict[str, list[int]]] = {}
        for number, process in enumerate(self.processes):
            for given in process.settings.values():
                numbers.setdefault(given.name, {}).setdefault(given.value, []).append(number)
        return numbers
