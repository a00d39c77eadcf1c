"""How messages name ranks and hosts: the first few, and how many more. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MAX_NAMED = 6
"""Hosts or groups that a message names before it counts the rest."""


def spell_ranks(ranks: Iterable[int]) -> str:
    """World ranks with their runs folded: `0-7, 9`; at most MAX_NAMED runs."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and runs[-1][1] + 1 == rank:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return few([str(low) if low == high else f"{low}-{high}" for low, high in runs])


def few(words: Sequence[str], most: int = MAX_NAMED) -> str:
    """The words, or the first of them and how many more."""
    rest = len(words) - most
    return ", ".join(words) if rest <= 0 else f"{', '.join(words[:most])} and {rest} more"


def hosts_word(hosts: Sequence[str]) -> str:
    """`n0, n1, n2 and 61 more nodes`."""
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
