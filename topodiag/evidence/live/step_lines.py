"""One line of a training log: the number of a step, and how long it took or how fast it was.

Written for what any such line must hold, a step and a duration or a rate, each beside its name and unit; not for one
program's line. Seen in Megatron-LM, NeMo, DeepSpeed, torchtitan, MaxText, Composer, timm, mmengine, nanoGPT, tqdm.

The parts of a step that a line times: data, forward, backward, communication, optimizer. Written for what such a line
must hold, a name with a word for a part and a duration: `data 0.137 s`, `fwd_time: 74 ms`, `backward+allreduce=0.2`.
Trainings of one's own spell them in any way, with and without a sign between name and value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from math import fsum, prod

from topodiag.lazy import dataclass, regex
from topodiag.model.steps import PartOf, StepPart
from topodiag.words.own_data import own_data, patterns
from topodiag.words.units import read_number

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


MAX_LINE = 4000
WORDS = ("step", "iter", "it/s", "s/it", "batch", "poch", "num_updates", "runningavg", "train")
"""A line without one of these, in whatever case, tells of no step."""
_ENDS = ("|", ",", ";", "[", "]", "{", "}", "\t", "  ", "%", ": ", "= ")
"""Where the name of a value begins."""
_LEAST = {"s": 1e-5}
"""Below it a time is of a part of a step: the launch of one kernel takes about as long."""
_LONGEST = 60
"""Characters of a name."""
_STEPS = tuple((number["word"], regex(number["pattern"])) for number in _WORDS["number"])
_PARTS, _DURATIONS, _COUNTED, _BARE, _BATCH, _LENGTH = (
    frozenset(_WORDS["step"][name]) for name in ("parts", "durations", "counted", "bare", "batch", "length")
)
_RATES: Mapping[str, frozenset[str]] = {unit: frozenset(names) for unit, names in _WORDS["rates"].items()}
_LIKE = patterns("evidence/live/steps", "line")
BAR = _LIKE["bar"]
ELAPSED = "elapsed"
"""The name of the seconds that a bar shows since it began, among the values of its line."""


@dataclass(slots=True)
class StepLine:
    """What a line says: `values` by unit, those that count for more first. `number` is None where the step is that of
    the line above. `total` 0 where none is said; `bar` names a bar with what it counts, "" where there is none."""

    number: int | None
    total: int
    values: dict[str, float] = field(default_factory=dict)
    work: float | None = None
    bar: str = ""
    at: int = -1
    """Where the words of the step begin, -1 where they are of another line."""
    waited: float | None = None
    """Seconds of the step that waited for data, where the line says them."""
    opens: bool = False
    """Whether it is the first step of an epoch."""
    parts: tuple[StepPart, ...] = ()


def read_line(text: str) -> StepLine | None:
    """What a line says of a step; None where it says nothing of one."""
    line = text[:MAX_LINE].replace('"', "").replace("'", "")
    step = _step_of(line)
    if step is None:
        return _bar(line) or _unnumbered(line)
    number, total, at, end = step
    if _LIKE["not_steps"].search(line[max(0, at - 40) : at]):
        return None
    timed = timed_parts(line, end)
    values, work = _values(line, end, timed)
    if not values and (bar := _bar(line)) is not None:
        return bar
    parts = in_seconds(timed, values.get("s"))
    waited = _waited(timed, values.get("s"))
    in_epoch = _LIKE["in_epoch"].search(line) if waited is not None else None
    opens = in_epoch is not None and int(in_epoch[2]) == 0
    return StepLine(number, total, values, work, at=at, waited=waited, opens=opens, parts=parts)


def _step_of(line: str) -> tuple[int, int, int, int] | None:
    """Number, total, and where the words that say them begin and end."""
    low = line.lower()
    if ("poch" in low or "train" in low) and (match := _LIKE["in_epoch"].search(line)) is not None:
        steps = int(match[3])
        return int(match[1]) * steps + int(match[2]), 0, match.start(), match.end()
    for word, pattern in _STEPS:
        if word in low and (match := pattern.search(line)) is not None:
            return int(match["step"]), int(match.groupdict().get("total") or 0), match.start(), match.end()
    return None


def _bar(line: str) -> StepLine | None:
    *_, match = (None, *BAR.finditer(line))  # the last one is the newest
    if match is None or _LIKE["not_steps"].search(match[1] or ""):
        return None
    value = number_of(match["rate"])
    if not value:
        return None
    name = (match[1] or "").strip()[:40]
    elapsed = clock_s(match["hours"], match["minutes"], match["seconds"])
    values = {"s": value if match["unit"] == "s/it" else 1 / value, ELAPSED: elapsed}
    return StepLine(int(match[2]), int(match[3]), values, bar=f"{name}: {match[3]}" if name else match[3])


def clock_s(hours: str | bytes | None, minutes: str | bytes, seconds: str | bytes) -> float:
    """The seconds of a bar's clock."""
    return 3600.0 * int(hours or 0) + 60 * int(minutes) + int(seconds)


def _unnumbered(line: str) -> StepLine | None:
    """The figures of a step without its number: below the head of one, or beside the time that it waited for data."""
    if _LIKE["under_head"].match(line) is not None:
        return StepLine(None, 0, _values(line)[0])
    if _LIKE["may_wait"].search(line) is None or _LIKE["not_trained"].search(line) is not None:
        return None
    values, work = _values(line)
    waited = _waited(timed_parts(line), values["s"]) if "s" in values else None
    return StepLine(None, 0, values, work, waited=waited) if waited is not None else None


