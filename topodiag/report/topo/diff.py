"""`topo diff`: what differs between two machines, and what NCCL makes of either."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from topodiag.model.finding import Input
from topodiag.model.provenance import NotObserved
from topodiag.nccl.prediction import Prediction
from topodiag.nccl.topo.answers import Compared
from topodiag.nccl.topo.compare import Difference
from topodiag.report.documents.from_model import Document, document_of
from topodiag.report.grid import Field, draw_grid, draw_sides
from topodiag.report.terms import draw_assumed
from topodiag.report.text import Page, Part
from topodiag.report.topo.predict import GRAPHS, NOT_FOUND, graph_rows, spell_graph
from topodiag.words.units import fold_labels, grouped, plural


def draw_diff(page: Page, names: tuple[str, ...], compared: Compared) -> None:
    """Differences folded over devices, then the channels that NCCL finds on either side."""
    differences, pair = compared.differences, compared.predictions
    if differences:
        verb = "matters" if len(differences) == 1 else "matter"
        sign, hue, words = "▲", "warning", f"{plural(len(differences), 'difference')} that {verb} to communication"
    else:
        sign, hue, words = "✔", "ok", "no difference that matters to communication"
        words += ", in what was compared" if compared.not_compared else ""
    page.add(page.text((sign, hue), " "), words)
    page.note_answer(words, sign=sign, hue=hue)
    if page.style.quiet:
        return
    page.add("  left   ", (names[0], "strong"))
    page.add("  right  ", (names[1], "strong"))
    if differences:
        page.blank()
        rows = [[devices, what, *_sides(left, right)] for devices, what, left, right in fold(differences)]
        draw_grid(page, _FIELDS, rows)
    for gap in compared.not_compared:
        page.add("  not compared  ", (f"{gap.what}: {gap.why}", "dim"))
    page.blank()
    for prediction, name in zip(pair, names, strict=True):
        if not prediction.accepted:
            page.add("  ", (f"{prediction.by} refuses {name}: ", "doubtful"), prediction.why)
    draw_assumed(page, pair[0].assumed)
    if any(difference.what.startswith("trained") for difference in differences):
        words = "NCCL plans with the full speed of each link, so a link that trained lower changes no graph"
        page.add("  ", (words, "dim"))
    if graphs := list(graph_rows(*pair)):
        draw_sides(page, (pair[0].by, "left", "right"), graphs)


_FIELDS = (Field("device", least=10), Field("what", least=8), Field("left", least=10), Field("right", least=10))


def _sides(left: str, right: str) -> list[Part]:
    hue = "doubtful" if left != right else "dim"
    return [(left or "-", hue), (right or "-", hue)]


def fold(differences: Sequence[Difference]) -> list[tuple[str, str, str, str]]:
    """Devices that differ alike on one line."""
    alike = grouped(((change.what, change.left, change.right), change.device) for change in differences)
    return [(fold_labels(devices), what, left, right) for (what, left, right), devices in alike.items()]


def diff_json(
    names: tuple[str, ...], compared: Compared, inputs: Iterable[Input] = (), not_observed: Iterable[NotObserved] = ()
) -> Document:
    """`differences` one by one, and the graphs of either side as spelt in the table."""
    pair = compared.predictions
    return document_of(
        "diff.DiffDocument",
        compared,
        inputs=inputs,
        left=names[0],
        right=names[1],
        graphs={
            title: (_graph(pair[0], number), _graph(pair[1], number))
            for number, title in GRAPHS.items()
            if any(prediction.graph(number) is not None for prediction in pair)
        },
        not_observed=not_observed,
    )


def _graph(prediction: Prediction, number: int) -> str | None:
    text = spell_graph(prediction, number)
    return text if text not in {"", NOT_FOUND} else None
