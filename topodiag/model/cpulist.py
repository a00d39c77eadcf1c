"""Linux cpu lists (`0-31,64-95`) and masks as sets of integers."""

from __future__ import annotations

from collections.abc import Iterable

MAX_CPU = 65536
"""Above the kernel's NR_CPUS of any shipping machine: a larger number in a list is a misread value."""


def parse_cpulist(text: str) -> frozenset[int] | None:
    """The members of a cpu list, or None when the text is not one. An empty text is an empty set."""
    members: set[int] = set()
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        first, dash, last = part.partition("-")
        if not first.isascii() or not first.isdigit() or (dash and not (last.isascii() and last.isdigit())):
            return None
        low, high = int(first), int(last) if dash else int(first)
        if low > high or high >= MAX_CPU:
            return None
        members.update(range(low, high + 1))
    return frozenset(members)


def format_cpulist(members: Iterable[int]) -> str:
    """The shortest cpu list with these members: `{0, 1, 2, 8}` is `0-2,8`."""
    runs: list[list[int]] = []
    for cpu in sorted(set(members)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
