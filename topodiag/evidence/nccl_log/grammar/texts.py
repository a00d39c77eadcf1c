"""Lines that are kept as text, and noise, by how they begin and by what they hold: the tables of `texts.toml`."""

from __future__ import annotations

from collections import defaultdict

from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.words.own_data import own_data

NOISE = "noise"
"""The kind of a line that is known and says nothing."""

_TABLES = own_data("evidence/nccl_log/grammar/texts")
STARTS: tuple[tuple[str, str], ...] = tuple(
    (start, kind) for kind, starts in _TABLES["starts"].items() for start in starts
)
_PATTERNS = tuple((row["has"], compiled(row["pattern"]), row["kind"]) for row in _TABLES["pattern"])

_WIDTH = min(len(start) for start, _ in STARTS)
_BY_START: dict[str, list[tuple[str, str]]] = defaultdict(list)
for _start, _kind in sorted(STARTS, key=lambda pair: -len(pair[0])):
    _BY_START[_start[:_WIDTH]].append((_start, _kind))

# Numbers that differ on every line and say nothing: queue pairs, keys, file descriptors.
_REWRITTEN = frozenset({"qp", "ib note"})
_QP_NOISE = compiled(r"\b(qpn|qp_num)[ =]\d{1,12}|\b(?:pd|comm|context)=0x[0-9a-f]{1,16}| (?:fifo|ctsFifo)[RL]key=.*$")


def kind_of(message: str) -> str | None:
    """The kind of a line, NOISE, or None where nothing knows it."""
    for start, kind in _BY_START.get(message[:_WIDTH], ()):
        if message.startswith(start):
            return kind
    return next((kind for word, pattern, kind in _PATTERNS if word in message and pattern.search(message)), None)


def kind_of_start(start: str) -> str | None:
    """The kind of all messages that begin so and are kept as printed, None where more of the message decides."""
    for known, kind in _BY_START.get(start[:_WIDTH], ()):
        if start.startswith(known):
            return None if kind in _REWRITTEN else kind
        if known.startswith(start):
            return None
    return None


def shown(kind: str, message: str) -> str:
    """The text as it is kept: equal facts give equal texts."""
    if kind in _REWRITTEN:
        return _QP_NOISE.sub(lambda match: f"{match[1]} #" if match[1] else "", message).rstrip()
    return message
