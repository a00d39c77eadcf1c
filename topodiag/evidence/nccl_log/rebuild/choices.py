"""Algorithm and protocol that ranks of one communicator took differently for one operation size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from topodiag.evidence.nccl_log.rebuild.frame import Frame, Ints
from topodiag.evidence.nccl_log.rebuild.members import Processes
from topodiag.model.job import ChoiceApart

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
    if not 0 < rows.size <= MOST_ROWS:
        return ()
    process = processes.of(rows.read("thread"), rows.read("offset"))
    comm = np.where(member >= 0, comm_of[member], -1) if comm_of.size else member
    place = {number: at for at, number in enumerate(own)}
    words = [rows.words[name] for name in ("func", "algo", "proto")]
    kept = np.flatnonzero(np.isin(process, own))
    if (comm[kept] >= 0).any():
        kept = kept[comm[kept] >= 0]
    func, algo, proto, size = (rows.read(name) for name in ("func", "algo", "proto", "bytes"))
    taken: dict[tuple[int, int, int], dict[int, dict[tuple[int, int], int]]] = defaultdict(lambda: defaultdict(dict))
    for row in kept.tolist():
        chosen = taken[int(comm[row]), int(func[row]), int(size[row])][int(process[row])]
        chosen.setdefault((int(algo[row]), int(proto[row])), row)
    made = []
    for (_, of, amount), by_process in taken.items():
        if len({frozenset(chosen) for chosen in by_process.values()}) < 2:
            continue
        groups: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        for number, chosen in by_process.items():
            if len(chosen) == 1:  # a rank that chose several ways for one size tells nothing of its peers
                [(choice, row)] = chosen.items()
                groups[choice][number] = row
        if len(groups) > 1:
            made.append(
                ChoiceApart(
                    words[0][of],
                    amount,
                    {
                        f"{words[1][by]}/{words[2][over]}": tuple(sorted(place[number] for number in rows_of))
                        for (by, over), rows_of in groups.items()
                    },
                    tuple(frame.origin(rows, next(iter(rows_of.values()))) for rows_of in groups.values()),
                )
            )
    return tuple(made[:MOST_KEPT])
