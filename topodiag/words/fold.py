"""Many names, numbers or things in few words: plurals, runs, node sets, the first few and how many more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TypeVar

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
