"""A GPU whose own processor (GSP) does not answer the driver, told by the driver's functions and by no Xid.

The lines around Xid 119 and 120 say the same and are often all that somebody cut out. GPU003 makes a finding of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.node.gpu_events import Trouble, XidGroup, capital, label_at, named, times, where_gpus
from topodiag.model.finding import Confidence, Severity
from topodiag.model.node import Node

_SAME = frozenset({62, 79, 109, 119, 120, 143})
"""Xids of which such lines are the echo."""


def silent_firmware(node: Node, groups: Sequence[XidGroup]) -> list[Trouble]:
    """The one trouble of such lines, where neither an Xid nor a lost GPU speaks for them."""
    events = [event for event in node.events if event.kind == "gsp"]
    spoken = any(group.code in _SAME for group in groups) or any(event.kind == "gpu-lost" for event in node.events)
    if not events or spoken:
        return []
    label = label_at(node, next((event.bus_id for event in events if event.bus_id is not None), None))
    name = named(node, label)
    return [
        Trouble(
            name,
            Severity.ERROR,
            f"{capital(name)}: its processor (GSP) does not answer the driver{times(events)}",
            events[0].text,
            "as a rule driver or firmware",
            (
                "`dmesg -T | grep -E 'Xid|GSP'` on the node: an Xid 119 or 120 beside it names the GPU",
                "drain the node and power-cycle it; if it comes again, update the driver, or run without GSP where the"
                " driver still can (`NVreg_EnableGpuFirmware=0`)",
            ),
            tuple(event.origin for event in events),
            where_gpus([label]),
            cost="calls to the driver hang, and every rank of the job waits for this GPU",
            confidence=Confidence.MEDIUM,
        )
    ]


__all__ = ["silent_firmware"]
