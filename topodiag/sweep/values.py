"""Sweeps of benchmark runs over a cluster: the fabric, the runs of a plan, and what their results say of its parts.

Bandwidths in GB/s (1e9 bytes per second), sizes in bytes. A rail is a NIC's place in its node: NIC r of every node is
on rail r, and GPU r is next to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import NamedTuple

from topodiag.lazy import dataclass
from topodiag.words.units import grouped


@dataclass(frozen=True, slots=True)
class Fabric:
    """The machines to be swept. `nics` are the devices by rail (mlx5_0 ...), empty where their names are not known.
    `racks` tells the rack, pod or leaf group by node; a node without one has no known leaf. `leaf_per_rail` is a
    rail-optimised fabric (one leaf per rail and rack); otherwise all NICs of a rack are on one leaf."""

    nodes: tuple[str, ...]
    gpus: int = 8
    rails: int = 8
    nics: tuple[str, ...] = ()
    racks: Mapping[str, str] = field(default_factory=dict)
    leaf_per_rail: bool = True

    def gpu_of(self, rail: int) -> int:
        """The GPU next to the NIC of this rail."""
        return min(rail * self.gpus // self.rails, self.gpus - 1)

    def nic(self, rail: int) -> str:
        return self.nics[rail] if 0 <= rail < len(self.nics) else ""

    def by_rack(self) -> dict[str, tuple[str, ...]]:
        """Nodes by rack, both in the order of `nodes`; nodes without a rack are left out."""
        racks = grouped((self.racks[node], node) for node in self.nodes if node in self.racks)
        return {rack: tuple(nodes) for rack, nodes in racks.items()}


class Part(NamedTuple):
    """A part that can be at fault. `kind`: `gpu` (rail: the GPU's index), `board` (NVLink of a node as a whole), `link`
    (NIC, its cable and the leaf's port), `pcie` (the way from the GPU to that NIC), `host` (what all rails of a node
    share), `leaf` and `uplink` (of a rack), `between` (what joins two racks that are all), `path` (just these nodes or
    GPUs together). `rail` is -1 for all."""

    kind: str
    place: str
    rail: int = -1


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One benchmark run of a plan. Runs of one `wave` use disjoint nodes (or GPUs) and may run at the same time.

    `kind`: `intra`, `gpus` (two GPUs of a node), `pairs`, `ring`, `rails` (a pair over one rail), `racks`,
    `bisection`, `settings` (algorithm x protocol x collective), `fabric` (ib_write_bw). `gpus` are those used on each
    node; `rail` is None where all are. `program` is the benchmark's name (`alltoall_perf`, `ib_write_bw`).
    """

    id: str
    kind: str
    wave: int
    nodes: tuple[str, ...]
    gpus: tuple[int, ...]
    collective: str
    program: str
    rail: int | None = None
    algorithm: str = ""
    protocol: str = ""
    min_bytes: int = 1 << 28
    max_bytes: int = 1 << 30
    why: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """How runs are started. `launcher`: `srun`, `mpirun` or `none` (this machine alone); `arguments` go to it."""

    launcher: str = "srun"
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_s: int = 180


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """The runs of one round. Round 1 looks at everything; each later one at what the rounds before made suspect."""

    fabric: Fabric
    runs: tuple[SweepRun, ...]
    round: int = 1
    launch: Launch = Launch()
    write_bw: bool = False
    """Whether ib_write_bw may be used to tell a NIC from the GPU's way to it."""

    @property
    def waves(self) -> int:
        return len({run.wave for run in self.runs})


class State(Enum):
    """What came of one attempt at a run."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    NO_TABLE = "no-table"
    WRONG = "wrong"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class SweepResult:
    """One attempt at a run, as it is kept. `gbs` is the bus bandwidth at the greatest size (ib_write_bw: the mean)."""

    run: str
    round: int
    state: State
    gbs: float | None = None
    size: int = 0
    seconds: float = 0.0
    exit: int | None = None
    attempt: int = 1
    started: str = ""
    output: str = ""
    why: str = ""


class Standing(Enum):
    """A run beside those of its kind."""

    NORMAL = "normal"
    LOW = "low"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """`share` is its bandwidth over `reference`, the upper quartile of the runs that are alike."""

    run: SweepRun
    round: int
    standing: Standing
    gbs: float | None = None
    reference: float | None = None
    why: str = ""

    @property
    def share(self) -> float | None:
        return self.gbs / self.reference if self.gbs is not None and self.reference else None


@dataclass(frozen=True, slots=True)
class Fault:
    """Parts of which one is at fault: more than one where the runs cannot tell them apart.

    `confirmed`: slow in two rounds, with different partners, and told apart from all other parts. `share` is the median
    bandwidth of its slow runs over what is normal; None where all of them failed.
    """

    parts: tuple[Part, ...]
    runs: tuple[str, ...]
    rounds: tuple[int, ...]
    share: float | None
    confirmed: bool


@dataclass(frozen=True, slots=True)
class Gap:
    """Two placements of one collective on as many ranks of which one is more than 30 % slower (BEN005)."""

    collective: str
    ranks: int
    best: JudgedRun
    worst: JudgedRun

    @property
    def lost(self) -> float:
        return 1 - (self.worst.gbs or 0.0) / (self.best.gbs or 1.0)


@dataclass(frozen=True, slots=True)
class SweepJudgement:
    """What all rounds say together. `missing` counts planned runs without a result."""

    runs: tuple[JudgedRun, ...] = ()
    faults: tuple[Fault, ...] = ()
    gaps: tuple[Gap, ...] = ()
    passed: frozenset[Part] = frozenset()
    missing: int = 0
    notes: tuple[str, ...] = ()

    @property
    def confirmed(self) -> tuple[Fault, ...]:
        return tuple(fault for fault in self.faults if fault.confirmed)

    @property
    def suspects(self) -> tuple[Fault, ...]:
        return tuple(fault for fault in self.faults if not fault.confirmed)
