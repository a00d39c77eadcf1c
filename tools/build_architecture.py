"""Draws the rooms of the package and their imports (docs/architecture.svg), and lists them in docs/architecture.md.

python tools/build_architecture.py            write both
python tools/build_architecture.py --check    exit 1 when the drawing or the table is not what the code says

The imports come from grimp (import-linter brings it), the floors from the layers contract in pyproject.toml. The SVG
carries all imports between rooms as data; arrows that a longer way implies are left out of the drawing. The check
compares rooms and imports, not coordinates.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from topodiag.draw.svg import Canvas, spelt, tag, width_of  # noqa: E402

PAGE = ROOT / "docs" / "architecture.md"
DRAWING = ROOT / "docs" / "architecture.svg"
COLLECTOR = "topodiag_probes"
START, END = "<!-- rooms: tools/build_architecture.py writes this table -->", "<!-- end of rooms -->"

BOX_WIDTH, LINE, GAP_X, GAP_Y, LANE, MARGIN = 176, 14, 26, 46, 14, 24  # pixels


@dataclass(frozen=True)
class Room:
    """A room: a folder of topodiag (or a module on its first level), or the collector."""

    name: str
    role: str
    rooms: tuple[str, ...]
    modules: int


@dataclass(frozen=True)
class House:
    """All rooms, the floor of each (0 is the top), and which room imports which."""

    rooms: dict[str, Room]
    floors: dict[str, int]
    imports: frozenset[tuple[str, str]]


def first_line(path: Path) -> str:
    """The first line of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


def room_of(module: str) -> str:
    """topodiag.checks.gpudirect.node is in the room checks."""
    first, _, rest = module.partition(".")
    return rest.partition(".")[0] if first == "topodiag" and rest else first


