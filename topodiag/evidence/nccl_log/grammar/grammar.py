"""What one message of NCCL says, as rows of the tables of facts.py.

SOURCE of the formats: NCCL, the files named in the modules that this one sends messages to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from topodiag.evidence.nccl_log.grammar import comm as grammar_comm
from topodiag.evidence.nccl_log.grammar import paths as grammar_paths
from topodiag.evidence.nccl_log.grammar.lines import Rows, row_of
from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.evidence.nccl_log.grammar.texts import NOISE, kind_of, kind_of_start, shown
from topodiag.words.own_data import patterns

START = 16
"""Characters that `kind_by_start` judges by."""

_PRINTED = patterns("evidence/nccl_log/grammar/system_print", "row", re.ASCII)
_OF_FILE = compiled(
    r"([\w./+-]{1,200}\.(?:cc|cu|h|hpp|cpp|c):\d{1,7})(?: \([^)]{0,200}\))? "
    r"(?:(-> -?\d{1,10})|(Cuda failure|.*failed))?"
)


def _print(message: str) -> Rows | None:
    return [("print", {"text": message})] if _PRINTED["any"].match(message) else None


def _collnet(message: str) -> Rows | None:
    """A connection to the switch; 2.6 to 2.8 also tell of handshakes, `CollNet [recv] : rank ..`."""
    if message.startswith("CollNet ["):
        return [("text", {"kind": "collnet", "text": message})]
    return grammar_paths.connection(message)


_channel_counts = partial(row_of, "channels")

_BY_WORD: dict[str, Callable[[str], Rows | None]] = {
    "Channel": grammar_paths.channel,
    "Ring": grammar_paths.ring,
    "CollNet": _collnet,
    "Coll": _collnet,
    "Tree": partial(row_of, "tree"),
    "Trees": grammar_paths.trees,
    "Init": partial(row_of, "timing"),
    "comm": grammar_comm.communicator,
    "[Rank": grammar_comm.communicator,
}


def parse(level: str, message: str) -> Rows | None:
    """Rows as (table, columns); [] for known noise, None for what nothing understands.

    Columns are those of the table without place and count. `ctx` is among them where the line names the communicator
    itself (`init`, `op`), `op_count` where an operation has one. Place, label and times of an event are its record's.
    ATTN, of 2.32 and later, is a notice and never an error: what nothing understands of it is noise.
    """
    if level in ("WARN", "ABORT"):
        return [("event", {"level": "WARN", "text": message})]
    if level == "CALL":
        return []
    rows = _information(message)
    return [] if rows is None and level in ("TRACE", "ATTN") else rows


def _information(message: str) -> Rows | None:
    word = message.partition(" ")[0]
    reader = _BY_WORD.get(word)
    if reader is not None:
        rows = reader(message)
        return _retries(message, word) if rows is None and word in ("comm", "Init") else rows
    for reader in _readers(word):
        rows = reader(message)
        if rows is not None:
            return rows
    return _retries(message, word)


def _readers(word: str) -> Iterator[Callable[[str], Rows | None]]:
    """Who may know a message whose first word this is."""
    if word.endswith(":"):
        yield from (grammar_comm.operation, grammar_paths.choice)
    elif word.startswith("comm:"):
        yield _channel_counts
    elif word.startswith("ncclComm"):
        yield grammar_comm.communicator
    elif word.isdecimal():
        yield from (_channel_counts, grammar_paths.choice)
    yield _print


def kind_by_start(start: str) -> str | None:
    """The kind of all messages that begin with these START characters and are kept as they are, NOISE, or None where
    the beginning does not decide. Spares messages that differ in numbers only from being read one by one."""
    word, blank, _ = start.partition(" ")
    if not blank or not word or word in _BY_WORD or word.endswith(":") or word.startswith("ncclComm"):
        return None
    if word.isdecimal() or _PRINTED["begin"].match(start):
        return None
    return kind_of_start(start)


def _retries(message: str, word: str) -> Rows | None:
    if not message.strip():
        return []
    kind = kind_of(message)
    if kind is not None:
        return [] if kind == NOISE else [("text", {"kind": kind, "text": shown(kind, message)})]
    if ":" in word:
        of_file = _OF_FILE.match(message)
        if of_file and of_file[2]:
            return [("event", {"level": "UNWIND", "place": of_file[1], "text": message})]
        if of_file:
            return [("text", {"kind": "retry", "text": message})] if of_file[3] else []
    return None
