"""The rows of `Using devices`, by which nccl-tests names the process, host and GPU of each rank."""

from __future__ import annotations

from topodiag.lazy import regex
from topodiag.model.bench import BenchDevice
from topodiag.model.busid import normalise_bus_id

DEVICE = regex(
    r"\bRank +(\d{1,9}) +(?:Group +(\d{1,9}) +)?(?:Pid +(\d{1,10}) +)?(?:on +(\S{1,255}) +)?(?:uses +)?"
    r"device +(\d{1,9}) +\[([\w:.]{1,40})\] ?(.*)"
)


def device_of(text: str) -> BenchDevice | None:
    """A row of `Using devices`. Until v2.14.0 it has only the bus number, which is no bus id."""
    found = DEVICE.search(text)
    if found is None:
        return None
    bus_id = normalise_bus_id(found[6]) if ":" in found[6] else None
    return BenchDevice(
        rank=int(found[1]),
        host=found[4] or "",
        device=int(found[5]),
        name=found[7].strip()[:100],
        bus_id=bus_id or "",
        group=int(found[2] or 0),
        pid=int(found[3] or 0),
    )
