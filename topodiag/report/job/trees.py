"""`--trees`: the tree of each channel, each parent with its children; equal channels stand on one line."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.model.job import Communicator, Job
from topodiag.report.job.words import name_of, spell_ranks
from topodiag.report.text import Page
from topodiag.words.fold import fold_numbers, grouped

COMMS_SHOWN = 6
LINES_SHOWN = 8


def draw_trees(page: Page, job: Job) -> None:
    """The trees of the communicators that have any, as ranks of the communicator."""
    with_trees = [communicator for communicator in job.communicators if communicator.trees]
    if not with_trees:
        page.add("  ", ("no tree is in the logs: NCCL_DEBUG_SUBSYS lacked INIT", "unknown"))
        return
    for comm in page.listed(with_trees, COMMS_SHOWN, "communicator"):
        page.add("  ", (name_of(comm) or comm.label, "strong"), (f"  ranks {spell_ranks(comm.ranks)}", "dim"))
        _draw(page, comm)


def _draw(page: Page, communicator: Communicator) -> None:
    alike = grouped((pairs, channel) for channel, pairs in sorted(communicator.trees.items()))
    for pairs, channels in page.listed(list(alike.items()), LINES_SHOWN, "tree", indent="    "):
        page.add(page.text("    ", (f"ch {fold_numbers(channels)}", "dim"), "  "), ", ".join(_families(pairs)))


def _families(pairs: Sequence[tuple[int, int]]) -> list[str]:
    """`0 to 1`, `1 to 2 and 3`: each parent with its children, from the root on."""
    below = grouped((parent, rank) for rank, parent in pairs)
    roots = sorted(set(below) - {rank for rank, _ in pairs})
    order, seen = [*roots], set(roots)
    for parent in order:
        fresh = [child for child in sorted(below.get(parent, [])) if child not in seen]
        seen.update(fresh)
        order += fresh
    rest = sorted(set(below) - seen)
    return [
        f"{parent} to {' and '.join(map(str, sorted(below[parent])))}" for parent in (*order, *rest) if parent in below
    ]
