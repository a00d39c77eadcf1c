"""What checks know and say that is no code: the TOML files beside them."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

_CHECKS = Path(__file__).parents[1]


@cache
def data(name: str) -> dict[str, Any]:
    """The tables of `checks/NAME.toml`, such as `shared/reports`; the head of the file says what its keys mean."""
    return tomllib.loads((_CHECKS / f"{name}.toml").read_text(encoding="utf-8"))
