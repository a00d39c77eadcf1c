"""What AMD's driver says in the kernel log: a GPU whose firmware is stuck, that did not start, that was reset, or whose
memory failed. GPU003 makes findings of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from topodiag.checks.node.gpu_events import Trouble, capital, label_at, named, times, where_gpus
from topodiag.model.finding import Severity
from topodiag.model.node import Node
from topodiag.model.system import KernelEvent

_MEMORY = ("uncorrectable hardware error", "ras poison")
_STUCK = ("failed to respond", "unrecoverable state", "fence wait loop", "not responding", "not done with your")
_NO_START = ("fatal error during gpu init",)
_NO_RESET = ("reset end with ret = -", "recovery failed")
_RING = (" timeout",)

_WORDS = (
    (_MEMORY, "uncorrectable hardware errors (RAS)", "hardware: memory or a block of the chip that the line names",
     ("`rocm-smi --showrasinfo` or `amd-smi metric --ecc`: which block, and whether pages were retired",
      "drain the node and reset the GPU; replace it if the errors come again")),
    (_NO_START, "the driver could not start the GPU: no program can use it", "hardware, firmware or the slot",
     ("power the node off and on; seat the GPU anew, or try another slot: does the fault go with it?",
      "`failed with error -12` after it: the BIOS leaves no room for its memory (Above 4G Decoding, resizable BAR)",
      "the lines above it name the block that failed; driver and firmware have to be of one set")),
    (_NO_RESET, "the driver's reset of the GPU failed", "hardware, or firmware that is stuck",
     ("power the node off and on; `dmesg | grep amdgpu` before the reset says what led to it",)),
    (_STUCK, "the GPU's firmware does not answer", "as a rule driver or firmware",
     ("drain the node and reboot it: work on this GPU is lost after a reset",
      "update the driver and the GPU's firmware (linux-firmware, the board's bundle) as one set")),
    (_RING, "a queue of the GPU timed out", "hardware, driver or the program that used the queue",
     ("the line names the process: whether other programs meet it on this GPU tells program from hardware",
      "`dmesg | grep amdgpu` before it: page faults speak for the program")),
    (("",), "the GPU was reset by its driver", "hardware, driver or program: the lines before it say which",
     ("`dmesg | grep amdgpu` before the reset",)),
)  # fmt: skip
"""What is said of a GPU's lines by what they hold, in lower case, the nearest to the cause first. A reset follows from
any of them."""


def amd_troubles(node: Node) -> list[Trouble]:
    """One for each GPU whose driver speaks of trouble."""
    found: dict[str, list[KernelEvent]] = defaultdict(list)
    for event in node.events:
        if event.kind == "amdgpu":
            found[label_at(node, event.bus_id)].append(event)
    return [_of_gpu(node, label, events) for label, events in found.items()]


def _holds(event: KernelEvent, signs: Iterable[str]) -> bool:
    return any(sign in event.text.lower() for sign in signs)


def _of_gpu(node: Node, label: str, events: list[KernelEvent]) -> Trouble:
    signs, words, side, fix = next(row for row in _WORDS if any(_holds(event, row[0]) for event in events))
    told = [event for event in events if _holds(event, signs)]
    name = named(node, label)
    return Trouble(
        name,
        Severity.ERROR,
        f"{capital(name)}: {words}{times(told)}",
        told[0].text,
        side,
        fix,
        tuple(event.origin for event in events),
        where_gpus([label]),
        cost="work on this GPU stopped, and every rank of its job waits for it",
    )
