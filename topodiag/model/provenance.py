"""Facts, where they came from, and the topics that evidence can speak of. Unknown is a value: it says why, and never
counts as healthy or as broken."""

from __future__ import annotations

from enum import Enum
from typing import Generic, TypeVar

from topodiag.lazy import dataclass

T = TypeVar("T")
D = TypeVar("D")

MAX_QUOTE = 200
"""Characters of a source line kept as evidence: enough to recognise it, short enough to print."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a fact was read: a file of the evidence, the line in it (from 1), and that line's text.

    `command` is the command line that wrote the file, where there was one.
    """

    source: str
    line: int | None = None
    text: str = ""
    command: str = ""

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line is not None else self.source


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """One value with its origin, or the reason why there is none (`value is None`)."""

    value: T | None = None
    origin: Origin | None = None
    why: str = ""

    @property
    def known(self) -> bool:
        return self.value is not None

    def get(self, default: D) -> T | D:
        return default if self.value is None else self.value


def known(value: T, origin: Origin | None = None) -> Fact[T]:
    return Fact(value, origin)


NOT_SEEN = "not in the evidence"


@dataclass(frozen=True, slots=True)
class Counter:
    """One cumulative counter, sampled once or twice.

    `first` is the earlier reading, `later` the second one `interval_s` seconds after it. Counters run since boot or
    driver load; only `delta` says what happens now.
    """

    name: str
    first: Fact[int] = Fact()
    later: Fact[int] = Fact()
    interval_s: float = 0.0

    @property
    def latest(self) -> Fact[int]:
        return self.later if self.later.known else self.first

    @property
    def delta(self) -> int | None:
        """Growth between the samples; None without two readings, or when the counter went back (reset)."""
        if self.first.value is None or self.later.value is None:
            return None
        grown = self.later.value - self.first.value
        return grown if grown >= 0 else None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two sources that say different things of one field: `taken` was believed, `other` was not."""

    subject: str
    field: str
    taken: str
    taken_from: Origin
    other: str
    other_from: Origin


PART = "part of the input"
"""What a gap is that is no source of evidence: its reason names the input."""


@dataclass(frozen=True, slots=True)
class NotObserved:
    """Something that was looked for and not seen: what, why, whether root would have shown it, and what it is `of`.

    `timed_out_s` are the seconds that a probe had when it was given up: 0 where its turn never came, None where it
    ended by itself. `unreadable`: an input that is there, and of which all or a part cannot be read.
    """

    what: str
    why: str
    needs_root: bool = False
    of: frozenset[Topic] = frozenset()
    timed_out_s: float | None = None
    unreadable: bool = False


class Topic(Enum):
    """Something of a machine that a source answers for: who speaks of it would also say that there is none."""

    GPUS = "the GPUs, as the driver counts them"
    DRIVER = "the NVIDIA driver"
    NVLINKS = "NVLinks"
    GPU_PAIRS = "the way between GPUs"
    PCI = "PCI functions"
    RDMA_DEVICES = "every RDMA device"
    FABRIC = "ports of the fabric, by its management"
    INTERFACES = "network interfaces"
    CPUS = "processors and NUMA nodes"
    OS = "the operating system, or the container around the tool"
    SERVICES = "services of the system"
    KERNEL_LOG = "messages of the kernel"
    PROCESSES = "processes that use GPUs, and where they are bound"
    SETTINGS = "NCCL's settings and files of settings"
    TOPOLOGY_FILE = "a topology file of NCCL"
