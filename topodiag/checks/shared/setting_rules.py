"""What settings cost: how NCCL reads their values, and the words that checks of nodes and of jobs share.

When a setting costs something on a node or in a job, the subjects say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Severity
from topodiag.model.nccl_enums import PathType
from topodiag.words.units import spell_bytes

M = TypeVar("M")

FEW_CHANNELS = 8
"""Fewer channels than this cannot carry one NVSwitch GPU's links: NCCL opens 16 to 32 there (src/graph/search.cc)."""

DEFAULT_BUFFSIZE = 4 << 20
"""NCCL_BUFFSIZE of the Simple protocol, bytes (DEFAULT_BUFFSIZE, src/init.cc v2.30)."""


@dataclass(frozen=True, slots=True)
class Rule(Generic[M]):
    """When a value costs something on a machine, and what. `applies` sees the value and what shows the machine: a node,
    or a job's log."""

    name: str
    applies: Callable[[str, M], bool]
    what: str
    severity: Severity
    fix: str
    confidence: Confidence = Confidence.HIGH


@dataclass(frozen=True, slots=True)
class SettingCost:
    """What a value costs where it costs something, in words that hold for nodes and jobs alike."""

    name: str
    what: str
    severity: Severity
    fix: str

    def when(self, applies: Callable[[str, M], bool]) -> Rule[M]:
        """The rule of one subject."""
        return Rule(self.name, applies, self.what, self.severity, self.fix)


def number(value: str) -> int | None:
    """A setting as NCCL's parameters read it: strtoll base 0, the whole text or nothing (src/misc/param.cc)."""
    text = value.strip()
    try:
        return int(text, 0) if 0 < len(text) <= 20 else None
    except ValueError:
        return int(text) if text.isascii() and text.isdigit() else None


def on(value: str) -> bool:
    made = number(value)
    return made is not None and made != 0


def off(value: str) -> bool:
    return number(value) == 0


def level(value: str) -> PathType | None:
    """A path type as NCCL's level settings read it: a word, or one of the old numbers (src/graph/paths.cc)."""
    text = value.strip().upper()
    words = {name: kind for name, kind in PathType.__members__.items() if kind <= PathType.SYS}
    numbers = {0: PathType.LOC, 1: PathType.PIX, 2: PathType.PXB, 3: PathType.PHB}
    made = number(text)
    return words.get(text) if made is None else numbers.get(made, PathType.SYS)


def few_channels(value: str) -> bool:
    made = number(value)
    return made is not None and 0 < made < FEW_CHANNELS


def small_buffer(value: str) -> bool:
    made = number(value)
    return made is not None and 0 < made < DEFAULT_BUFFSIZE


P2P_LEVEL_LOC = SettingCost(
    "NCCL_P2P_LEVEL", "peer-to-peer is off between all GPUs, NVLink with it", Severity.ERROR, "unset NCCL_P2P_LEVEL"
)
NVLS_OFF = SettingCost(
    "NCCL_NVLS_ENABLE",
    "NVLink SHARP is off: all-reduce inside the node loses its fastest algorithm",
    Severity.WARNING,
    "unset NCCL_NVLS_ENABLE",
)
CUMEM_OFF = SettingCost(
    "NCCL_CUMEM_ENABLE",
    "cuMem is off, and NVLink SHARP and multi-node NVLink need it",
    Severity.WARNING,
    "unset NCCL_CUMEM_ENABLE",
)
PXN_OFF = SettingCost(
    "NCCL_PXN_DISABLE",
    "GPUs cannot use another GPU's NIC over NVLink: all-to-all crosses rails",
    Severity.WARNING,
    "unset NCCL_PXN_DISABLE",
)
FEW_NCHANNELS = SettingCost(
    "NCCL_MAX_NCHANNELS",
    f"fewer than {FEW_CHANNELS} channels cannot carry this node's NVLinks",
    Severity.WARNING,
    "unset NCCL_MAX_NCHANNELS",
)
FEW_CTAS = SettingCost(
    "NCCL_MAX_CTAS",
    f"fewer than {FEW_CHANNELS} channels cannot carry this node's NVLinks",
    Severity.WARNING,
    "unset NCCL_MAX_CTAS",
)
SMALL_BUFFERS = SettingCost(
    "NCCL_BUFFSIZE",
    f"buffers below NCCL's {spell_bytes(DEFAULT_BUFFSIZE)} make the pipeline stall",
    Severity.WARNING,
    "unset NCCL_BUFFSIZE",
)
ONE_PROTOCOL = SettingCost(
    "NCCL_PROTO",
    "one protocol is forced for all sizes: LL carries half of the bandwidth, LL128 95 %",
    Severity.WARNING,
    "unset NCCL_PROTO",
)
TRACED = SettingCost(
    "NCCL_DEBUG",
    "in a build with traces, TRACE writes a line for every operation",
    Severity.INFO,
    "use NCCL_DEBUG=INFO, or WARN",
)
CHECKED_CALLS = SettingCost(
    "NCCL_CHECK_MODE",
    "arguments are checked on every call, across ranks with DEBUG_GLOBAL",
    Severity.INFO,
    "unset NCCL_CHECK_MODE when done",
)
GROUP_LAUNCH = SettingCost(
    "NCCL_LAUNCH_MODE", "GROUP launch serialises the GPUs of a process", Severity.INFO, "unset NCCL_LAUNCH_MODE"
)
