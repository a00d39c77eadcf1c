"""Labels, orders and paths as a report spells them: a device by its name, a path by its file's name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

Names = Mapping[str, str]


def spell(label: str, names: Names) -> str:
    return names.get(label, label)


def spell_order(order: Iterable[str], names: Names) -> str:
    """A channel from NET over the GPUs to NET; GPUs in a row without their word: `mlx5_0 GPU 0 1 2 3 mlx5_0`."""
    words: list[str] = []
    for label in order:
        word = spell(label, names)
        number = re.fullmatch(r"GPU([0-9]{1,4})", word)
        if number is None:
            words.append(word.removeprefix("GPU/"))
        elif words and (words[-1].isdigit()):
            words.append(number[1])
        else:
            words += ["GPU", number[1]]
    return " ".join(words)
