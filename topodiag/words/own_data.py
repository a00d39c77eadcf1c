"""What topodiag knows and says that is no code: the data files of the package."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parents[1]


@cache
def own_data(name: str) -> dict[str, Any]:
    """The tables of `topodiag/NAME.toml`, such as `verdict/rules`; the head of the file says what its keys mean."""
    return tomllib.loads(own_text(f"{name}.toml"))


def own_text(name: str) -> str:
    """The text of the package's file `topodiag/NAME`, such as `draw/draw.css`."""
    return (_PACKAGE / name).read_text(encoding="utf-8")
