"""What a line of any tool says of a fault, by all ways of reading it: counts, rates, states of parts, failed checks."""

from __future__ import annotations

import re

from topodiag.evidence.host.part_states import MAX_LINE, Said, said_of
from topodiag.evidence.host.rates_apart import narrowed, of_lspci, slower_of
from topodiag.evidence.host.shortfalls import Short, short_of
from topodiag.evidence.host.verdict_lines import verdict_of

_CONDITION_AWAY = re.compile(r"\s{0,8}(?!\w{0,60}(?:Ready|Healthy|Available|OK)\b)[A-Z]\w{2,60}\s{1,60}False\s{1,60}\S")
"""A row of the conditions of a Kubernetes node whose fault is not there: `ReadonlyFilesystem  False  ...`."""


def told_of(line: str) -> Short | Said | None:
    """The part that a line says is at fault; None where it says nothing of the kind. Numbers say more than words."""
    if _CONDITION_AWAY.match(line) is not None:
        return None
    if of_lspci(line):
        return narrowed(line)
    return short_of(line[:MAX_LINE]) or slower_of(line) or said_of(line) or verdict_of(line)
