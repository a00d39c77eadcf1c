"""Linux cpu lists (`0-31,64-95`) and masks as sets of integers."""

from __future__ import annotations

from topodiag.lazy import regex

MAX_CPU = 65536
"""Above the kernel's NR_CPUS of any shipping machine: a larger number in a list is a misread value."""

_GROUP = regex(r"(?:0x)?[0-9a-fA-F]{0,16}")
_RUN = regex(r"0{0,8}([0-9]{1,5})(?:-0{0,8}([0-9]{1,5}))?")


def parse_cpulist(text: str) -> frozenset[int] | None:
    """The members of a cpu list, or None when the text is not one. An empty text is an empty set."""
    runs: set[tuple[int, int]] = set()
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = _RUN.fullmatch(part)
        if match is None or not part.isascii():
            return None
        low = int(match[1])
        high = int(match[2]) if match[2] else low
        if low > high or high >= MAX_CPU:
            return None
        runs.add((low, high))
    members: set[int] = set()
    reached = -1
    for low, high in sorted(runs):  # each cpu is added once, however often a hostile list repeats it
        members.update(range(max(low, reached + 1), high + 1))
        reached = max(reached, high)
    return frozenset(members)


def parse_cpumask(text: str) -> frozenset[int] | None:
    """The members of a mask (`0000ffff,0000ffff`, `0x1,,0xff`): 32-bit groups in hexadecimal, the highest first, empty
    ones zero. None when the text is not one."""
    groups = text.strip().split(",")
    if not any(groups) or len(groups) > MAX_CPU // 32 or not all(map(_GROUP.fullmatch, groups)):
        return None
    digits = [group.removeprefix("0x") for group in groups]
    bits = int("".join(group.zfill(8)[-8:] for group in digits) if len(digits) > 1 else digits[0] or "0", 16)
    return frozenset(place for place, digit in enumerate(bin(bits)[:1:-1]) if digit == "1")
