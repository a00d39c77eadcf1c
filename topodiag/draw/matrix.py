"""The matrix of ranks by transport: rows send, columns receive. Equal hosts are one block, the odd one is framed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import groupby
from math import ceil

from topodiag.draw.matrix_fold import SORTS, Band, Matrix, matrix_of
from topodiag.draw.svg import Canvas, spelt, width_of, wrap
from topodiag.model.job import Job
from topodiag.words.own_data import own_data
from topodiag.words.units import few, plural

LABEL, TOP, GAP = 230, 96, 8
"""The most room of the rows' names, the room of what stands above the matrix, and between two bands, px."""
LEVEL, LEVELS = 16, 3
"""Lines on which titles of columns take turns where they would meet, and the height of one, px."""
WIDE, SIDE, LARGEST, LEAST = 640, 560, 22, 3
"""The least width of the picture, the width that the cells share, the largest and the smallest cell, px."""
NAMED, NUMBERED = 13, 16
"""Cells from this size on have the names of their ranks beside them, and their NIC inside, px."""
MOST_NUMBERS = 600
_LOOKS: Mapping[str, tuple[str, str, str]] = own_data("draw/palette")["transports"]


def draw_matrix(job: Job, *, prefix: str = "") -> str:
    """The picture, "" where the logs show no connection."""
    matrix = matrix_of(job)
    if matrix is None:
        return ""
    across = sum(len(band.names) for band in matrix.columns)
    cell = max(min(SIDE // across, LARGEST), LEAST)
    canvas = Canvas(f"Ranks by transport, {job.name}".rstrip(", "), _words(matrix), prefix)
    label = round(min(max(width_of(band.title) for band in matrix.rows) + (62 if matrix.folded else 40), LABEL))
    crowded = any(width_of(_to(matrix, number, band)) > len(band.names) * cell
                  for number, band in enumerate(matrix.columns))  # fmt: skip
    tops = _places(matrix.rows, TOP + (LEVEL * (LEVELS - 1) if crowded else 0), cell)
    lefts = _places(matrix.columns, label, cell)
    _row_heads(canvas, matrix, tops, label, cell)
    _column_heads(canvas, matrix, lefts, tops[0][0], cell, levels=LEVELS if crowded else 1)
    _blocks(canvas, matrix, tops, lefts, cell)
    _fill(canvas, matrix, tops, lefts, cell)
    _frames(canvas, matrix, tops, lefts, cell)
    bottom = tops[-1][-1] + cell + 24
    height = _legend(canvas, matrix, bottom)
    return canvas.document(max(lefts[-1][-1] + cell + 4, WIDE), height)


def _places(bands: tuple[Band, ...], start: int, cell: int) -> list[list[int]]:
    """The near edge of each rank's cells, by band."""
    numbers, at = [], start
    for band in bands:
        numbers.append([at + number * cell for number in range(len(band.names))])
        at += len(band.names) * cell + GAP
    return numbers


def _row_heads(canvas: Canvas, matrix: Matrix, tops: list[list[int]], label: float, cell: int) -> None:
    canvas.text(0, 18, "Ranks by transport", "title")
    canvas.text(0, 38, _words(matrix), "quiet", room=WIDE)
    for number, (band, places) in enumerate(zip(matrix.rows, tops, strict=True)):
        middle = (places[0] + places[-1] + cell) / 2
        title = f"{_letter(number)}: {band.title}" if matrix.folded else band.title
        canvas.text(0, middle, title, "badtext" if band.outlier else "name", room=label - 36)
        if band.outlier:
            canvas.text(0, middle + 14, "differs", "badtext")
        elif band.hosts > 1:
            canvas.text(0, middle + 14, f"x {band.hosts}", "name")
        if cell >= NAMED:
            for name, y in zip(band.names, places, strict=True):
                canvas.text(label - 6, y + cell / 2 + 4, name, "small", "end")


def _column_heads(
    canvas: Canvas, matrix: Matrix, lefts: list[list[int]], top: float, cell: int, *, levels: int
) -> None:  # fmt: skip
    for number, (band, places) in enumerate(zip(matrix.columns, lefts, strict=True)):
        y = top - 24 - LEVEL * (number % levels)
        ahead = number + levels
        room = lefts[ahead][0] - places[0] - 8 if ahead < len(lefts) else max(cell * len(places), 180)
        canvas.text(places[0], y, _to(matrix, number, band), "badtext" if band.outlier else "name", room=room)
        if levels > 1:
            canvas.line(places[0] + 1, y + 4, places[0] + 1, top - 2, "grid")
        if cell >= NAMED:
            step = ceil((width_of(band.names[-1], 10.5) + 2) / cell)
            for name, x in list(zip(band.names, places, strict=True))[::step]:
                canvas.text(x + cell / 2, top - 6, name, "small", "middle")


def _to(matrix: Matrix, number: int, band: Band) -> str:
    if not matrix.folded or not number:
        return band.title
    letter = _letter(number - 1)
    return f"to another {letter}" if band.hosts > 1 else f"to {letter}: {band.title}"


def _look(matrix: Matrix, sort: int) -> tuple[str, str, str]:
    kind, hatch, words = _LOOKS[SORTS[sort]]
    return kind, hatch, words.replace("NVLink", matrix.links)


def _letter(number: int) -> str:
    """Of a kind of hosts: A, B, C, ... (there are at most MOST_KINDS)."""
    return chr(ord("A") + number)


def _blocks(canvas: Canvas, matrix: Matrix, tops: list[list[int]], lefts: list[list[int]], cell: int) -> None:
    for rows in tops:
        for columns in lefts:
            canvas.rect(columns[0], rows[0], len(columns) * cell, len(rows) * cell, "dim")


def _fill(canvas: Canvas, matrix: Matrix, tops: list[list[int]], lefts: list[list[int]], cell: int) -> None:
    """Neighbours of one sort in a row of a band are one rectangle, and all of a sort one path."""
    ys, xs = [y for band in tops for y in band], [x for band in lefts for x in band]
    bands = [(x, number) for number, band in enumerate(lefts) for x in band]
    paths: dict[int, list[str]] = defaultdict(list)
    for row, y in enumerate(ys):
        known = [(x, band, matrix.cells.get((row, column))) for column, (x, band) in enumerate(bands)]
        for (_, sort), run in groupby(known, key=lambda place: (place[1], place[2] and place[2].sort)):
            places = list(run)
            if sort is not None:
                wide = len(places) * cell
                paths[sort].append(f"M{places[0][0]} {y}h{wide}v{cell}h{-wide}z")
    for sort, parts in sorted(paths.items()):
        kind, hatch, words = _look(matrix, sort)
        canvas.path("".join(parts), kind, words, hatch=hatch)
    if cell >= NAMED:
        _numbers(canvas, matrix, ys, xs, cell)
    if cell >= 6:
        for rows in tops:
            for columns in lefts:
                d = "".join(f"M{x} {rows[0]}v{len(rows) * cell}" for x in columns[1:])
                d += "".join(f"M{columns[0]} {y}h{len(columns) * cell}" for y in rows[1:])
                canvas.path(d, "grid")


def _numbers(canvas: Canvas, matrix: Matrix, ys: list[int], xs: list[int], cell: int) -> None:
    """The NIC of each cell that has one."""
    numbered = [(at, cell) for at, cell in sorted(matrix.cells.items()) if cell.nic >= 0]
    if cell < NUMBERED or len(numbered) > MOST_NUMBERS:
        return
    for (row, column), shown_cell in numbered:
        kind = "small onsolid" if SORTS[shown_cell.sort] == "NET+GDR" else "small strong halo"
        canvas.text(xs[column] + cell / 2, ys[row] + cell / 2 + 4, str(shown_cell.nic), kind, "middle")


def _frames(canvas: Canvas, matrix: Matrix, tops: list[list[int]], lefts: list[list[int]], cell: int) -> None:
    """A frame around the rows and the columns of each kind of host that stands out."""
    left, right, top, bottom = lefts[0][0], lefts[-1][-1] + cell, tops[0][0], tops[-1][-1] + cell
    for band, rows in zip(matrix.rows, tops, strict=True):
        if band.outlier:
            canvas.rect(
                left - 2, rows[0] - 2, right - left + 4, len(rows) * cell + 4, "outline", f"{band.title} differs"
            )
    for band, columns in zip(matrix.columns, lefts, strict=True):
        if band.outlier:
            canvas.rect(columns[0] - 2, top - 2, len(columns) * cell + 4, bottom - top + 4, "outline")


def _legend(canvas: Canvas, matrix: Matrix, y: float) -> float:
    counted = Counter(cell.sort for cell in matrix.cells.values())
    x = 0.0
    for sort in sorted(counted):
        kind, hatch, words = _look(matrix, sort)
        room = 30 + width_of(words)
        if x and x + room > WIDE:
            x, y = 0.0, y + 22
        canvas.path(f"M{spelt(x)} {spelt(y)}h14v14h-14z", kind, hatch=hatch)
        canvas.text(x + 20, y + 11, words)
        x += room + 12
    notes = ["rows send, columns receive"]
    if any(cell.nic >= 0 for cell in matrix.cells.values()):
        notes.append("a number is the NIC as the log counts them")
    if any(cell.several for cell in matrix.cells.values()):
        notes.append("several transports: the slowest is shown")
    if matrix.folded:
        notes.append("of equal hosts, ranks are counted inside the host")
    if matrix.left_out:
        notes.append(f"{plural(matrix.left_out, 'more kind')} of hosts not drawn")
    lines = wrap("; ".join(notes), WIDE, 10.5)
    for number, line in enumerate(lines):
        canvas.text(0, y + 36 + 15 * number, line, "small")
    return y + 30 + 15 * len(lines)


def _words(matrix: Matrix) -> str:
    hosts = sum(band.hosts for band in matrix.rows)
    texts = [band.title for band in matrix.rows if band.outlier]
    words = plural(hosts, "host")
    if matrix.folded:
        words += f" of {plural(len(matrix.rows) + matrix.left_out, 'kind')}"
    return f"{words}; different from the others: {few(texts)}" if texts else words
