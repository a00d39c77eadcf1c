"""NCCL_ALGO and NCCL_PROTO: which algorithms and protocols a user allows for which collective.

One list for all collectives, unknown words ignored; with LISTS_PER_COLLECTIVE `func:list;func:list`, and NCCL refuses
to start on a word it does not know. `^` excludes. Source: parseList in src/graph/tuning.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from topodiag.lazy import dataclass
from topodiag.model.nccl_versions import Feature, has
from topodiag.nccl.settings import Settings
from topodiag.nccl.tuning import tuning_constants as tc
from topodiag.nccl.tuning.tuning_constants import COLLECTIVES, PROTOCOLS

_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Allowed:
    """By (collective, word): allowed or excluded by a list; what no list speaks of is absent. `fault` is NCCL's
    complaint about a list, in its words: it does not start then. `fault_in` is the variable."""

    algorithms: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    protocols: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    fault: str = ""
    fault_in: str = ""


class _RefusedError(ValueError):
    pass


def allowed(settings: Settings, minor: int) -> Allowed:
    """What NCCL_ALGO and NCCL_PROTO allow under NCCL 2.`minor`. Never raises."""
    lists = _lists if has(minor, Feature.LISTS_PER_COLLECTIVE) else _list
    algorithms: dict[tuple[str, str], bool] = {}
    protocols: dict[tuple[str, str], bool] = {}
    # In NCCL's order, which tells the complaint it makes where both are wrong.
    for name, text, words, table in (
        ("NCCL_PROTO", settings.proto, PROTOCOLS, protocols),
        ("NCCL_ALGO", settings.algo, tc.algorithms(minor), algorithms),
    ):
        if text is None:
            continue
        try:
            table.update(lists(text, words))
        except _RefusedError as refused:
            return Allowed(fault=str(refused), fault_in=name)
    return Allowed(algorithms, protocols)


def _list(text: str, words: tuple[str, ...]) -> dict[tuple[str, str], bool]:
    """One list for all collectives. An empty one allows nothing."""
    excluded = text.startswith("^")
    named = {_spelling(word, words) for word in text.removeprefix("^").split(",")}
    return {(collective, word): (word in named) != excluded for collective in COLLECTIVES for word in words}


def _lists(text: str, words: tuple[str, ...]) -> dict[tuple[str, str], bool]:
    """`list;func:list;...`. Raises _RefusedError with NCCL's words."""
    table: dict[tuple[str, str], bool] = {}
    # strtok passes over empty parts, and a string that begins with one has no first entry in NCCL's eyes.
    leading = text.startswith(";")
    for number, entry in enumerate(part for part in text.split(";") if part):
        pieces = [piece for piece in entry.split(":") if piece]
        prefix, listed = (pieces[0], pieces[1]) if len(pieces) > 1 else ("", pieces[0] if pieces else "")
        if not prefix and (number or leading):
            raise _RefusedError(f'All entries except the first must have a prefix: "{text[:_SHOWN]}"')
        excluded = listed.startswith("^")
        named: set[str] = set()
        for word in listed.removeprefix("^").split(","):
            if word and not (is_known := _spelling(word, words)):
                raise _RefusedError(f'Unrecognized element token "{word[:_SHOWN]}" when parsing "{text[:_SHOWN]}"')
            if word:
                named.add(is_known)
        over = [_spelling(prefix, COLLECTIVES)] if prefix else list(COLLECTIVES)
        if over == [""]:
            raise _RefusedError(f'Unrecognized prefix token "{prefix[:_SHOWN]}" when parsing "{text[:_SHOWN]}"')
        table.update({(collective, word): (word in named) != excluded for collective in over for word in words})
    return table


def _spelling(word: str, words: tuple[str, ...]) -> str:
    """The word as NCCL spells it, "" for one that it does not know. Compared as strcasecmp does: ASCII only."""
    if not word.isascii():
        return ""
    return next((known for known in words if known.lower() == word.lower()), "")
