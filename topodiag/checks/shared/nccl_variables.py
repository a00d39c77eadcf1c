"""The variables NCCL knows, from the data files beside this module; decides nothing."""

from __future__ import annotations

from functools import cache

from topodiag.lazy import dataclass
from topodiag.words.own_data import own_data


@dataclass(frozen=True, slots=True)
class RenamedVariable:
    """What became of an old variable: the one to use now (empty when there is none), and the story."""

    now: str
    what: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that NCCL, RCCL or the runtime below it (`library`) reads. `since` and `until` are releases as
    `2.18.1`, `until` "" while it is read; `by_name` where only its name says what it does."""

    name: str
    default: str
    what: str
    since: str = ""
    until: str = ""
    by_name: bool = False
    library: str = "NCCL"


@cache
def known() -> frozenset[str]:
    """Every name that some known version of NCCL reads (`nccl_versions.VARIABLES_SINCE` is the first), or once read."""
    return frozenset((*own_data("checks/shared/nccl_parameters"), *own_data("checks/shared/nccl_variables")["old"]))


def variable(name: str) -> Variable | None:
    """What NCCL, RCCL or its runtime does with a variable, None for a name that none of them ever read."""
    held = own_data("checks/shared/nccl_parameters").get(name) or own_data("checks/shared/rccl_parameters").get(name)
    return Variable(name, **held) if held is not None else None


def renamed(name: str) -> RenamedVariable | None:
    entry = own_data("checks/shared/nccl_variables")["old"].get(name)
    return RenamedVariable(**entry) if entry else None


def is_foreign(name: str) -> bool:
    """Whether a plug-in or an image, not NCCL, is meant by this name."""
    names = own_data("checks/shared/nccl_variables")
    return name in names["descriptive"] or name.startswith(tuple(names["foreign_prefixes"]))


def nearest(name: str) -> str | None:
    """The known name that this one looks like a slip of: one or two characters off, or None."""
    import difflib  # noqa: PLC0415 - on a name that none of them ever read

    close = difflib.get_close_matches(name[:80], sorted(known()), n=1, cutoff=0.9)
    return close[0] if close else None
