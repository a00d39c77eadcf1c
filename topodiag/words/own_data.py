"""What topodiag knows and says that is no code: the TOML files of the package."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parents[1]


@cache
def own_data(name: str) -> dict[str, Any]:
    """The tables of `topodiag/NAME.toml`, such as `verdict/rules`; the head of the file says what its keys mean."""
    return tomllib.loads((_PACKAGE / f"{name}.toml").read_text(encoding="utf-8"))
