"""What a process says before a communicator begins: its name, and that it waits for the others of the parent.

NCCL prints `Comm config Comm name set to ..` when the application calls (src/init.cc, parseCommConfig, 2.27 and later),
and `Init START` when the communicator is being made (ncclCommInitRankFunc). A communicator of its own gets there at
once. One that is split from another first gathers the colours of all ranks of its parent (commGetSplitInfo): a process
that printed the former and never the latter waits there for a rank that did not call.

Algorithm and protocol that ranks of one communicator took differently for one operation size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from topodiag.evidence.nccl_log.rebuild.frame import Frame, Ints, in_pieces
from topodiag.evidence.nccl_log.rebuild.members import Member, Processes
from topodiag.model.job import ChoiceApart, Message

MOST_ROWS = 1 << 20
"""Rows of choices that are compared: beyond those every rank of a large job printed many sizes, and one that chose
otherwise would have hung it at the first."""
MOST_KEPT = 16


def choices_apart(
    frame: Frame, processes: Processes, member: Ints, comm_of: Ints, own: Sequence[int]
) -> tuple[ChoiceApart, ...]:
    """What the processes `own` of a job chose differently, each for the same communicator, collective and size.
    `member` is by row of choices, -1 where the log does not say which: where it says it of none, all are taken for
    one communicator's."""
    rows = frame["choice"]
    if not 0 < len(rows) <= MOST_ROWS:
        return ()
    process = processes.of(rows["thread"], rows["offset"])
    comm = comm_of[member]
    place = {number: at for at, number in enumerate(own)}
    words = [rows.words[name] for name in ("func", "algo", "proto")]
    kept = np.flatnonzero(np.isin(process, own))
    if (comm[kept] >= 0).any():
        kept = kept[comm[kept] >= 0]
    func, algo, proto, size = (rows[name] for name in ("func", "algo", "proto", "bytes"))
    taken: dict[tuple[int, int, int], dict[int, dict[tuple[int, ...], int]]] = defaultdict(lambda: defaultdict(dict))
    for row, number, of, amount, who, *choice in in_pieces(kept, comm, func, size, process, algo, proto):
        taken[number, of, amount][who].setdefault(tuple(choice), row)
    aparts = []
    for (_, of, amount), by_process in taken.items():
        groups: dict[tuple[int, ...], dict[int, int]] = defaultdict(dict)
        for who, chosen in by_process.items():
            if len(chosen) == 1:  # a rank that chose several ways for one size tells nothing of its peers
                [(way, row)] = chosen.items()
                groups[way][who] = row
        if len(groups) > 1:
            ranks = {
                f"{words[1][by]}/{words[2][over]}": tuple(sorted(place[who] for who in rows_of))
                for (by, over), rows_of in groups.items()
            }
            origins = tuple(frame.origin(rows, next(iter(rows_of.values()))) for rows_of in groups.values())
            aparts.append(ChoiceApart(words[0][of], amount, ranks, origins))
    return tuple(aparts[:MOST_KEPT])


NAMED = "Comm name set to "
NO_COLOUR = "no color"


class _Call(NamedTuple):
    """One line of a call that makes a communicator; several equal ones are known by the place of the first."""

    offset: int
    message: Message

    @property
    def name(self) -> str:
        return self.message.text.partition(NAMED)[2].strip()


def find_openings(
    frame: Frame, processes: Processes, members: Sequence[Member]
) -> tuple[Mapping[int, str], Mapping[int, Message]]:
    """The names of communicators by member; by process what it said last before a communicator that did not begin."""
    begun: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, member in enumerate(members):
        if member.started:
            begun[member.process].append((member.offset, number))
    names: dict[int, str] = {}
    messages: dict[int, Message] = {}
    for process, calls in _calls(frame, processes).items():
        own = sorted(begun.get(process, []))
        names |= _names([call for call in calls if call.name], own)
        last = calls[-1]
        named = sum(call.message.count for call in calls if call.name)
        after = last.message.count == 1 and own and last.offset > own[-1][0]
        if own and (after or named > len(own)):
            messages[process] = last.message
    return names, messages


def _calls(frame: Frame, processes: Processes) -> dict[int, list[_Call]]:
    """By process, in order of print."""
    rows = frame["text"]
    texts, kinds = rows.words["text"], rows.words["kind"]
    chosen = np.flatnonzero(rows.is_word("kind", "config", NO_COLOUR))
    thread, offset = rows["thread"], rows["offset"]
    process = processes.of(thread[chosen], offset[chosen])
    columns = (rows[name] for name in ("thread", "offset", "count", "line", "kind", "text"))
    calls: dict[int, list[_Call]] = defaultdict(list)
    for owner, (row, _, at, count, _, kind, text) in zip(process.tolist(), in_pieces(chosen, *columns), strict=True):
        if owner >= 0 and (kinds[kind] == NO_COLOUR or NAMED in texts[text]):
            calls[owner].append(_Call(at, Message(kinds[kind], texts[text], frame.origin(rows, row), count)))
    return {owner: sorted(calls, key=lambda call: call.offset) for owner, calls in calls.items()}


def _names(calls: Sequence[_Call], begun: Sequence[tuple[int, int]]) -> dict[int, str]:
    """By member, the name that was given before it began; none where calls of several names wait, as in a group, whose
    communicators begin in any order."""
    names: dict[int, str] = {}
    waiting: list[str] = []
    before = -1
    for offset, member in begun:
        waiting += [call.name for call in calls if before < call.offset < offset]
        before = offset
        if len(set(waiting)) > 1:
            waiting = [""] * len(waiting)
        if waiting and waiting[-1]:
            names[member] = waiting[-1]
        waiting = waiting[:-1]
    return names
