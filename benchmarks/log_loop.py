"""The plain way to read a NCCL log: `for line in file`, one compiled regex, and dicts that keep what each record says.

What a person would write who wants the fields that `topodiag` keeps: who prints (host, pid, tid, device), the
communicator that the thread named last, both ends of connections, their direction, transport, NIC and proxy, rings,
trees, operations, inits, and all other texts; equal ones counted. It reads bytes and merges as it goes, as that is the
fastest plain way. It knows the wording of `make_log.py` only.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

_RECORD = re.compile(
    rb"(?P<host>[\w.-]+):(?P<pid>\d+):(?P<tid>\d+) \[(?P<dev>-?\d+)\] (?:(?P<place>\S+:\d+) )?NCCL (?P<level>\w+) (?:"
    rb"Channel (?P<channel>\d+)(?:/(?P<conn>\d+))? : (?P<rank>\d+)\[(?P<at>\w+)\] -> (?P<peer>\d+)\[(?P<there>\w+)\] "
    rb"(?:\[(?P<way>send|receive)\] )?via (?:(?P<net>NET/[^/]+)/(?P<nic>\d+)(?:\((?P<proxy>\d+)\))?)?(?P<via>.*)"
    rb"|Ring (?P<ring>\d+) : (?P<before>\d+) -> (?P<own>\d+) -> (?P<after>\d+)"
    rb"|Trees (?P<trees>.*)"
    rb"|(?P<op>\w+): opCount (?P<number>\w+) sendbuff \S+ recvbuff \S+ count (?P<elements>\d+) datatype (?P<dtype>\d+) "
    rb"op (?P<redop>\d+) root (?P<root>-?\d+) comm (?P<by>\w+)"
    rb"|(?:(?P<func>\w+) )?comm (?P<comm>0x\w+) (?P<said>.*)"
    rb"|(?P<text>.*))"
)
_TREE = re.compile(rb"\[(\d+)\] (-?\d+)/(-?\d+)/(-?\d+)->(-?\d+)->(-?\d+)")

Key = tuple[object, ...]


@dataclass
class Read:
    """What was kept. Of connections, rings and trees: channels as bits, lines, first line; of operations: how many,
    first and last opCount."""

    records: int = 0
    lines: int = 0
    connections: dict[Key, list[int]] = field(default_factory=dict)
    rings: dict[Key, list[int]] = field(default_factory=dict)
    trees: dict[Key, list[int]] = field(default_factory=dict)
    operations: dict[Key, list[int]] = field(default_factory=dict)
    inits: list[Key] = field(default_factory=list)
    texts: Counter[Key] = field(default_factory=Counter)


def _count(rows: dict[Key, list[int]], key: Key, channel: int, line: int) -> None:
    row = rows.get(key)
    if row is None:
        rows[key] = [1 << channel, 1, line]
    else:
        row[0] |= 1 << channel
        row[1] += 1


def read(path: Path, size: int) -> Read:
    """The first `size` bytes."""
    kept = Read()
    busy: dict[Key, bytes] = {}  # the communicator that a thread named last
    done = 0
    with path.open("rb") as stream:
        for line in stream:
            if done >= size:
                break
            done += len(line)
            kept.lines += 1
            matched = _RECORD.search(line)
            if matched is None:
                continue
            kept.records += 1
            said = matched.groups()
            thread = (said[0], int(said[1]), int(said[2]), int(said[3]))
            kind = matched.lastgroup
            if kind == "via":
                channel, conn, rank, at, peer, there, way, net, nic, proxy, via = said[6:17]
                key = (thread, busy.get(thread), int(rank), at, int(peer), there, conn, way, net,
                       nic and int(nic), proxy and int(proxy), via)  # fmt: skip
                _count(kept.connections, key, int(channel), kept.lines)
            elif kind == "after":
                ring, before, own, after = (int(each) for each in said[17:21])
                _count(kept.rings, (thread, busy.get(thread), before, own, after), ring, kept.lines)
            elif kind == "trees":
                for channel, *places in _TREE.findall(matched["trees"]):
                    key = (thread, busy.get(thread), *(int(each) for each in places))
                    _count(kept.trees, key, int(channel), kept.lines)
            elif kind == "by":
                op, number, elements, dtype, redop, root, comm = said[22:29]
                busy[thread] = comm
                key = (thread, comm, op, int(elements), int(dtype), int(redop), int(root))
                row = kept.operations.setdefault(key, [0, int(number, 16), 0])
                row[0] += 1
                row[2] = int(number, 16)
            elif kind == "said":
                busy[thread] = matched["comm"]
                words = matched["said"].split()
                fields = dict(zip(words[::2], words[1::2], strict=False))
                kept.inits.append((thread, matched["func"], matched["comm"], fields))
            else:
                kept.texts[thread, busy.get(thread), said[5], said[4], matched["text"]] += 1
    return kept
