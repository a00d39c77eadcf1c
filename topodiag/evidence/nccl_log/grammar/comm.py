"""Life of communicators, and operations.

SOURCE: NCCL src/init.cc (`comm %p rank ..`), src/enqueue.cc (`%s: opCount %lx ..`).
"""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar.lines import WORDS, Rows, reader, row_of
from topodiag.evidence.nccl_log.grammar.numbers import compiled, u64_hex

_END = compiled(r" ?- (Init START|Init COMPLETE|COMPLETE|(?:Destroy|Abort|Revoke|Finalize) (?:START|COMPLETE))\b")
_EVENTS = {"Init START": "start", "Init COMPLETE": "complete", "COMPLETE": "complete"}
_POINTER = compiled(r"0x[0-9a-fA-F]{1,16}|0x\.{3}|\(nil\)|[0-9a-fA-F]{6,16}")
UNORDERED = frozenset({"Send", "Recv"})
"""Operations that do not advance opCount."""
_READERS = [(column, words, reader("init", column)) for column, words in WORDS.items()]


def communicator(message: str) -> Rows | None:
    """`[Rank 2] ncclCommInitRank comm 0x.. rank 2 nranks 16 .. - Init START` and all older spellings."""
    end = _END.search(message)
    if end and end[1].startswith("Finalize"):
        return []  # Destroy follows
    words = (message[: end.start()] if end else message).split()
    if "comm" not in words[:4]:
        return None
    at = words.index("comm")
    if len(words) < at + 6 or words[at + 2] != "rank" or not _POINTER.fullmatch(words[at + 1]):
        return None
    values = dict(zip(words[at + 2 :: 2], words[at + 3 :: 2], strict=False))
    columns = {column: read(next(filter(None, map(values.get, names)), None)) for column, names, read in _READERS}
    if columns["nranks"] < 1 or columns["rank"] < 0:
        return None
    if end:
        event = _EVENTS.get(end[1]) or end[1].split()[0].lower()
    elif "nNodes" in values:
        event = "member"
    elif at == 0 and (len(words) == 6 or (len(words) == 10 and words[6::2] == ["cudaDev", "nvmlDev"])):
        event = "start"  # 2.3 prints no more, and the first of 2.4 no more than that
    else:
        return None
    func = words[at - 1] if at and words[at - 1].startswith("nccl") else ""
    return [("init", {"ctx": u64_hex(words[at + 1]), "event": event, "func": func, **columns})]


def operation(message: str) -> Rows | None:
    """`AllReduce: opCount 1f sendbuff 0x.. recvbuff 0x.. count 8 datatype 7 op 0 root 0 comm 0x.. [nranks=8] ..`."""
    rows = row_of("op", message)
    for _, columns in rows or ():
        columns["elements"] = max(columns["elements"], 0)
        if columns["func"] in UNORDERED:
            columns["op_count"] = -1
    return rows