def _waited(timed: TimedParts, took: float | None) -> float | None:
    """`data_time: 0.52` of mmengine and detectron2, `Data 0.52 (0.17)` of PyTorch's ImageNet example: in seconds where
    no other part stands beside it. `data` alone may be anything: it counts where it is no more than the step."""
    several = len(timed.parts) > 1
    for part in in_seconds(timed, took) if several else timed.parts:
        is_word = not several and part.name.isalpha() and part.name[1:].islower()
        if part.of is PartOf.DATA and (not is_word or took is None or part.seconds <= took):
            return part.seconds
    return None


def _values(line: str, after: int = 0, timed: TimedParts | None = None) -> tuple[dict[str, float], float | None]:
    """Durations and rates by unit, and the work of a step where the line says it."""
    values: dict[str, float] = {}
    weak: dict[str, float] = {}
    work: dict[str, float] = {}
    last = 0
    default = _default_unit(line)
    for pair in _LIKE["pair"].finditer(line):
        key = line[max(last, pair.start() - _LONGEST) : pair.start()]
        last = pair.end()
        key = key[max((key.rfind(end) + len(end) for end in _ENDS if end in key), default=0) :]
        value = number_of(pair[1])
        if not value:
            continue
        name = _name(key)
        if name in _BATCH or name in _LENGTH:
            work["batch" if name in _BATCH else "length"] = value
        elif (seconds := _seconds(name, value, pair[2] or default, key)) is not None:
            (weak if name in _BARE else values).setdefault("s", seconds)
        elif (unit := _rate(name, key)) is not None:
            values.setdefault("s" if unit == "steps/s" else unit, 1 / value if unit == "steps/s" else value)
    if "s" not in values:
        _add_time(line, after, timed, values, weak)
    for unit, value in weak.items():
        values.setdefault(unit, value)
    shown = {unit: value for unit, value in values.items() if _LEAST.get(unit, 1e-9) < value < 1e15}
    return shown, prod(work.values()) if work else None


def _default_unit(line: str) -> str | None:
    """The unit of a time without one: "", or None where the line says how far a simulation came, so that its `time` and
    `dt` are of what is simulated."""
    words = line.lower().replace("=", " ").replace(":", " ").split()
    simulated = "time step" in " ".join(words) or ("dt" in words and not {"t", "time"}.isdisjoint(words))
    return None if simulated else ""


def _add_time(
    line: str, after: int, timed: TimedParts | None, values: dict[str, float], weak: dict[str, float]
) -> None:
    """The time of a step that no name with a sign behind it gives: by its name alone, its unit, or its parts."""
    if timed is None:
        _loose_values(line[after:], weak)
    elif timed.whole is not None:
        values["s"] = timed.whole
    else:
        _loose_values(without(line, timed)[after:], weak)
        if not values and not weak and (whole := sum_of(timed)) is not None:
            values["s"] = whole


def _loose_values(line: str, values: dict[str, float]) -> None:
    """Values whose unit alone says what they are: `123.45 ms`, `took 1.2 s`, `1.2 it/s`."""
    for loose in _LIKE["loose"].finditer(line):
        value, unit = number_of(loose[2]), loose[3].lower()
        if not value:
            continue
        if unit in _SECONDS:
            if loose[1] or loose[4]:
                values.setdefault("s", value * _SECONDS[unit])
        elif (of := unit.partition("/")[0]) in _SECONDS:
            values.setdefault("s", value * _SECONDS[of])
        elif (rate := _rate(unit, unit)) is not None:
            values.setdefault("s" if rate == "steps/s" else rate, 1 / value if rate == "steps/s" else value)
    if (meter := _LIKE["meter"].search(line)) is not None and number_of(meter[1]):
        values.setdefault("s", number_of(meter[1]))


def _name(key: str) -> str:
    """The last words of a name, without unit: `Train throughput/batches_per_sec` is `batches per sec`."""
    key = key.replace("(t)", " time")  # OpenCLIP
    bare = (_LIKE["inside"].sub("", key) if "(" in key else key).strip().lower().replace("_", " ").replace("-", " ")
    if "/" in bare and not bare.split("/", 1)[1].startswith(("s", "g", "d")):
        bare = bare.rsplit("/", 1)[1]
    return " ".join(bare.split()[-6:]).removeprefix("train throughput/")


def _seconds(name: str, value: float, unit: str | None, key: str) -> float | None:
    """The seconds that a name and a value mean; None where they are no time of a step, or have no unit at all."""
    words = set(re.split(r"[ /.]", name))
    if words & _PARTS or not words & _DURATIONS or not (words & _COUNTED or name in _BARE):
        return None
    inside = _LIKE["unit"].search(key)
    scale = next(word for word in inside.groups() if word) if inside else unit
    return value * _SECONDS.get(scale, 1.0) if scale is not None else None


def _rate(name: str, key: str) -> str | None:
    if set(name.split()) & _PARTS or "runningavg" in name:
        return None
    for unit, names in _RATES.items():
        if name in names or (name == "throughput" and unit == "TFLOP/s" and "TFLOP" in key):
            return unit
    return None


def timed_batches(line: str) -> float | None:
    """The seconds that Megatron-LM's timers give for making a batch, of the rank that takes longest; they stand below
    the line of the step."""
    match = _LIKE["timers"].search(line, 0, MAX_LINE) if "batch-generator" in line else None
    return float(match[1] or match[2]) / 1e3 if match is not None else None


def number_of(text: str) -> float:
    """The number without its commas; 0 for one that is no number a step can have."""
    value = read_number(text.replace(",", "")) or 0.0
    return value if 0 < value < 1e15 else 0.0
