"""`--rings`: the ring of each channel with what each hop goes over; equal channels stand on one line.

`--trees`: the tree of each channel, each parent with its children. Equal channels stand on one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.model.job import Communicator, Job
from topodiag.model.job_rings import UNSAID, hosts_along, is_net, rings_of
from topodiag.report.job.words import name_of, spell_ranks
from topodiag.report.text import Page, Part
from topodiag.words.units import fold_numbers, grouped

COMMS_SHOWN = 6
HOSTS_SHOWN = 8
LINES_SHOWN = 16
TREES_SHOWN = 8


def draw_rings(page: Page, job: Job) -> None:
    """The rings of the communicators that have any."""
    host_of = {rank.rank: rank.host for rank in job.ranks}
    with_rings = [comm for comm in job.communicators if comm.rings]
    for comm in _listed(page, with_rings, "no ring is in the logs: NCCL_DEBUG_SUBSYS lacked INIT and GRAPH"):
        _draw_comm(page, job, comm, host_of)


def _listed(page: Page, comms: Sequence[Communicator], lacking: str) -> Iterator[Communicator]:
    """The communicators one by one, each below its name; what is `lacking` where there is none."""
    if not comms:
        page.add("  ", (lacking, "unknown"))
    for comm in page.listed(comms, COMMS_SHOWN, "communicator"):
        page.add("  ", (name_of(comm) or comm.label, "strong"), (f"  ranks {spell_ranks(comm.ranks)}", "dim"))
        yield comm


def _draw_comm(page: Page, job: Job, comm: Communicator, host_of: dict[int, str]) -> None:
    lines = rings_of(job, comm)
    shown = page.some(lines, LINES_SHOWN)
    labels = [f"ch {fold_numbers(line.channels)}" for line in shown]
    width = max((len(label) for label in labels), default=0)
    for label, line in zip(labels, shown, strict=True):
        pieces = _pieces(page, comm, line.ring, line.vias, host_of)
        page.add_pieces(page.text("    ", (f"{label:<{width}}", "dim"), "  "), pieces)
    if all(via == UNSAID for line in lines for via in line.vias):
        page.add("    ", ("no hop was connected in the logs: NCCL connects when an operation first needs it", "dim"))
    page.add_more(len(lines) - len(shown), "ring", indent="    ")


def _pieces(
    page: Page, comm: Communicator, ring: Sequence[int], vias: Sequence[str], host_of: dict[int, str]
) -> list[Part]:
    """`node00[0 1 2 3] P2P/CUMEM`, `=NET/IB/0 GDR=>` and so on, one piece per place where a line may break."""
    world, hosts, runs = hosts_along(comm, ring, host_of)
    shown = runs if len(runs) <= HOSTS_SHOWN else page.some(runs, HOSTS_SHOWN - 1)
    pieces: list[Part] = []
    for run in shown:
        pieces += _node(page, comm, run, world, hosts, vias)
        last = run[-1]
        if last < len(vias):
            inside = last == len(ring) - 1 and hosts[last] == hosts[0]
            pieces.append(page.text((_arrow(vias[last], "-" if inside else "="), _hue(vias[last]))))
    if len(shown) < len(runs):
        rest = [hosts[run[0]] for run in runs[len(shown) :]]
        others = sorted({vias[run[-1]] for run in runs[len(shown) :] if run[-1] < len(vias)})
        words = ", ".join(others[:3]) + (" …" if len(others) > 3 else "")
        pieces.append((f"… {len(rest)} more nodes over {words} (-v shows all) => ", "dim"))
    closed = len(vias) == len(ring) and len(ring) > 0
    pieces.append(("back" if closed else "… not closed in the logs", "dim" if closed else "doubtful"))
    return pieces


def _node(  # noqa: PLR0917 - parallel lists of one ring
    page: Page, comm: Communicator, run: Sequence[int], world: Sequence[int], hosts: Sequence[str], vias: Sequence[str]
) -> list[Part]:
    """One node's part of a ring; the transport once when all its hops have the same."""
    names = [str(world[at]) if world[at] >= 0 else f"?{at}" for at in run]
    inner = [vias[at] for at in run[:-1] if at < len(vias)]
    shown = inner if len(set(inner)) > 1 else [via for via in inner[:1] if via != UNSAID]
    hops = [(f" -{via}-", _hue(via)) for via in shown] + [("", "")] * (len(names) - len(shown))
    pieces = [page.text(name, hop, " ") for name, hop in zip(names[:-1], hops, strict=False)]
    pieces.append(page.text(names[-1], "] "))
    return [page.text((hosts[run[0]], "name"), "[", pieces[0]), *pieces[1:]]


def _arrow(via: str, line: str) -> str:
    """`=NET/IB/0 GDR=> `, bare where no line of the log says what the hop goes over."""
    return f"{line}> " if via == UNSAID else f"{line}{via}{line}> "


def _hue(via: str) -> str:
    if via.startswith("P2P"):
        return "nvlink"
    if via == UNSAID or "Socket" in via:
        return "doubtful"
    return "close" if is_net(via) else "remote"


def draw_trees(page: Page, job: Job) -> None:
    """The trees of the communicators that have any, as ranks of the communicator."""
    with_trees = [communicator for communicator in job.communicators if communicator.trees]
    for comm in _listed(page, with_trees, "no tree is in the logs: NCCL_DEBUG_SUBSYS lacked INIT"):
        alike = grouped((pairs, channel) for channel, pairs in sorted(comm.trees.items()))
        for pairs, channels in page.listed(list(alike.items()), TREES_SHOWN, "tree", indent="    "):
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
