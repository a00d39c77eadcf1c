"""Rows of nvidia-smi's table with a value that no check asks about, and that a sound GPU does not show.

    | ERR!   31C    P0              61W / 400W |      3MiB / 81559MiB |      0%      Default |  the fan does not answer
    | N/A    31C    P0              61W / 400W |      3MiB / 40536MiB |      0%      Default |  its siblings have 80 GB

None of them says what is wrong, if anything is: it is quoted, and leaves open whether the machine is well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import mode

from topodiag.lazy import dataclass, regex
from topodiag.words.units import spell_bytes

LEAST_SHARE = 0.9
"""Part of the siblings' memory below which it is another one."""
PAIR = 2
"""GPUs of which none is usual: the better one is what both should be."""
HOT_C = 90
"""Degrees at which GPUs of all kinds slow down, or are about to."""
_NO_READING = regex(r"ERR!|\bUnknown Error\b")
_CELLS = regex(r"(?:^|\s)([0-9]{1,3})C\s[^|]{0,80}\|[^|/]{1,30}/ {0,12}([0-9]{1,8})MiB")
_CLOSED = regex(r"\bProhibited\b")


@dataclass(frozen=True, slots=True)
class Row:
    """The second row of a GPU of the table."""

    index: int
    name: str
    line: int
    text: str


def odd_rows(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """What is odd, in words, and the row that shows it."""
    groups: dict[str, list[tuple[Row, int]]] = defaultdict(list)
    for row in rows:
        if _NO_READING.search(row.text) is not None:
            yield f"GPU{row.index}: a reading of it is an error", row
        if _CLOSED.search(row.text) is not None:
            yield f"GPU{row.index}: its compute mode lets no program use it", row
        cells = _CELLS.search(row.text)
        if cells is None:
            continue
        if int(cells[1]) >= HOT_C:
            yield f"GPU{row.index}: {cells[1]} C", row
        if row.name:
            groups[row.name].append((row, int(cells[2])))
    for group in groups.values():
        sizes = [size for _, size in group]
        usual = mode(sizes) if len(sizes) > PAIR else max(sizes)
        for row, size in group:
            if 0 < size < LEAST_SHARE * usual:
                own, others = spell_bytes(size << 20), spell_bytes(usual << 20)
                yield f"GPU{row.index}: its memory is {own}, and others of its kind have {others}", row


__all__ = ["Row", "odd_rows"]