def layers() -> list[list[str]]:
    """The floors of the layers contract, from the top."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    found = next(each["layers"] for each in contracts if each["type"] == "layers" and each.get("exhaustive"))
    return [layer.replace("|", " ").replace(":", " ").split() for layer in found]


def read_room(name: str, modules: list[str]) -> Room:
    """What stands in one room. Raises FileNotFoundError where pyproject.toml names a room that is not there."""
    folder = ROOT / "probes" / name if name == COLLECTOR else ROOT / "topodiag" / name
    if not folder.is_dir():
        return Room(name, first_line(folder.with_suffix(".py")), (), 1)
    inner = sorted(each.parent.name for each in folder.glob("*/__init__.py"))
    return Room(name, first_line(folder / "__init__.py"), tuple(inner), len(modules))


def read_house() -> House:
    """The house as the code and pyproject.toml say today."""
    import grimp

    graph = grimp.build_graph("topodiag", COLLECTOR, exclude_type_checking_imports=True, cache_dir=None)
    order = layers()
    floors = {name: floor for floor, names in enumerate(order) for name in names}
    known = {*floors, COLLECTOR}
    imports = {
        (room_of(module), room_of(imported))
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    }
    between = frozenset((above, below) for above, below in imports if above != below and {above, below} <= known)
    # The collector has no layer: it imports nothing of ours. It stands one floor below the rooms that start it.
    floors[COLLECTOR] = 1 + max((floors[above] for above, below in between if below == COLLECTOR), default=0)
    members: dict[str, list[str]] = {name: [] for name in known}
    for module in graph.modules:
        members.get(room_of(module), []).append(module)
    rooms = {name: read_room(name, members[name]) for name in sorted(known, key=lambda each: (floors[each], each))}
    return House(rooms, floors, between)


def reduced(imports: frozenset[tuple[str, str]]) -> list[tuple[str, str]]:
    """The imports that no longer way implies, in a stable order."""
    below: dict[str, set[str]] = {}
    for start, end in imports:
        below.setdefault(start, set()).add(end)

    def reaches(start: str, end: str, without: tuple[str, str]) -> bool:
        seen, todo = {start}, [start]
        while todo:
            here = todo.pop()
            for there in below.get(here, ()):
                if (here, there) == without or there in seen:
                    continue
                if there == end:
                    return True
                seen.add(there)
                todo.append(there)
        return False

    return sorted(edge for edge in imports if not reaches(*edge, without=edge))


# --- Layout: floors of boxes; an arrow over several floors gets a lane on each floor between ----------------


@dataclass
class Item:
    """A box, or the lane of a long arrow on one floor."""

    name: str
    floor: int
    width: int
    x: float = 0.0  # its centre
    above: list[Item] = field(default_factory=list)
    below: list[Item] = field(default_factory=list)


def box_lines(room: Room) -> list[str]:
    """The small text of a box: its sub-rooms, or its number of modules."""
    count = f"{room.modules} modules" if room.modules > 1 else "1 module"
    lines, line = [], ""
    for word in room.rooms:
        if line and width_of(f"{line} · {word}", 10.5) > BOX_WIDTH - 8:
            lines.append(line)
            line = ""
        line = f"{line} · {word}" if line else word
    return [*lines, *([line] if line else []), count]


def lay_out(house: House, edges: list[tuple[str, str]]) -> tuple[list[list[Item]], list[list[Item]]]:
    """(floors of items with their x, the way of each edge as items from its start to its end)."""
    height = max(house.floors.values()) + 1
    items = {name: Item(name, floor, BOX_WIDTH) for name, floor in house.floors.items()}
    floors: list[list[Item]] = [[] for _ in range(height)]
    for name in house.rooms:
        floors[house.floors[name]].append(items[name])
    ways = []
    for start, end in edges:
        way = [items[start]]
        for floor in range(house.floors[start] + 1, house.floors[end]):
            lane = Item(f"{start}>{end}", floor, LANE)
            floors[floor].append(lane)
            way.append(lane)
        way.append(items[end])
        for upper, lower in pairwise(way):
            upper.below.append(lower)
            lower.above.append(upper)
        ways.append(way)
    for _ in range(24):
        for floor in floors:
            settle(floor, up=True)
        for floor in reversed(floors):
            settle(floor, up=False)
    return floors, ways


def settle(floor: list[Item], up: bool) -> None:
    """Order the items of a floor by the mean place of their neighbours, and set them as close to it as can be."""

    def wanted(item: Item) -> float:
        near = (item.above if up else item.below) or item.above or item.below
        return sum(each.x for each in near) / len(near) if near else item.x

    aims = {id(item): wanted(item) for item in floor}
    floor.sort(key=lambda item: (aims[id(item)], item.name))
    place(floor, [aims[id(item)] for item in floor])


def place(floor: list[Item], aims: list[float]) -> None:
    """Places without overlap, each block of touching items centred on the mean of its aims."""
    blocks: list[tuple[list[Item], list[float]]] = []
    for item, aim in zip(floor, aims, strict=True):
        blocks.append(([item], [aim]))
        while len(blocks) > 1 and left_end(*blocks[-2]) + extent(blocks[-2][0]) + GAP_X > left_end(*blocks[-1]):
            last = blocks.pop()
            before = blocks.pop()
            blocks.append((before[0] + last[0], before[1] + last[1]))
    for members, block_aims in blocks:
        at = left_end(members, block_aims)
        for item in members:
            item.x = at + item.width / 2
            at += item.width + GAP_X


def extent(items: list[Item]) -> float:
    return sum(item.width for item in items) + GAP_X * (len(items) - 1)


def left_end(items: list[Item], aims: list[float]) -> float:
    """The left end of a block such that the mean distance of its items from their aims is zero."""
    at, total = 0.0, 0.0
    for item, aim in zip(items, aims, strict=True):
        total += aim - (at + item.width / 2)
        at += item.width + GAP_X
    return total / len(items)


# --- Drawing ------------------------------------------------------------------------------------------------


def draw(house: House) -> str:
    """The SVG, byte for byte the same for the same house."""
    floors, ways = lay_out(house, reduced(house.imports))
    shift = -min(item.x - item.width / 2 for floor in floors for item in floor)
    width = max(item.x + item.width / 2 for floor in floors for item in floor) + shift
    tops: list[float] = []
    heights: list[float] = []
    at = 0.0
    for floor in floors:
        lines = max((len(box_lines(house.rooms[item.name])) for item in floor if item.name in house.rooms), default=0)
        tops.append(at)
        heights.append(26 + LINE * lines)
        at += heights[-1] + GAP_Y
    desc = "; ".join(f"{name} imports {', '.join(below) or 'nothing of ours'}" for name, below in imports_of(house))
    canvas = Canvas("The rooms of topodiag and their imports", desc)
    arrows(canvas, ways, shift, tops, heights)
    for item in (item for floor in floors for item in floor if item.name in house.rooms):
        box(canvas, house, item, (item.x + shift, tops[item.floor]), heights[item.floor])
    return canvas.document(width, at - GAP_Y, MARGIN)


def imports_of(house: House) -> Iterator[tuple[str, list[str]]]:
    """Each room with the rooms that it imports."""
    for name in house.rooms:
        yield name, sorted(below for above, below in house.imports if above == name)


def arrows(canvas: Canvas, ways: list[list[Item]], shift: float, tops: list[float], heights: list[float]) -> None:
    """One curve per arrow, with ends spread over the edges of the boxes."""
    for way in ways:
        start, end = way[0], way[-1]
        x = start.x + spread(start, start.below, way[1]) + shift
        y = tops[start.floor] + heights[start.floor]
        path = [f"M{spelt(x)},{spelt(y)}"]
        for item in way[1:]:
            to_x = item.x + shift + (spread(end, end.above, way[-2]) if item is end else 0)
            to_y = tops[item.floor]
            middle = spelt((y + to_y) / 2)
            path.append(f"C{spelt(x)},{middle} {spelt(to_x)},{middle} {spelt(to_x)},{spelt(to_y)}")
            x, y = to_x, to_y
            if item is not end:
                y += heights[item.floor]
                path.append(f"V{spelt(y)}")
        canvas.path(" ".join(path), "arrow", f"{start.name} imports {end.name}")
        canvas.tip((x, y), (0, 1))


def spread(item: Item, neighbours: list[Item], neighbour: Item) -> float:
    """How far from the middle of its box an arrow to this neighbour ends: neighbours from left to right."""
    order = sorted(range(len(neighbours)), key=lambda at: (neighbours[at].x, neighbours[at].name))
    rank = next(place for place, at in enumerate(order) if neighbours[at] is neighbour)
    step = min(24.0, (item.width - 40) / max(1, len(neighbours)))
    return (rank - (len(neighbours) - 1) / 2) * step


def box(canvas: Canvas, house: House, item: Item, at: tuple[float, float], height: float) -> None:
    """One room: its name, its sub-rooms, its number of modules, and as data all that it imports."""
    room = house.rooms[item.name]
    middle, top = at
    kind = {"model": "good", COLLECTOR: "plain dashed"}.get(room.name, "plain")
    shape = tag("rect", title=room.role, x=middle - BOX_WIDTH / 2, y=top, width=BOX_WIDTH, height=height, class_=kind,
                rx=5)  # fmt: skip
    imports = " ".join(dict(imports_of(house))[room.name])
    canvas.add(tag("g", body=shape, id=room.name, data_imports=imports))
    name = place_of(room.name).removeprefix("topodiag/").removeprefix("probes/")
    canvas.text(middle, top + 18, name, "name", "middle")
    for number, line in enumerate(box_lines(room)):
        canvas.text(middle, top + 34 + LINE * number, line, "small", "middle", BOX_WIDTH - 8, size=10.5)


def drawn_imports(svg: str) -> dict[str, set[str]]:
    """What a drawing says: the rooms that each room imports."""
    # The file is our own: the tool has just written it, or the repository holds it.
    groups = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}g")
    return {group.attrib["id"]: set(group.get("data-imports", "").split()) for group in groups if "id" in group.attrib}


# --- The table in the page ----------------------------------------------------------------------------------


def table(house: House) -> str:
    """The rooms from the top floor down, one line each."""
    lines = [START, "", "| room | what it is for |", "|---|---|"]
    for name in house.rooms:
        lines.append(f"| `{place_of(name)}` | {house.rooms[name].role.replace('|', chr(92) + '|')} |")
    return "\n".join([*lines, "", END])


def place_of(name: str) -> str:
    if name == COLLECTOR:
        return f"probes/{name}/"
    return f"topodiag/{name}/" if (ROOT / "topodiag" / name).is_dir() else f"topodiag/{name}.py"


def with_table(page: str, wanted: str) -> str:
    before, _, rest = page.partition(START)
    return before + wanted + rest.partition(END)[2]


def differences(house: House) -> list[str]:
    """What the committed drawing and page say otherwise than the code, one line each."""
    stale: list[str] = []
    drawn = drawn_imports(DRAWING.read_text(encoding="utf-8")) if DRAWING.is_file() else {}
    for name in house.rooms:
        wanted = {below for above, below in house.imports if above == name}
        if name not in drawn:
            stale.append(f"the drawing lacks the room {name}")
            continue
        stale += [f"the drawing lacks the import {name} -> {each}" for each in sorted(wanted - drawn[name])]
        stale += [f"the drawing shows {name} -> {each}, which is gone" for each in sorted(drawn[name] - wanted)]
    stale += [f"the drawing shows the room {name}, which is gone" for name in sorted(set(drawn) - set(house.rooms))]
    page = PAGE.read_text(encoding="utf-8")
    if START not in page or with_table(page, table(house)) != page:
        stale.append("the table of rooms in docs/architecture.md is not what the rooms say of themselves")
    return stale


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when something is stale")
    check = parser.parse_args().check
    house = read_house()
    if check:
        stale = differences(house)
        print(
            "\n".join([*stale, "run python tools/build_architecture.py"]) if stale else "docs/architecture is current"
        )
        return 1 if stale else 0
    DRAWING.write_text(draw(house), encoding="utf-8")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), table(house)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
