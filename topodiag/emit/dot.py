"""A picture of a node for Graphviz: `dot -Tsvg node.dot -o node.svg`."""

from __future__ import annotations

from collections.abc import Iterable

from topodiag.draw.picture import NVSWITCH, Box, Picture
from topodiag.words.text import without_steering

_SHAPES = {"cpu": "box", "switch": "box", "gpu": "box", "nic": "box", "nvswitch": "hexagon"}
_FILLS = {"cpu": "#e8eaed", "switch": "#f5f5f5", "gpu": "#d9f0d3", "nic": "#dbe9f6", "nvswitch": "#d9f0d3"}
_STYLES = {"nvlink": "bold", "c2c": "bold", "smp": "dashed"}
_COLORS = {"nvlink": "#2e7d32", "c2c": "#b26a00", "smp": "#555555"}
SICK = "#c62828"


def to_dot(picture: Picture) -> str:
    """The whole graph as text. Everything foreign is quoted."""
    lines = [
        f"graph {_quoted(picture.title)} {{",
        f"  label={_quoted(picture.title + chr(10) + picture.verdict)}; labelloc=t; fontname=Helvetica;",
        "  rankdir=TB; nodesep=0.2; ranksep=0.6;",
        "  node [fontname=Helvetica, fontsize=10, style=filled];",
        "  edge [fontname=Helvetica, fontsize=8];",
    ]
    for socket in picture.sockets:
        lines += list(_box(socket))
    if any(NVSWITCH in (line.a, line.b) for line in picture.lines):
        name = f"{picture.nvswitches} NVSwitches" if picture.nvswitches > 1 else "NVSwitch"
        lines.append(
            f"  {_quoted(NVSWITCH)} [label={_quoted(name)}, shape=hexagon, fillcolor={_quoted(_FILLS['gpu'])}];"
        )
    for line in picture.lines:
        a, b = (line.b, line.a) if line.a == NVSWITCH else (line.a, line.b)
        color, style = _COLORS[line.kind], _STYLES[line.kind]
        label = line.label
        if line.sick:
            color, label = SICK, f"{label} {','.join(line.sick)}".strip()
        attributes = f"label={_quoted(label)}, color={_quoted(color)}, fontcolor={_quoted(color)}, style={style}"
        extra = ", constraint=false" if line.kind != "nvlink" or NVSWITCH not in (a, b) else ""
        lines.append(f"  {_quoted(a)} -- {_quoted(b)} [{attributes}{extra}];")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _box(box: Box, parent: Box | None = None) -> Iterable[str]:
    label = "\n".join([*box.lines, *([", ".join(box.sick)] if box.sick else [])])
    color = SICK if box.sick else "#777777"
    width = 2 if box.sick else 1
    yield (
        f"  {_quoted(box.key)} [label={_quoted(label)}, shape={_SHAPES[box.kind]},"
        f" fillcolor={_quoted(_FILLS[box.kind])}, color={_quoted(color)}, penwidth={width}];"
    )
    if parent is not None:
        edge = SICK if box.link_sick else "#777777"
        link = f"label={_quoted(box.link)}, color={_quoted(edge)}, fontcolor={_quoted(edge)}"
        yield f"  {_quoted(parent.key)} -- {_quoted(box.key)} [{link}];"
    for child in box.children:
        yield from _box(child, box)


def _quoted(text: str) -> str:
    """A DOT string: quotes and backslashes escaped, line breaks as \\n (graphviz.org, The DOT Language)."""
    lines = (without_steering(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n"))
    return '"' + "\\n".join(lines) + '"'
