"""A fleet: nodes by parts as a heat map, classes of nodes, odd numbers beside the usual ones with their nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from topodiag.draw.svg import Canvas, undrawn, width_of
from topodiag.model.finding import Finding, Severity
from topodiag.model.fleet import FleetResult, Outlier, spelled
from topodiag.words.hosts import natural, short_names
from topodiag.words.units import few, grouped, number, plural, read_number, short_hosts

WIDE, LABEL, TOP = 640, 250, 66
"""The picture, the names of classes or facts, and what stands above the rows, px."""
NODES, CELL, ROW, CHECKS = 166, 28, 26, 138
"""The names of nodes before the heat map, its cells, a row, and the room of the checks behind it, px."""
MOST_ROWS, MOST_PARTS, MOST_STRIPS, MOST_CLASSES = 40, 16, 16, 16
HOSTS = 24
"""Characters of a set of nodes before its row."""
BYTES = "bytes"
WHOLE = "node"
"""The column of findings that name no part."""
_LOOKS = {
    Severity.ERROR: ("bad", "badhatch", "E"), Severity.WARNING: ("warn", "", "W"), Severity.INFO: ("netbox", "", "i"),
}  # fmt: skip
"""Class, hatch and letter of a cell."""


def draw_parts(nodes: Sequence[str], findings: Iterable[Finding], *, prefix: str = "") -> str:
    """Nodes by parts: nodes with the same findings on the same parts are one row, those without any are the last. ""
    for a single node, and where nothing was found."""
    cells = _cells(nodes, findings)
    if len(nodes) < 2 or not any(cells.values()):
        return ""
    parts = _parts(part for cell in cells.values() for part in cell)
    names = dict(zip(nodes, short_names(nodes), strict=True))
    groups = grouped(
        (tuple(sorted((part, severity, checks) for part, (severity, checks) in cells[node].items())), names[node])
        for node in nodes
    )
    ordered = sorted(groups.items(), key=lambda item: (not item[0], -max((s for _, s, _ in item[0]), default=0),
                                                       -len(item[0]), len(item[1])))  # fmt: skip
    faulty = sum(bool(cell) for cell in cells.values())
    desc = f"{faulty} of {plural(len(nodes), 'node')} with findings"
    canvas = Canvas("Nodes by parts", desc, prefix)
    canvas.title_lines(desc)
    top = TOP + max(width_of(part, 10.5) for part in parts)
    for column, part in enumerate(parts):
        canvas.text(NODES + column * CELL + CELL / 2 + 4, top - 8, part, "small", turned=True)
    for row, (by_node, hosts) in enumerate(ordered[:MOST_ROWS]):
        _row(canvas, top + row * ROW, hosts, by_node, parts)
    y = top + len(ordered[:MOST_ROWS]) * ROW + 22
    unseen = len({part for cell in cells.values() for part in cell}) - len(parts)
    words = undrawn("E error, W warning, i information; an empty cell has no finding", unseen, "part")
    canvas.text(0, y, undrawn(words, len(ordered) - MOST_ROWS, "row"), "small")
    return canvas.document(max(NODES + len(parts) * CELL + CHECKS, 520), y + 8)


def _cells(nodes: Sequence[str], findings: Iterable[Finding]) -> dict[str, dict[str, tuple[Severity, tuple[str, ...]]]]:
    """By node and part, the worst severity and the checks."""
    by_node: dict[str, dict[str, tuple[Severity, tuple[str, ...]]]] = {node: {} for node in nodes}
    for finding in findings:
        parts = (*finding.where.gpus, *finding.where.nics) or (WHOLE,)
        for node in finding.where.nodes:
            if node not in by_node:
                continue
            for part in parts:
                severity, checks = by_node[node].get(part, (finding.severity, ()))
                known = checks if finding.id in checks else (*checks, finding.id)
                by_node[node][part] = (max(severity, finding.severity), known)
    return by_node


def _parts(parts: Iterable[str]) -> list[str]:
    """Columns: GPUs, then NICs by number; of very many the first, and always the one of the node as a whole."""

    known = sorted(set(parts), key=lambda part: (part == WHOLE, not part.startswith("GPU"), natural(part)))
    whole = [WHOLE] if WHOLE in known else []
    return [part for part in known if part != WHOLE][: MOST_PARTS - len(whole)] + whole


def _row(
    canvas: Canvas, y: float, hosts: Sequence[str], rows: Sequence[tuple[str, Severity, tuple[str, ...]]],
    parts: Sequence[str],
) -> None:  # fmt: skip
    count = f"x {len(hosts)}" if len(hosts) > 1 else ""
    canvas.text(0, y + 17, short_hosts(hosts, HOSTS), "name" if rows else "quiet", room=NODES - (56 if count else 14))
    canvas.text(NODES - 10, y + 17, count, "name" if rows else "quiet", "end")
    by_part = {part: (severity, checks) for part, severity, checks in rows}
    for column, part in enumerate(parts):
        x = NODES + column * CELL
        if part not in by_part:
            canvas.rect(x + 1, y + 1, CELL - 2, ROW - 2, "grid")
            continue
        severity, checks = by_part[part]
        kind, hatch, letter = _LOOKS[severity]
        canvas.rect(x + 2, y + 2, CELL - 4, ROW - 4, kind, f"{part}: {', '.join(checks)}", hatch=hatch)
        canvas.text(x + CELL / 2, y + 17, letter, "name halo", "middle")
    listed = list(dict.fromkeys(check for _, _, checks in rows for check in checks))
    if listed:
        kind = "badtext" if any(severity is Severity.ERROR for _, severity, _ in rows) else "name"
        canvas.text(NODES + len(parts) * CELL + 8, y + 17, few(listed, 3), kind, room=CHECKS - 8)


def draw_classes(result: FleetResult, *, prefix: str = "") -> str:
    """Each class of nodes that may be compared: how many are to be left out, how many are odd, how many are like most.
    "" without a class."""
    if not result.cohorts:
        return ""
    out = set(result.failed)
    words = f"{plural(len(result.nodes), 'node')} in {plural(len(result.cohorts), 'class', 'classes')}"
    canvas = Canvas("Classes of nodes", words, prefix)
    canvas.title_lines(words)
    most = max(len(cohort.nodes) for cohort in result.cohorts)
    shown = sorted(result.cohorts, key=lambda cohort: -len(cohort.nodes))[:MOST_CLASSES]
    for row, cohort in enumerate(shown):
        y = TOP + row * (ROW + 12)
        texts = {node for outlier in cohort.outliers for node in outlier.nodes} - out
        failed = [node for node in cohort.nodes if node in out]
        canvas.text(0, y + 15, cohort.name, "name", room=LABEL - 14)
        x, room = LABEL + 12.0, WIDE - LABEL - 242
        rest = len(cohort.nodes) - len(failed) - len(texts)
        for count, kind, hatch in (
            (rest, "good", ""),
            (len(texts), "warn", "warnhatch"),
            (len(failed), "bad", "badhatch"),
        ):
            if count:
                wide = max(room * count / most, 3)
                canvas.rect(x, y, wide, ROW - 6, kind, hatch=hatch)
                x += wide
        parts = [plural(len(cohort.nodes), "node")]
        parts += [f"{len(texts)} odd"] if texts else []
        parts += [f"{len(failed)} to exclude"] if failed else []
        canvas.text(x + 10, y + 15, ", ".join(parts), "badtext" if failed else "", room=WIDE - x - 10)
    y = TOP + len(shown) * (ROW + 12) + 12
    canvas.text(0, y, "plain: like most of its class; hatched: odd, or to be excluded", "small")
    return canvas.document(WIDE, y + 8)


def draw_strips(result: FleetResult, *, prefix: str = "") -> str:
    """Odd numbers on a line each: the usual value, how many have it, and the outliers with their nodes. "" where no
    number stands out."""
    strips = _strips(result)
    if not strips:
        return ""
    words = f"{plural(len(strips), 'number')} with outliers"
    canvas = Canvas("Outliers", f"{words}: {few([_strip_name(strip[0]) for strip in strips])}", prefix)
    canvas.title_lines(words)
    high = 52
    for row, strip in enumerate(strips[:MOST_STRIPS]):
        _strip(canvas, strip, TOP + row * high + 16)
    y = TOP + min(len(strips), MOST_STRIPS) * high + 12
    note = "bar: the usual value of the class; diamond: an outlier"
    canvas.text(0, y, undrawn(note, len(strips) - MOST_STRIPS, "number"), "small")
    return canvas.document(WIDE, y + 8)


def _strips(result: FleetResult) -> list[list[Outlier]]:
    """The outliers of each number of a class, the lowest first."""
    groups = grouped(
        ((outlier.family, outlier.key, outlier.parts, outlier.usual), outlier)
        for cohort in result.cohorts
        for outlier in cohort.outliers
        if _number(outlier.value) is not None and _number(outlier.usual) is not None
    )
    return [
        sorted(outliers, key=lambda outlier: (_number(outlier.value) or 0.0, outlier.nodes))
        for outliers in groups.values()
    ]


def _strip_name(outlier: Outlier) -> str:
    parts = few([part for part in outlier.parts if part], 3)
    return " ".join(dict.fromkeys([parts, outlier.family, outlier.key])).strip()


def _number(text: str) -> float | None:
    return read_number(text.split(" ", maxsplit=1)[0])


def _figure(value: float, unit: str) -> str:
    return spelled(number(value), unit) if unit == BYTES else f"{number(value)} {unit}".strip()


def _strip(canvas: Canvas, outliers: Sequence[Outlier], y: float) -> None:
    first = outliers[0]
    middle, unit = _number(first.usual) or 0.0, first.unit
    values = [_number(outlier.value) or 0.0 for outlier in outliers]
    low, high = min(middle, *values), max(middle, *values)
    span = (high - low) or 1.0
    left, room = LABEL + 20.0, WIDE - LABEL - 140.0

    def at(value: float) -> float:
        return left + room * (value - low) / span

    canvas.text(0, y + 4, _strip_name(first), "name", room=LABEL - 10)
    canvas.line(left - 8, y, left + room + 8, y, "grid")
    usual = at(middle)
    canvas.rect(usual - 2.5, y - 9, 5, 18, "inkfill", "usual")
    side = "end" if usual > left + room * 0.7 else "middle" if usual > left + 60 else ""
    canvas.text(usual, y + 23, f"{_figure(middle, unit)}, {first.usual_count} of {first.total}", "small", side)
    last = -1e9
    for outlier, value in zip(outliers, values, strict=True):
        x = at(value)
        canvas.path(f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6-6z", "badsolid", ", ".join(outlier.nodes))
        words = f"{few(short_names(outlier.nodes), 2)}: {_figure(value, unit if unit == BYTES else '')}"
        wide = width_of(words)
        start = min(max(x - wide / 2, left - 8), WIDE - wide)
        if start > last:  # a label that would cover the one before stays in the tooltip
            canvas.text(start, y - 11, words, "badtext")
            last = start + wide + 8
