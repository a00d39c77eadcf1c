"""Warnings and return codes that jobs live with, each with the reason why it tells of no fault.

What is listed here is said beside the verdict and never changes it.
"""

from __future__ import annotations

from topodiag.checks.shared.phrases import why_lived_with
from topodiag.lazy import regex
from topodiag.model.job import Event, Job

CLOSED = "return codes of a communicator that was torn down"
GOING_DOWN = "torch and its launcher print it while a job goes down, well or badly: it names no cause"
NO_DRIVER = (
    "libibverbs asks for the driver of each kind of adapter that is set up on the system, and this kind's is not"
    " installed: it costs nothing where the node has no such adapter"
)
NO_DEVICE = "the code by which NCCL learns that it finds none of these devices"

_OPTIONAL = regex(r"(?:ibvwrap|ibvsymbols|gdrwrap|nvmlwrap|mlx5dv\w*|net_ib\w*|plugin/\w+|net|init_nvtx)\.cc:\d+ -> ")
"""Files whose calls fail where a library is absent, and whose callers go on (src/plugin/net.cc, ncclNetInit)."""


def why_harmless(event: Event, job: Job) -> str:
    """The reason, "" where the line may tell of a fault."""
    if event.level == "UNWIND":
        return _why_code(event, job)
    if event.kind == "note":
        return NO_DRIVER if "couldn't load driver" in event.text else GOING_DOWN
    if event.level == "APP":
        return ""
    return why_lived_with("harmless_to_a_job", event.text)


def _why_code(event: Event, job: Job) -> str:
    """A code is a trouble of its own where the communicator did not come up, or was not given back."""
    world = job.world
    if world is None or not world.init_complete:
        return ""
    if world.destroyed:
        return CLOSED
    return NO_DEVICE if _OPTIONAL.search(f"{event.place} {event.text}") else ""
