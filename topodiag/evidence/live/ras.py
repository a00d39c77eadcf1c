"""Files with answers of NCCL's RAS."""

from __future__ import annotations

from collections.abc import Iterable

from topodiag.evidence.live.ras_json import answers_in_json
from topodiag.evidence.live.ras_text import answers_in_text
from topodiag.model.ras import RasAnswer

MAX_BYTES = 128 << 20
"""JSON of 16384 ranks in 8 communicators each is 60 MB."""


def read_ras(text: str, source: str) -> tuple[RasAnswer, ...]:
    """The answers in a text: status as text or JSON, events of a monitor; several one behind the other, with or without
    the lines `OK` of the protocol, and lines of other things between them."""
    return (*answers_in_text(text, source), *answers_in_json(text, source))


def in_order(answers: Iterable[RasAnswer]) -> tuple[RasAnswer, ...]:
    """The answers by time; where one has none, by their names and places, in which scripts count upwards. Two that say
    the same of the same second are one snapshot."""
    several = list(answers)
    if all(each.time is not None for each in several):
        several.sort(key=lambda each: (each.time or 0.0, each.source))
    made: list[RasAnswer] = []
    seen: set[tuple[object, ...]] = set()
    for each in several:
        key = (each.time, each.communicators, each.silent, each.dead, each.events)
        if each.time is not None and _fingerprint(key) in seen:
            continue
        seen.add(_fingerprint(key))
        made.append(each)
    return tuple(made)


def _fingerprint(key: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(repr(part) for part in key)
