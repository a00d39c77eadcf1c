"""Whether the rows of a device matrix agree with each other. One that contradicts itself was torn or edited: which half
of it is right nobody can say, so none of it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_PCI_PATHS = frozenset({"PIX", "PXB", "PHB", "NODE", "SYS", "SOC", "PSB"})
"""Words for a path over PCIe, which is the same in both directions."""


def contradiction(rows: Sequence[tuple[str, Mapping[str, str]]]) -> str:
    """The first pair of devices of which two rows, as (label, words by column), say different paths; "" for none.
    Counts of NVLinks may differ between the two directions: that is a fault of the machine, and not of the matrix."""
    words = {(label, column): word for label, cells in rows for column, word in cells.items()}
    for (label, column), word in words.items():
        back = words.get((column, label))
        if back is None or back == word or not {word, back} & _PCI_PATHS or "U" in {word, back}:
            continue
        return f"{label} to {column} is {word}, and {column} to {label} is {back}"
    return ""


def placed(fields: Sequence[str], labels: Sequence[str]) -> bool:
    """Whether a row, label first, has the cell of its own device where the header has its column."""
    own = labels.index(fields[0]) + 1 if fields and fields[0] in labels else 0
    return 0 < own < len(fields) and fields[own] == "X"
