"""Amounts as people write them: sizes and times beside bandwidths in GB/s (1e9 bytes per second), plurals, and many
names, numbers or things in few words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TypeVar

_LONG = (("days", "h", 86_400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1))
"""A unit of time and the one below, with their seconds."""
_STEPS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def spell_bytes(count: int) -> str:
    """`8 B`, `64 KiB`, `1.5 GiB`: powers of two, as nccl-tests steps through them."""
    for unit, size in _STEPS:
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} B"


def spell_us(time_us: float) -> str:
    """`12.3 us`, `4.56 ms`, `1.2 s`."""
    if time_us < 1000:
        return f"{time_us:.3g} us"
    return f"{time_us / 1000:.3g} ms" if time_us < 1e6 else f"{time_us / 1e6:.3g} s"


def spell_time(time_us: float) -> str:
    """`12.34 us`, `6.28 ms`, `1.32 s`: two decimals, so that figures of one table line up."""
    if time_us < 100:
        return f"{time_us:.2f} us"
    return f"{time_us / 1e3:.2f} ms" if time_us < 1e6 else f"{time_us / 1e6:.2f} s"


def spell_s(seconds: float) -> str:
    """A time as long as it is: `0 s`, `12.3 us`, `350 ms`, `12.3 s`, `4 min 5 s`, `3 h 10 min`, `5 days 2 h`."""
    if seconds < 59.95:
        return f"{seconds:.3g} s" if seconds >= 0.9995 or seconds <= 0 else spell_us(seconds * 1e6)
    whole = round(seconds)
    unit, below, size, small = next(step for step in _LONG if whole >= step[2])
    rest = whole % size // small
    many = whole // size
    return f"{many} {'day' if unit == 'days' and many == 1 else unit}" + (f" {rest} {below}" if rest else "")


def in_s(seconds: float) -> str:
    """`600 s`, `0.5 s`: a time as a limit or a log gives it, in seconds however long, to be found there again."""
    return f"{number(seconds)} s"


def signed_s(seconds: float) -> str:
    """`+4 min 5 s`, `-12 ms`, `+0 s`: how far a clock is ahead."""
    return f"{'-' if seconds < 0 else '+'}{spell_s(abs(seconds))}"


def in_ms(time_us: float) -> str:
    """Microseconds as `1,234.5 ms`: parts of a step, which a reader adds and compares."""
    return f"{time_us / 1000:,.1f} ms"


def in_us(time_us: float) -> str:
    """`14.0 us`: a term of a derivation, to one decimal, however long."""
    return f"{time_us:.1f} us"


def in_mhz(clock: float) -> str:
    """`1980 MHz`: the clock of a GPU."""
    return f"{number(clock)} MHz"


def in_w(power: float) -> str:
    """`700 W`: watts, whole."""
    return f"{power:.0f} W"


def spell_gbs(gbs: float) -> str:
    """GB/s to what matters: `370.8`, `45`, `0.12`."""
    return f"{gbs:.3g}" if abs(gbs) < 1 else f"{gbs:.1f}".removesuffix(".0")


def in_gbs(gbs: float, *, exact: bool = False) -> str:
    """`370.8 GB/s`, `45 GB/s`: a bandwidth with its unit. Every sentence spells it so: one fault reads the same.
    `exact` keeps six digits, for a derivation that the reader multiplies again."""
    return f"{gbs:g} GB/s" if exact and gbs < 1000 else f"{spell_gbs(gbs)} GB/s"


def in_gbps(gbps: float) -> str:
    """`400 Gb/s`: what a port or a link signals, in gigabits per second."""
    return f"{number(gbps)} Gb/s"


def percent(share: float, *, signed: bool = False) -> str:
    """A share (1 is all) as `12.5 %`, `34 %`, `99.2 %`, `-7 %`: with a decimal where a whole number says too little,
    below 20 % and just below all."""
    value = 100 * share
    decimal = 0.05 <= abs(value) < 20 or 99 <= abs(value) < 99.95
    text = f"{value:{'+' if signed else ''}.{1 if decimal else 0}f}".removesuffix(".0")
    return f"{'0' if text in ('-0', '+0') else text} %"


def read_number(text: str) -> float | None:
    """The number that a text is; None for another one, and for one that is not finite."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def number(value: float) -> str:
    """A quantity as people write it: at most one decimal, none when whole; up to three below one."""
    if not math.isfinite(value):
        return "?"
    if abs(value) >= 1e15:
        return f"{value:.3g}"
    digits = 1 if abs(value) >= 1 else 3
    rounded = f"{value:.{digits}f}"
    return rounded.rstrip("0").rstrip(".") if "." in rounded else rounded


K = TypeVar("K")
T = TypeVar("T")

MAX_NAMED = 6
"""Names that a sentence lists before it counts the rest."""
MAX_LABELS = 12
"""Kinds of labels that a cell lists."""


