"""Tables that any script prints, each column by the name that checks ask for."""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin

STATE, HAVE, WANT, TIME, SETTING = "state of ", "have ", "want ", "time ", "setting "
"""Begin the columns of states, of what is there and should be, of the time of a rank's own work, of settings."""
GPU, RANK, HOST, PID = "gpu", "rank", "host", "pid"
CLOCK, LOAD = "clock", "load"
COMPONENT, VERDICT, WELL, ILL, SAYS = "component", "verdict", "well", "ill", "says"
"""Of an agent's object: what it is about, its verdict in a word, whether it is well or ill, and its words."""
WAITS_IN, PROCESS_STATE, COMMAND = "wchan", "stat", "command"
CAN, RUNS = "link capability", "link status"
VERSION = "version"
STARTED = "started"
"""Processes that the launcher's command above a list of devices starts."""
UNCORRECTED = "uncorrected errors"
CELSIUS, MEMORY_MIB, FAILED_READING, COMPUTE_MODE, PRODUCT = (
    "celsius", "memory mib", "failed reading", "compute mode", "product",
)  # fmt: skip
"""Of a GPU in nvidia-smi's table; the failed reading as it stands there."""
CAPACITY, ALLOCATABLE = "gpu capacity", "allocatable gpus"
"""Of a node of Kubernetes."""
NUMA, PROCESSORS, MEMORY_MB = "numa node", "processors", "memory mb"
TOTAL = "nvlink total "
"""Begins the columns of error counters that sum all NVLinks of a GPU."""
SETUP = ("mtu", "active mtu", "tos", "tclass", "dscp", "trust", "pfc", "pkey", "gid index")
"""Settings of a port that both ends of a path must share."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row. `cells` by column, as they stand there; `label` is what stands before them, a host or a device."""

    cells: Mapping[str, str]
    origin: Origin
    label: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with the same columns."""

    rows: tuple[Row, ...]

    def column(self, name: str) -> dict[int, str]:
        """The cells of a column by the place of their row."""
        return {place: row.cells[name] for place, row in enumerate(self.rows) if name in row.cells}

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for row in self.rows for name in row.cells))
