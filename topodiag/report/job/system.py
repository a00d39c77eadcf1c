"""`--system`: each machine as NCCL printed it: the tree, what joins the GPUs and NICs, and the graphs that it found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from topodiag.model.job import Channels, Job
from topodiag.model.nccl_view import Graph, NcclSystem, SystemDevice
from topodiag.report.grid import Field, draw_grid
from topodiag.report.text import Page, Part
from topodiag.report.topo.predict import PATTERNS
from topodiag.words.units import grouped, in_gbs, number

HOSTS_SHOWN = 4
ORDERS_SHOWN = 4
MOST_DEEP = 12
"""Levels of a printed tree: a broken one ends there."""


def draw_system(page: Page, job: Job) -> None:
    """Of each host the first print, that of the world where it printed one."""
    prints = _prints(job)
    counts = [communicator.channels for communicator in job.communicators if communicator.channels.coll >= 0]
    if not prints and not counts:
        page.add("  ", ("no system print is in the logs: NCCL_DEBUG_SUBSYS lacked GRAPH", "unknown"))
        return
    for host, system, graphs in page.listed(prints, HOSTS_SHOWN, "node"):
        _draw_host(page, host, system, graphs)
    if counts:
        page.add("  ", ("channels  ", "dim"), _channels(counts[0]))


def _prints(job: Job) -> list[tuple[str, NcclSystem | None, tuple[Graph, ...]]]:
    prints: dict[str, tuple[NcclSystem | None, tuple[Graph, ...]]] = {}
    for communicator in job.communicators:
        for host in dict.fromkeys((*communicator.systems, *communicator.graphs)):
            prints.setdefault(host, (communicator.systems.get(host), communicator.graphs.get(host, ())))
    for process in job.processes:
        if process.system is not None or process.graphs:
            prints.setdefault(process.host, (process.system, process.graphs))
    return [(host, *printed) for host, printed in prints.items()]


def _draw_host(page: Page, host: str, system: NcclSystem | None, graphs: Sequence[Graph]) -> None:
    sums = []
    if system is not None:
        figures = (("max", system.max_gbs), ("total", system.total_gbs))
        sums = [f"{word} {in_gbs(gbs)}" for word, gbs in figures if gbs is not None]
    page.add("  ", (host or "a node", "name"), ("  " + ", ".join(sums) if sums else "", "dim"))
    if system is not None:
        _draw_tree(page, system)
        _draw_paths(page, system)
    for graph in graphs:
        _draw_graph(page, graph)


def _draw_tree(page: Page, system: NcclSystem) -> None:
    below = grouped((device.parent, device) for device in system.devices.values())
    joins: dict[str, list[str]] = defaultdict(list)
    up: dict[str, float] = {}
    for link in system.links:
        owned = system.devices.get(link.b)
        if owned is not None and owned.parent == link.a:
            up[link.b] = link.gbs
        else:
            joins[link.a].append(f"{link.kind} {number(link.gbs)} to {link.b}")

    def draw(device: SystemDevice, depth: int) -> None:
        if depth > MOST_DEEP:
            return
        rank = f" rank {device.rank}" if device.rank >= 0 else ""
        speed = f" {in_gbs(up[device.name])}" if device.name in up else ""
        beside = f"  {', '.join(joins[device.name])}" if device.name in joins else ""
        page.add("    " + "  " * depth, device.name, (rank, "strong"), (speed, "dim"), (beside, "nvlink"))
        for child in below.get(device.name, []):
            draw(child, depth + 1)

    for root in below.get("", []):
        draw(root, 0)


def _draw_paths(page: Page, system: NcclSystem) -> None:
    """The path types between GPUs and NICs, as the table below the tree has them; `?` where it was cut."""
    rows = [device.name for kind in ("GPU", "NET") for device in system.of_kind(kind)]
    if not system.paths or not rows:
        return
    fields = (Field("path"), *(Field(name) for name in rows))
    cells: list[list[Part]] = [[a, *(_path(system, a, b) for b in rows)] for a in rows]
    draw_grid(page, fields, cells)


def _path(system: NcclSystem, a: str, b: str) -> str:
    path = system.paths.get((a, b), system.paths.get((b, a)))
    return "X" if a == b else path.name if path is not None else "?"


def _draw_graph(page: Page, graph: Graph) -> None:
    words = PATTERNS.get(graph.pattern, f"pattern {graph.pattern}")
    figures = f"{graph.channels} x {number(graph.bw_intra)}/{in_gbs(graph.bw_inter)}"
    page.add("    ", (words, "strong"), f"  {figures}", (f"  {graph.type_intra}/{graph.type_inter}", "dim"))
    for order in page.listed(graph.orders, ORDERS_SHOWN, "channel", indent="      "):
        page.add("      ", " ".join(order))


def _channels(counts: Channels) -> str:
    row = (("rings and trees", counts.coll), ("CollNet", counts.collnet), ("NVLS", counts.nvls), ("p2p", counts.p2p),
            ("p2p a peer", counts.per_peer))  # fmt: skip
    return ", ".join(f"{count} {word}" for word, count in row if count > 0)
