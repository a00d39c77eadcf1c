"""Names that name a fault of a GPU, with a value that says whether it is there, in any tool's form.

    TOTAL_UNCORRECTABLE_COUNT: 4                        memory of a GPU
    gpu_hw_thermal_slowdown{gpu="3"} 1                  clocks
    clocks_event_reasons.active = 0x0000000000000040    clocks, by the driver's mask
    NVLink CRC error count: 12                          nothing: fewer than training at boot leaves

Lifetime totals, rows that were remapped and counters of other parts (disks, links of a network) have the same words and
are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from topodiag.evidence.nvidia.nvidia_words import event_reasons

MAX_NAME = 100
_SPLIT = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\W_]+")
_OTHER = re.compile(
    r"\b(?:fec|codewords?|blocks?|symbols?|pcie|aer|lanes?|sectors?|offline|disk|dimm|edac|host|limit"
    r"|threshold(?! exceeded)|max"
    r"|histogram|availability|lifetime|aggregate|total time"
    r"|corrected by|mode|enabled|supported|capable|sbe|single bit)\b"
)
"""Other parts with the same words, settings, and totals over the life of a card."""
_FLAGS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("gpu-clocks", re.compile(
        r"\bhw (?:(?:thermal|power brake) )?slowdown\b|\b(?:prochot|thermal) violation status\b"
        r"|\b(?:hw|hardware|thermal) (?:throttl\w{1,4}|slowdown)(?: active| status)?$")),
    ("gpu-memory", re.compile(
        r"\bremap(?:ping|ped|s)?(?: rows?)? (?:is )?(?:pending|fail(?:ed|ure)\w{0,2})\b"
        r"|\bsram threshold exceeded$"
            r"|\bretire(?:d|ment)(?: pages?)? pending\b|\bpending (?:page (?:retirement|blacklist)|row ?remap)")),
    ("fabric", re.compile(r"\broute unhealthy$")),
    ("gpu-lost", re.compile(r"\bgpus? (?:is |are )?(?:lost|missing|off(?: the)? bus)(?: count)?$")),
)  # fmt: skip
"""A flag that is set, or a count of one and more."""
_COUNTS: tuple[tuple[str, int, re.Pattern[str]], ...] = (
    ("gpu-memory", 1, re.compile(
        r"^(?!.*\b(?:remap\w{0,4}|rows?|retired)\b).*(?:\b(?:ecc|dram|sram|hbm|gpu|volatile|vram|umc|ras|cache|total)\b.*"
        r"\buncorrect(?:able|ed)\b|\buncorrect(?:able|ed)\b.*\b(?:ecc|dram|sram|hbm|volatile|vram)\b"
        r"|\b(?:ecc|volatile)\b.*\b(?:dbe|double bit)\b|\bdbe\b.*\bvol)")),
    ("nvlink-errors", 100, re.compile(r"\bnv ?link\b.*\breplay\b")),
    ("nvlink-errors", 10, re.compile(r"\bnv ?link\b.*\brecovery\b(?!.*\bsuccess)")),
    ("nvlink-errors", 10_000, re.compile(r"\bnv ?link\b.*\bcrc\b")),
    ("nvlink-errors", 1, re.compile(r"\bnv ?link\b.*\b(?:fatal|uncorrect(?:able|ed))\b")),
)  # fmt: skip
"""Counters, and the total from which one is told: NVLink's are those of `checks/node/nvlink_errors.py`."""
_MASK = re.compile(r"\bclocks? (?:event|throttle) reasons(?: active)?$|\bthrottle (?:reasons?|mask)$")
_HELD = {"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"}
_SET = frozenset({"active", "yes", "true", "on", "set"})
_CHEAP = re.compile(r"uncorrect|dbe\b|double.?bit|slowdown|throttl|violation_status"
                    r"|remap|retire|unhealthy|lost|missing|off.{0,5}bus"
                    r"|nv.?link|clocks?.{1,10}reasons", re.IGNORECASE)  # fmt: skip
_NUMBER = re.compile(r"(\d{1,15})(?:\.0{1,6})?\Z")
_FIELD = re.compile(
    r"\s{0,40}[>|*-]{0,3}\s{0,10}([A-Za-z][^:=|{}\n]{2,80}?)\s{0,40}[:=|]\s{0,10}([\w.]{1,24})\W{0,3}\Z"
)
_PAIR = re.compile(r"(?<![\w./-])([A-Za-z][\w.]{2,80}) {0,1}= {0,1}\"?([\w.]{1,24})(?=[\s,;\")]|\Z)")
_METRIC = re.compile(
    r"([A-Za-z_:][\w:]{2,120})(?:\{[^}\n]{0,1000}\})?\s{1,4}([\d.e+]{1,24})(?:\s{1,4}\d{9,14})?\s{0,4}\Z"
)


@dataclass(frozen=True, slots=True)
class Named:
    """A name and its value which together say a fault, in the words of `checks/reported.py`."""

    fault: str
    name: str
    value: str


def words_of_name(name: str) -> str:
    """A name as words in small letters: `clocks_event_reasons.hwSlowdown` is `clocks event reasons hw slowdown`."""
    return " ".join(_SPLIT.sub(" ", name[:MAX_NAME]).lower().split())


def fault_named(name: str) -> bool:
    """Whether a name is one of those whose value is judged."""
    words = words_of_name(name)
    patterns = [_MASK, *(pattern for _, pattern in _FLAGS), *(pattern for _, _, pattern in _COUNTS)]
    return any(pattern.search(words) for pattern in patterns) and _OTHER.search(words) is None


def fault_of_value(name: str, value: str) -> str:
    """The fault that a name with this value says; "" where it says none."""
    if _CHEAP.search(name) is None:
        return ""
    words = words_of_name(name)
    if _OTHER.search(words) is not None:
        return ""
    mask = _mask(value) if _MASK.search(words) else 0
    if mask:
        return "gpu-clocks" if _HELD.intersection(event_reasons(mask)) else ""
    number = _NUMBER.match(value)
    count = int(number[1]) if number is not None else 1 if value.lower() in _SET else -1
    if count == 1:
        flag = next((fault for fault, pattern in _FLAGS if pattern.search(words)), "")
        if flag:
            return flag
    pending = next((fault for fault, pattern in _FLAGS if fault != "gpu-clocks" and pattern.search(words)), "")
    if count > 1 and pending:
        return pending
    return next((fault for fault, least, pattern in _COUNTS if count >= least and pattern.search(words)), "")


def value_of(line: str) -> Named | None:
    """The first name on a line whose value says a fault: of a field, of pairs, of a metric."""
    if _CHEAP.search(line) is None:
        return None
    for name, value in _names(line):
        fault = fault_of_value(name, value)
        if fault:
            return Named(fault, name.strip(), value)
    return None


def _names(line: str) -> Iterator[tuple[str, str]]:
    field = _FIELD.match(line)
    if field is not None:
        yield field[1], field[2]
    for pair in _PAIR.finditer(line):
        yield pair[1], pair[2]
    metric = _METRIC.match(line)
    if metric is not None:
        yield metric[1], metric[2]


def _mask(value: str) -> int:
    """The driver's mask; 0 for what is no number."""
    digits = value.lower().removeprefix("0x")
    base = 16 if value.lower().startswith("0x") else 10
    try:
        return int(digits, base) if len(digits) <= 16 else 0
    except ValueError:
        return 0


__all__ = ["Named", "fault_named", "fault_of_value", "value_of", "words_of_name"]
