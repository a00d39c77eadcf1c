"""How messages name ranks and hosts: the first few, and how many more; and which of them lines name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from topodiag.words.fold import few, runs, spell_run


class OfHost(Protocol):
    """An event, a process, a stack: its host, "" unknown."""

    @property
    def host(self) -> str: ...


class OfRank(Protocol):
    """An event, a stack: its rank, -1 unknown."""

    @property
    def rank(self) -> int: ...


def hosts_in(events: Iterable[OfHost]) -> list[str]:
    """The hosts that are named, in the order of the events."""
    return list(dict.fromkeys(event.host for event in events if event.host))


def ranks_in(events: Iterable[OfRank]) -> list[int]:
    """The ranks that are named, in order."""
    return sorted({event.rank for event in events if event.rank >= 0})


def spell_ranks(ranks: Iterable[int]) -> str:
    """World ranks with their runs folded: `0-7, 9`; at most MAX_NAMED runs."""
    return few([spell_run(low, high) for low, high in runs(ranks)])


def hosts_word(hosts: Sequence[str]) -> str:
    """`n0, n1, n2 and 61 more nodes`; `a node` where its name was taken off the log."""
    hosts = [host or "a node" for host in hosts]
    return few(hosts, 3) + ("" if len(hosts) <= 3 else " node" if len(hosts) == 4 else " nodes")


def rank_word(ranks: Sequence[int]) -> str:
    if not ranks:
        return "members of unknown rank"
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {spell_ranks(ranks)}"


def quoted(text: str, most: int = 160) -> str:
    """A line of the log on one line, at most `most` characters: cut between words, so that no number is left half."""
    words = " ".join(text.split())
    if len(words) <= most:
        return words
    end = words.rfind(" ", most // 2, most - 3)
    return f"{words[: end if end > 0 else most - 4]} ..."
