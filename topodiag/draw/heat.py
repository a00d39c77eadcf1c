"""The pair matrix of a sweep: each cell the slowest run between two nodes, the diagonal the runs inside a node."""

from __future__ import annotations

from topodiag.draw.svg import Canvas, width_of
from topodiag.lazy import dataclass
from topodiag.sweep.parts import run_words
from topodiag.sweep.plan import ordered
from topodiag.sweep.values import Fabric, JudgedRun, Standing, SweepJudgement
from topodiag.words.units import fold_hosts

_SIDE = 96
"""Cells of a side of the SVG at most; more nodes are folded, since a cell must be seen."""
_WORST = {Standing.FAILED: 0, Standing.LOW: 1, Standing.NORMAL: 2, Standing.UNKNOWN: 3}


@dataclass(frozen=True, slots=True)
class Heat:
    """`labels` of rows and columns (blocks of nodes where there are many); a cell is its worst run, if there is one."""

    labels: tuple[str, ...]
    cells: dict[tuple[int, int], JudgedRun]
    block: int


def heat(judged: SweepJudgement, fabric: Fabric, most: int) -> Heat:
    """The matrix with at most `most` rows. Only runs of one or two nodes say something of a cell."""
    nodes = ordered(fabric)
    block = -(-len(nodes) // max(most, 1))
    at = {node: place // block for place, node in enumerate(nodes)}
    repeats: dict[tuple[object, ...], JudgedRun] = {}
    for run in judged.runs:
        if len(run.run.nodes) > 2 or run.run.kind == "settings":
            continue
        # Of the same run done again the best counts: the other was slow by chance.
        key = (frozenset(run.run.nodes), run.run.gpus, run.run.rail, run.run.program)
        if key not in repeats or rank(run) > rank(repeats[key]):
            repeats[key] = run
    cells: dict[tuple[int, int], JudgedRun] = {}
    for repeat in repeats.values():
        a, b = sorted((at[repeat.run.nodes[0]], at[repeat.run.nodes[-1]]))
        known = cells.get((a, b))
        if known is None or rank(repeat) < rank(known):
            cells[a, b] = repeat
    labels = tuple(fold_hosts(nodes[start : start + block]) for start in range(0, len(nodes), block))
    return Heat(labels, cells, block)


def rank(judged_run: JudgedRun) -> tuple[int, float]:
    """Worst first."""
    return _WORST[judged_run.standing], judged_run.share if judged_run.share is not None else 1.0


_CELL, _LEFT, _TOP, _WIDE = 14, 180, 56, 660
_LOOKS = (
    ("good", "", "normal"), ("shade2", "", "70-85 %"), ("shade3", "", "50-70 %"), ("shade5", "", "below 50 %"),
    ("inkfill", "", "failed"), ("plain", "hatch", "not judged"), ("dim", "", "not measured"),
)  # fmt: skip
"""Class, hatch and words of each kind of cell."""
_LOW_FROM = ((0.7, 1), (0.5, 2), (0.0, 3))
"""From the share on; the lower the stronger, so that the order is seen without telling red from green."""
_STANDINGS = {Standing.NORMAL: 0, Standing.FAILED: 4, Standing.UNKNOWN: 5}


def heat_svg(judged: SweepJudgement, fabric: Fabric, title: str, *, prefix: str = "") -> str:
    """The matrix: a document, or with a `prefix` an element for a page; a cell's run is in its tooltip."""
    drawn = heat(judged, fabric, _SIDE)
    side = len(drawn.labels) * _CELL
    canvas = Canvas(title, f"{len(drawn.labels)} rows, a cell is the worst run of two", prefix)
    canvas.text(0, 18, title, "title", room=max(_LEFT + side, _WIDE), size=16)
    for row, name in enumerate(drawn.labels):
        y = _TOP + row * _CELL
        canvas.text(_LEFT - 6, y + 11, name, "", "end", room=_LEFT - 12)
        for column in range(len(drawn.labels)):
            judged_run = drawn.cells.get((min(row, column), max(row, column)))
            kind, hatch, _ = _LOOKS[_look(judged_run)]
            tip = run_words(judged_run) if judged_run is not None else ""
            canvas.rect(_LEFT + column * _CELL, y, _CELL, _CELL, f"c {kind}", tip, hatch=hatch)
    foot, x = _TOP + side + 24, 0.0
    for kind, hatch, words in _LOOKS:
        canvas.rect(x, foot - 10, 11, 11, kind, hatch=hatch)
        canvas.text(x + 16, foot, words)
        x += 30 + width_of(words)
    if drawn.block > 1:
        canvas.text(0, foot + 20, f"a cell is {drawn.block} x {drawn.block} nodes and shows its worst run", "quiet")
    return canvas.document(max(_LEFT + side + 4, _WIDE), foot + 30)


def _look(judged_run: JudgedRun | None) -> int:
    """Place in _LOOKS."""
    if judged_run is None:
        return len(_LOOKS) - 1
    if judged_run.standing in _STANDINGS:
        return _STANDINGS[judged_run.standing]
    return next(place for least, place in _LOW_FROM if (judged_run.share or 0.0) >= least)
