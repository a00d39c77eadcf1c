"""The machines of the commands of `topo`, drawn without a verdict: nothing was judged on them."""

from __future__ import annotations

from topodiag.draw.node import draw_node
from topodiag.draw.picture import picture_of
from topodiag.model.node import Node
from topodiag.report.html.interface import Drawing, Extras
from topodiag.report.node.header import machine_words


def machines(*nodes: Node) -> Extras:
    """A picture of each that has a device to draw."""
    drawn = [node for node in nodes if node.gpus or node.nics]
    return Extras("picture", tuple(_drawing(node, number) for number, node in enumerate(drawn)))


def _drawing(node: Node, number: int) -> Drawing:
    name = node.host or "the machine"
    words = " · ".join([name, *machine_words(node)])
    svg = draw_node(picture_of(node, (), words, ""), prefix=f"machine{number}")
    return Drawing(f"Topology of {name}", svg)
