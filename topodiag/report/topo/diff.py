"""`topo diff`: what differs between two machines, and what NCCL makes of either."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from topodiag.model.finding import Input
from topodiag.model.provenance import NotObserved
from topodiag.nccl.prediction import Prediction
from topodiag.nccl.topo.compare import Difference
from topodiag.report.answer import note_answer
from topodiag.report.documents.from_model import Document, document_of
from topodiag.report.grid import Field, draw_grid
from topodiag.report.terms import draw_assumed
from topodiag.report.text import Page, Part
from topodiag.report.topo.predict import GRAPHS
from topodiag.report.topo.what_if import NOT_FOUND, spell_graph
from topodiag.words.fold import fold_labels, plural


def draw_diff(
    page: Page,
    names: tuple[str, str],
    found: Sequence[Difference],
    made: tuple[Prediction, Prediction],
    not_compared: Sequence[NotObserved] = (),
) -> None:
    """Differences folded over devices, then the channels that NCCL finds on either side."""
    if found:
        verb = "matters" if len(found) == 1 else "matter"
        sign, hue, words = "▲", "warning", f"{plural(len(found), 'difference')} that {verb} to communication"
    else:
        sign, hue, words = "✔", "ok", "no difference that matters to communication"
        words += ", in what was compared" if not_compared else ""
    page.add(page.text((sign, hue), " "), words)
    note_answer(page, words, sign=sign, hue=hue)
    if page.style.quiet:
        return
    page.add("  left   ", (names[0], "strong"))
    page.add("  right  ", (names[1], "strong"))
    if found:
        page.blank()
        draw_grid(page, _FIELDS, [[devices, what, *_sides(left, right)] for devices, what, left, right in fold(found)])
    for gap in not_compared:
        page.add("  not compared  ", (f"{gap.what}: {gap.why}", "dim"))
    page.blank()
    rows: list[list[Part]] = []
    for number, title in GRAPHS.items():
        texts = [spell_graph(each, number) for each in made]
        if any(text not in ("", NOT_FOUND) for text in texts):
            rows.append([title, *_sides(texts[0], texts[1])])
    for each, name in zip(made, names, strict=True):
        if not each.accepted:
            page.add("  ", (f"{each.by} refuses {name}: ", "doubtful"), each.why)
    draw_assumed(page, made[0].assumed)
    if any(each.what.startswith("trained") for each in found):
        page.add(
            "  ", ("NCCL plans with the full speed of each link, so a link that trained lower changes no graph", "dim")
        )
    if rows:
        draw_grid(page, (Field(made[0].by), Field("left", least=12), Field("right", least=12)), rows)


_FIELDS = (Field("device", least=10), Field("what", least=8), Field("left", least=10), Field("right", least=10))


def _sides(left: str, right: str) -> list[Part]:
    hue = "doubtful" if left != right else "dim"
    return [(left or "-", hue), (right or "-", hue)]


def fold(found: Sequence[Difference]) -> list[tuple[str, str, str, str]]:
    """Devices that differ alike on one line."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for each in found:
        alike.setdefault((each.what, each.left, each.right), []).append(each.device)
    return [(fold_labels(devices), what, left, right) for (what, left, right), devices in alike.items()]


def diff_json(
    names: tuple[str, str],
    found: Sequence[Difference],
    made: tuple[Prediction, Prediction],
    inputs: Iterable[Input] = (),
    not_observed: Iterable[NotObserved] = (),
) -> Document:
    """`differences` one by one, and the graphs of either side as spelt in the table."""
    return document_of(
        "diff.DiffDocument",
        None,
        inputs=inputs,
        left=names[0],
        right=names[1],
        differences=found,
        graphs={
            title: (_graph(made[0], number), _graph(made[1], number))
            for number, title in GRAPHS.items()
            if any(each.graph(number) is not None for each in made)
        },
        not_observed=not_observed,
    )


def _graph(made: Prediction, number: int) -> str | None:
    text = spell_graph(made, number)
    return text if text not in {"", NOT_FOUND} else None
