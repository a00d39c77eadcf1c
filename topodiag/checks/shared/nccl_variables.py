"""The variables NCCL knows, from the data files beside this module; decides nothing."""

from __future__ import annotations

import difflib
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from topodiag.lazy import dataclass


@dataclass(frozen=True, slots=True)
class RenamedVariable:
    """What became of an old variable: the one to use now (empty when there is none), and the story."""

    now: str
    what: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that NCCL reads. `since` and `until` are releases as `2.18.1`, `until` "" while it is read; `by_name`
    where only its name says what it does."""

    name: str
    since: str
    until: str
    default: str
    what: str
    by_name: bool


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("nccl_variables.toml").read_text(encoding="utf-8"))


@cache
def _parameters() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("nccl_parameters.toml").read_text(encoding="utf-8"))


@cache
def known() -> frozenset[str]:
    """Every name that some known version of NCCL reads (`nccl_versions.VARIABLES_SINCE` is the first), or once read."""
    return frozenset(_parameters()) | frozenset(_data()["old"])


def variable(name: str) -> Variable | None:
    """What NCCL does with a variable, None for a name that it never read."""
    held = _parameters().get(name)
    if held is None:
        return None
    return Variable(
        name, held["since"], held.get("until", ""), held["default"], held["what"], held.get("by_name", False)
    )


def renamed(name: str) -> RenamedVariable | None:
    entry = _data()["old"].get(name)
    return RenamedVariable(entry["now"], entry["what"]) if entry else None


def is_foreign(name: str) -> bool:
    """Whether a plug-in or an image, not NCCL, is meant by this name."""
    return name in _data()["descriptive"] or name.startswith(tuple(_data()["foreign_prefixes"]))


def nearest(name: str) -> str | None:
    """The known name that this one looks like a slip of: one or two characters off, or None."""
    close = difflib.get_close_matches(name[:80], sorted(known()), n=1, cutoff=0.9)
    return close[0] if close else None
