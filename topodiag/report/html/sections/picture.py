"""Pictures of the nodes that have faults, those alike once; of a healthy case the first node. The machines of the
commands of `topo` are drawn without a verdict: nothing was judged on them."""

from __future__ import annotations

from topodiag.draw.node import draw_node
from topodiag.draw.picture import picture_of
from topodiag.model.node import Node
from topodiag.model.result import Result
from topodiag.report.emit.picture import titled_picture
from topodiag.report.html.interface import NAMES_ROOM, Drawing, Extras, Section, Sheet, by_host, figures
from topodiag.report.node.header import machine_words
from topodiag.words.units import plural, short_hosts

MOST = 3
"""Machines that are drawn: each picture weighs some 20 kB."""


def section(sheet: Sheet) -> Section | None:
    """None where no machine can be drawn."""
    return figures(sheet, "picture", "The machine", _nodes(sheet.result))


def _nodes(result: Result) -> list[Drawing]:
    groups: dict[tuple[object, ...], list[Node]] = {}
    of_host = by_host(result)
    for node in result.nodes:
        if node.gpus or node.nics:
            rows = tuple((finding.id, finding.where.gpus, finding.where.nics, finding.where.links)
                          for finding in of_host.get(node.host, ())
                          if finding.where.gpus or finding.where.nics or finding.where.links)  # fmt: skip
            groups.setdefault((node.system.value, len(node.gpus), len(node.nics), rows), []).append(node)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[0][3]), len(item[1])))  # type: ignore[arg-type]
    faulty = [group for key, group in ordered if key[3]]
    drawings: list[Drawing] = []
    for group in (faulty or [group for _, group in ordered])[:MOST]:
        node = group[0]
        alike = f"{plural(len(group), 'node')} alike: {short_hosts([node.host for node in group], NAMES_ROOM)}"
        title = f"Topology of {node.host or 'this node'}"
        svg = draw_node(titled_picture(result, node), prefix=f"node{len(drawings)}")
        drawings.append(Drawing(title, svg, alike if len(group) > 1 else ""))
    return drawings


def machines(*nodes: Node) -> Extras:
    """A picture of each that has a device to draw."""
    drawn = [node for node in nodes if node.gpus or node.nics]
    return Extras("picture", tuple(_drawing(node, number) for number, node in enumerate(drawn)))


def _drawing(node: Node, number: int) -> Drawing:
    name = node.host or "the machine"
    words = " · ".join([name, *machine_words(node)])
    svg = draw_node(picture_of(node, (), words, ""), prefix=f"machine{number}")
    return Drawing(f"Topology of {name}", svg)
