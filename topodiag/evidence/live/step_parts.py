"""The parts of a step that a line of a training's log times: data, forward, backward, communication, optimizer.

Written for what such a line must hold, a name with a word for a part and a duration: `data 0.137 s`, `fwd_time: 74 ms`,
`backward+allreduce=0.2`. Trainings of one's own spell them in any way, with and without a sign between name and value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from math import fsum

from topodiag.lazy import dataclass
from topodiag.model.steps import PartOf, StepPart
from topodiag.words.own_data import own_data, patterns

_WORDS = own_data("evidence/live/steps")
_SECONDS: Mapping[str, float] = _WORDS["seconds"]
_TIMED = patterns("evidence/live/steps", "timed")["timed"]
_KINDS = tuple((PartOf[name], frozenset(words)) for name, words in _WORDS["part"].items())
_BESIDE, _COUNTED, _DURATIONS = (frozenset(_WORDS["of-parts"][name]) for name in ("beside", "counted", "durations"))
_OF_STEP = _COUNTED | _DURATIONS | frozenset(_WORDS["of-parts"]["step"])
_BEYOND = 20.0
"""Times the step beyond which its parts are not in seconds; they may overlap, and take a little more than all of it."""


@dataclass(frozen=True, slots=True)
class TimedParts:
    """The parts of a line, and those of them without a unit; the seconds of the whole step, where a name says that it
    is that; where the parts stand."""

    parts: tuple[StepPart, ...] = ()
    bare: frozenset[str] = frozenset()
    whole: float | None = None
    spans: tuple[tuple[int, int], ...] = ()


def timed_parts(line: str, after: int = 0) -> TimedParts:
    """What a line times of a step behind the place `after`."""
    step_parts: dict[str, StepPart] = {}
    bare: set[str] = set()
    spans = []
    whole = None
    for match in _TIMED.finditer(line, after):
        words = [part for part in re.split(r"[ _/+&-]", match[1].lower()) if part]
        unit = match[2] or match[3] or match[5] or ("ms" if words[-1] == "ms" else "")
        if not unit and "." not in match[4]:
            continue  # seconds have a point or a unit: counts have neither
        seconds = float(match[4]) * _SECONDS.get(unit, 1.0)
        if set(words) <= _OF_STEP and set(words) & _COUNTED and set(words) & _DURATIONS:
            whole = whole or seconds or None
            continue
        part = _part(match[1], seconds)
        if part is None:
            continue
        spans.append(match.span())
        if part.name not in step_parts:
            step_parts[part.name] = part
            bare |= set() if unit else {part.name}
    return TimedParts(tuple(step_parts.values()), frozenset(bare), whole, tuple(spans))


def _part(name: str, seconds: float) -> StepPart | None:
    """The part that the last words of a name are, as they stand; None where they name none."""
    own: list[str] = []
    for piece in reversed(re.findall(r"[A-Za-z0-9]+", name.lower())):
        if piece not in _BESIDE and not any(piece in words for _, words in _KINDS):
            break
        own.append(piece)
    of = next((of for of, words in _KINDS if words & set(own)), None)
    if of is None:
        return None
    at = len(name)
    for piece in own:
        at = name.lower().rindex(piece, 0, at)
    return StepPart(name[at:], of, seconds)


def in_seconds(timed: TimedParts, step_s: float | None) -> tuple[StepPart, ...]:
    """The parts; those without a unit are in milliseconds where they would take many times the step else, and are left
    out where they would then be longer still."""
    if step_s is None or not timed.bare:
        return timed.parts
    seconds = fsum(part.seconds for part in timed.parts if part.name in timed.bare)
    if seconds <= _BEYOND * step_s:
        return timed.parts
    kept = seconds * 1e-3 <= 2 * step_s
    return tuple(
        replace(part, seconds=part.seconds * 1e-3) if part.name in timed.bare else part
        for part in timed.parts
        if kept or part.name not in timed.bare
    )


def without(line: str, timed: TimedParts) -> str:
    """The line without its parts, whose durations are not those of the step."""
    for begin, end in timed.spans:
        line = line[:begin] + "," * (end - begin) + line[end:]
    return line


def sum_of(timed: TimedParts) -> float | None:
    """The seconds of the step by its parts, where they are more than one and the model's work is among them."""
    works = {part.of for part in timed.parts} & {PartOf.FORWARD, PartOf.BACKWARD, PartOf.COMPUTE, PartOf.COMMUNICATION}
    if len(timed.parts) < 2 or not works:
        return None
    return fsum(part.seconds for part in timed.parts) or None
