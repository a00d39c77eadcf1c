"""The rows of `Using devices`, by which nccl-tests names the process, host and GPU of each rank."""

from __future__ import annotations

from topodiag.model.bench import BenchDevice
from topodiag.model.busid import normalise_bus_id
from topodiag.words.own_data import patterns

DEVICE = patterns("evidence/lines", "bench")["device"]


def device_of(text: str) -> BenchDevice | None:
    """A row of `Using devices`. Until v2.14.0 it has only the bus number, which is no bus id."""
    match = DEVICE.search(text)
    if match is None:
        return None
    bus_id = normalise_bus_id(match[6]) if ":" in match[6] else None
    return BenchDevice(
        rank=int(match[1]),
        host=match[4] or "",
        device=int(match[5]),
        name=match[7].strip()[:100],
        bus_id=bus_id or "",
        group=int(match[2] or 0),
        pid=int(match[3] or 0),
    )