def grouped(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    """Items by their keys, of pairs of a key and an item; keys and items in the order in which they come."""
    groups: dict[K, list[T]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return groups


def most_of(values: Iterable[T], default: T) -> T:
    """The value that comes most often, of several the first; `default` without any."""
    ((value, _),) = Counter(values).most_common(1) or [(default, 0)]
    return value


def neighbours(items: Iterable[T], key: Callable[[T], object]) -> list[list[T]]:
    """Items in their order, those beside each other that have one key together."""
    return [list(run) for _, run in groupby(items, key=key)]


def plural(count: int, one: str, many: str = "") -> str:
    """`1 link`, `6 links`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def numbered(one: str, numbers: Iterable[int]) -> str:
    """`link 3`, `links 1-3`."""
    named = set(numbers)
    return f"{one}{'s' if len(named) > 1 else ''} {fold_numbers(named)}"


def few(words: Sequence[str], most: int = MAX_NAMED, glue: str = ", ") -> str:
    """The words, or the first of them and how many more: `a, b and 3 more`, with another glue `a; b; and 3 more`."""
    rest = len(words) - most
    if rest <= 0:
        return glue.join(words)
    return f"{glue.join(words[:most])}{'' if glue == ', ' else glue.rstrip()} and {rest} more"


def first_of(words: Sequence[str], most: int) -> str:
    """The words, or the first of them: `a, b, ...`."""
    return ", ".join(words[:most]) + (", ..." if len(words) > most else "")


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """(first, last) of each run of neighbours, ascending."""
    pairs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if pairs and pairs[-1][1] + 1 == number:
            pairs[-1] = (pairs[-1][0], number)
        else:
            pairs.append((number, number))
    return pairs


def spell_run(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def fold_numbers(numbers: Iterable[int]) -> str:
    """The shortest list with these members, as Linux writes lists of CPUs: `{0, 1, 2, 8}` is `0-2,8`."""
    return ",".join(spell_run(low, high) for low, high in runs(numbers))


def fold_runs(labels: Sequence[str]) -> str:
    """Labels in their order, neighbours folded: GPU0, GPU1, GPU2, GPU5 are `GPU0-2, GPU5`."""
    rows: list[tuple[str, int, int]] = []
    for label in labels:
        stem, digits = _parted(label)
        if not digits or len(digits) > 6:
            rows.append((label, -1, -1))
        elif rows and rows[-1][0] == stem and rows[-1][2] + 1 == int(digits):
            rows[-1] = (stem, rows[-1][1], int(digits))
        else:
            rows.append((stem, int(digits), int(digits)))
    return ", ".join(stem if low < 0 else stem + spell_run(low, high) for stem, low, high in rows)


def fold_labels(labels: Sequence[str], most: int = MAX_LABELS) -> str:
    """Labels of one kind together: `GPU0`, `mlx5_0`, `GPU1`, `GPU5` are `GPU0-1,5, mlx5_0`; of very many kinds the
    first, and how many labels there are."""
    numbers: dict[str, list[int]] = {}
    for label in labels:
        stem, digits = _parted(label)
        plain = 0 < len(digits) < 5 and digits == str(int(digits)) and ":" not in stem
        numbers.setdefault(stem if plain else label, []).extend([int(digits)] if plain else [])
    folded = [stem + fold_numbers(members) for stem, members in numbers.items()]
    return ", ".join(folded) if len(folded) <= most else f"{', '.join(folded[:most])} … ({len(labels)} in all)"


def _parted(label: str) -> tuple[str, str]:
    """What stands before the digits at the end, and these digits."""
    stem = label.rstrip("0123456789")
    return stem, label[len(stem) :]


def fold_hosts(hosts: Sequence[str]) -> str:
    """Many host names as one node set (`gpu-[001-064]`); names that are none stand as they are."""
    return _folded(tuple(dict.fromkeys(hosts)))


def short_hosts(hosts: Sequence[str], room: int) -> str:
    """The same in at most about `room` characters: of a long set the beginning, which ends with a whole name."""
    folded = fold_hosts(hosts)
    if len(folded) <= room:
        return folded
    begin = folded[: max(room - 2, 1)]
    begin = begin[: begin.rfind(",")] if "," in begin else begin
    return f"{begin},…]" if begin.count("[") > begin.count("]") else f"{begin}, …"


@lru_cache(maxsize=32)
def _folded(distinct: tuple[str, ...]) -> str:
    """The node set of distinct names: a page names the same thousands several times."""
    plain = (host.replace("-", "").replace(".", "").replace("_", "") for host in distinct)
    if len(distinct) > 1 and all(label.isascii() and label.isalnum() for label in plain):
        from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException  # noqa: PLC0415 - slow to load

        try:
            return str(NodeSet.fromlist(distinct, resolver=RESOLVER_NOGROUP))
        except NodeSetException:
            pass
    return ", ".join(distinct)


def short_bus(bus_id: str | None) -> str:
    """A PCI bus id without a domain of zeros, as people write it; "" for none."""
    return (bus_id or "").removeprefix("0000:")
