"""Ranks that printed one line less than all others when their text ended."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

from topodiag.evidence.signatures.wrappers import unwrap

_MOST_SHARE = 0.25
"""Share of the ranks above which nobody is behind: the text ended while they printed."""


def ranks_behind(lines: Mapping[str, int]) -> tuple[tuple[int, ...], str]:
    """The ranks whose last line all others printed above theirs, and the line that these lack; () and "" without such.
    `lines` are the last lines of a text with the numbers on which they stand last; a launcher's label says whose each
    is. What a rank printed never before says nothing of it: it may be of the others alone."""
    own: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for text, number in lines.items():
        bare = unwrap(text)
        if bare.rank >= 0 and not bare.text.startswith(("slurmstepd:", "srun:")):
            own[bare.rank][re.sub(rf"\b{bare.rank}\b", "<rank>", bare.text, count=1)] = number
    last = {rank: max(numbers, key=numbers.__getitem__) for rank, numbers in own.items()}
    newest = max(Counter(last.values()).items(), key=lambda pair: pair[1], default=("", 0))[0]
    late = sorted(rank for rank, words in last.items() if words != newest)
    before = {last[rank] for rank in late}
    if len(before) != 1 or len(late) > _MOST_SHARE * len(last) or not all(before < own[rank].keys() for rank in own):
        return (), ""
    # Where lines come in rounds: who printed the newest one in this round is ahead, not behind.
    began = min(own[rank][words] for rank in own.keys() - late for words in before)
    is_late = all(own[rank].get(newest, 0) < began for rank in late)
    # Steps differ in their numbers alone.
    shapes = [{re.sub(r"\d+", "0", words) for words in own[rank]} for rank in late]
    is_theirs = re.sub(r"\d+", "0", newest) in set.intersection(*shapes)
    return (tuple(late), newest.replace("<rank>", str(late[0]))) if is_late and is_theirs else ((), "")
