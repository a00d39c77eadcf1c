"""NVIDIA's numbers and names in the model's words, shared by the sources that read NVML and nvidia-smi.

Numbers are those of nvml.h (13.3) as the Python binding nvidia-ml-py names them.

Identities that NVIDIA's tools print, kept only where they can tell devices apart.

Published and redacted output often carries one made-up UUID for every GPU; believed, it would merge them into one.

The sentence that nvidia-smi prints in place of a report when a GPU does not answer. Every option can print it.

Unable to determine the device handle for GPU4: 00000000:9D:00.0: GPU is lost.  Reboot the system to recover this GPU
Unable to determine the device handle for GPU 0000:1A:00.0: Unknown Error
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import MAX_LINE, Blob, reading, to_float, to_int
from topodiag.lazy import regex
from topodiag.model.busid import normalise_bus_id
from topodiag.words.own_data import own_data, patterns

_NAMES = own_data("evidence/nvidia/names")
NUMBERS: Mapping[str, Mapping[int, str]] = {
    table: {int(number): name for number, name in names.items()} for table, names in _NAMES["numbers"].items()
}
"""What the numbers of NVML's enumerations mean."""
EVENT_REASONS = NUMBERS["event-reasons"]

LOST_WORDS = {"GpuIsLost": "GPU is lost", "ResetRequired": "GPU requires reset"}
"""NVML errors that mean that the GPU itself does not answer, in nvidia-smi's words."""


_FLAGS = {"mig", "persistence", "c2c"}
_SWITCHED = {"enabled": True, "disabled": False}


def bounded(name: str, value: float | None) -> float | None:
    """A value of a field that it can have: power as it stands, all else as a whole number."""
    low, high = _NAMES["bounds"][name]
    if value is None or not low <= value <= high:
        return None
    return value if name.endswith("_w") else int(value) if value == int(value) else None


def field_value(name: str, text: str) -> object:
    """The value of a field of a GPU or of its function by nvidia-smi's words; None for none that it can have."""
    if name in _FLAGS:
        return _SWITCHED.get(text.strip().lower())
    if name in _NAMES["bounds"]:
        number = to_float if name.endswith("_w") else to_int
        return bounded(name, number(text.strip().removeprefix("P")))
    return reading(text)


_BETWEEN_WORDS = regex(r"[^a-z0-9]+")


def as_tag(label: str) -> str:
    """A label of the text as an element of the XML is called: `Tx Throughput` is `tx_throughput`."""
    return _BETWEEN_WORDS.sub("_", label.lower()).strip("_")


def event_reasons(mask: int) -> tuple[str, ...]:
    """The names of the set bits; a bit without a name is given as its number."""
    return tuple(
        EVENT_REASONS.get(1 << bit, f"reason_{1 << bit:#x}") for bit in range(mask.bit_length()) if mask >> bit & 1
    )


UUID, LOST = (patterns("evidence/nvidia/lines", "words")[name] for name in ("uuid", "lost"))


def distinct_uuids(named: Iterable[tuple[int, str]]) -> dict[int, str]:
    """GPU UUIDs by index: whole ones that are not all zeros."""
    stripped = ((index, text.strip()) for index, text in named)
    return distinct((index, uuid) for index, uuid in stripped if UUID.fullmatch(uuid) and uuid.strip("GPU-0"))


def distinct(named: Iterable[tuple[int, str]]) -> dict[int, str]:
    """Names by index, "" for none: none of two for an index, and none that two indices claim, in whatever case."""
    pairs = [(index, name) for index, name in dict.fromkeys(named) if name]
    of_index, owners = Counter(index for index, _ in pairs), Counter(name.lower() for _, name in pairs)
    return {index: name for index, name in pairs if of_index[index] == owners[name.lower()] == 1}


def fill_lost(blob: Blob, draft: NodeDraft) -> bool:
    """Offer what the text says of GPUs that do not answer; whether it says so of any."""
    lost = False
    for number, line in blob.lines() if b"Unable to determine the device handle" in blob.data else ():
        match = LOST.search(line[:MAX_LINE])
        bus_id = normalise_bus_id(match[2]) if match is not None else None
        if match is not None and bus_id is not None:
            lost = True
            gpu = draft.gpu(index=int(match[1]) if match[1] else None, bus_id=bus_id)
            gpu.offer("lost", match[3], blob.origin(number, line))
    return lost
