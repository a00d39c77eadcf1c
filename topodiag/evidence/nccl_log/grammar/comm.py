"""Life of communicators, timings of their inits, and operations.

SOURCE: NCCL src/init.cc (`comm %p rank ..`, `Init timings ..`), src/enqueue.cc (`%s: opCount %lx ..`).
"""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar.numbers import bus, compiled, i32, i64, seconds, u64_hex

Rows = list[tuple[str, dict[str, object]]]

_END = compiled(r" ?- (Init START|Init COMPLETE|COMPLETE|(?:Destroy|Abort|Revoke|Finalize) (?:START|COMPLETE))\b")
_EVENTS = {"Init START": "start", "Init COMPLETE": "complete", "COMPLETE": "complete"}
_POINTER = compiled(r"0x[0-9a-fA-F]{1,16}|0x\.{3}|\(nil\)|[0-9a-fA-F]{6,16}")
_OP = compiled(
    r"(\w{1,40}): opCount ([0-9a-f]{1,16}) sendbuff \S+ recvbuff \S+ (?:acc \S+ )?"
    r"count (\d{1,19}) datatype (-?\d{1,10}) op (-?\d{1,20}) root (-?\d{1,10}) comm (\S+)(?: \[nranks=(\d{1,9})\])?"
)
_TIMINGS = compiled(r"Init timings(?: - (\w+))?: rank (\d{1,9}) nranks (\d{1,9}) total ([\d.]+) \((.*?)\)")
_PHASES = ("kernels", "alloc", "bootstrap", "allgathers", "topo", "graphs", "connections", "rest")
UNORDERED = frozenset({"Send", "Recv"})
"""Operations that do not advance opCount."""


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
    nranks = i32(values.get("nranks", values.get("nRanks")))
    rank = i32(values.get("rank"))
    if nranks < 1 or rank < 0:
        return None
    if end:
        event = _EVENTS.get(end[1]) or end[1].split()[0].lower()
    elif "nNodes" in values:
        event = "member"
    elif at == 0 and (len(words) == 6 or (len(words) == 10 and words[6::2] == ["cudaDev", "nvmlDev"])):
        event = "start"  # 2.3 prints no more, and the first of 2.4 no more than that
    else:
        return None
    columns: dict[str, object] = {
        "ctx": u64_hex(words[at + 1]),
        "event": event,
        "func": words[at - 1] if at and words[at - 1].startswith("nccl") else "",
        "rank": rank,
        "nranks": nranks,
        "cuda_dev": i32(values.get("cudaDev")),
        "nvml_dev": i32(values.get("nvmlDev")),
        "bus_id": bus(values.get("busId")),
        "comm_id": u64_hex(values.get("commId")),
        "parent": u64_hex(values.get("parent")),
        "split": i32(values.get("splitCount", values.get("childCount"))),
        "color": i64(values.get("color")),
        "key": i64(values.get("key")),
        "nodes": i32(values.get("nNodes")),
        "local_ranks": i32(values.get("localRanks")),
        "local_rank": i32(values.get("localRank")),
        "mnnvl": int(values["MNNVL"]) if values.get("MNNVL") in ("0", "1") else -1,
    }
    return [("init", columns)]


def timings(message: str) -> Rows | None:
    matched = _TIMINGS.match(message)
    if not matched:
        return None
    phases = dict(part.strip().split(" ", 1) for part in matched[5].split(",") if " " in part.strip())
    columns: dict[str, object] = {
        "func": matched[1] or "",
        "rank": i32(matched[2]),
        "nranks": i32(matched[3]),
        "total": seconds(matched[4]),
    }
    columns.update({phase: seconds(phases.get(phase)) for phase in _PHASES})
    return [("timing", columns)]


def operation(message: str) -> Rows | None:
    """`AllReduce: opCount 1f sendbuff 0x.. recvbuff 0x.. count 8 datatype 7 op 0 root 0 comm 0x.. [nranks=8] ..`."""
    matched = _OP.match(message)
    if not matched:
        return None
    func, count, elements, dtype, redop, root, comm, nranks = matched.groups()
    columns: dict[str, object] = {
        "ctx": u64_hex(comm),
        "func": func,
        "op_count": -1 if func in UNORDERED else min(int(count, 16), (1 << 63) - 1),
        "elements": max(i64(elements), 0),
        "dtype": i32(dtype),
        "redop": i32(redop),
        "root": i32(root),
        "nranks": i32(nranks),
    }
    return [("op", columns)]
