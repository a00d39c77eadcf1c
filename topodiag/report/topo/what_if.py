"""Two topologies side by side: `topo diff`, what differs between two machines, and what NCCL makes of either; `topo
what-if`, before and after, and the sentence that an engineer would send to the data centre."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from topodiag.model.finding import Input
from topodiag.model.nccl_enums import GRAPH_OF
from topodiag.model.provenance import NotObserved
from topodiag.nccl.prediction import NO_NIC, Choice, PredictedGraph, Prediction
from topodiag.nccl.topo.answers import Compared, WhatIf
from topodiag.nccl.topo.compare import Difference
from topodiag.report.documents.from_model import Document, document_of
from topodiag.report.grid import Field, draw_assumed, draw_grid, draw_sides
from topodiag.report.text import Page, Part
from topodiag.report.topo.predict import (
    GRAPHS,
    NOT_FOUND,
    Names,
    channel_gbs,
    graph_rows,
    prediction_json,
    spell,
    spell_graph,
    virtual_names,
)
from topodiag.words.places import base_name
from topodiag.words.units import fold_labels, grouped, in_gbs, percent, plural, spell_bytes, spell_gbs, spell_us

FEW = 2
"""Up to so many pairs each has a line of its own."""

NOTICEABLE = 0.01
"""A change of time below this share is no change: the model's own figures are not better."""


def draw_what_if(page: Page, answer: WhatIf, name: str) -> None:
    """What changes, before and after in two columns, and the sentence; with --quiet the sentence alone."""
    before, after = answer.before, answer.after
    if page.style.quiet:
        page.add("", (sentence(answer), "strong"))
        return
    what = ", ".join(change.words for change in answer.changes)
    where = f"{before.by}, {plural(before.nodes, 'node')}, {plural(before.ranks, 'rank')}"
    page.add(page.text((base_name(name), "strong"), "  "), f"{what}  ", (where, "dim"))
    page.blank()
    draw_sides(page, ("", "before", "after"), _rows(answer))
    moved = moved_paths(before, after, {**answer.names, **virtual_names(before, after)})
    if moved:
        page.blank()
        for text in page.listed(moved, 6, "change"):
            page.add("  ", text)
    page.heading(sentence(answer), lead="  ")
    draw_assumed(page, after.assumed)


def _rows(answer: WhatIf) -> Iterator[tuple[str, str, str]]:
    before, after = answer.before, answer.after
    if not (before.accepted and after.accepted):
        yield "NCCL", _verdict(before), _verdict(after)
        return
    yield "ranks", str(before.ranks), str(after.ranks)
    if before.no_nic or after.no_nic:
        yield "between nodes", _between(before), _between(after)
        return
    yield "best path", in_gbs(before.max_bw), in_gbs(after.max_bw)
    yield from graph_rows(before, after)
    yield "channels", _channels(before), _channels(after)
    old_choice, new_choice = before.all_reduce, after.all_reduce
    title = f"all-reduce of {spell_bytes(answer.size)}"
    yield title, _choice(old_choice), _choice(new_choice)
    if old_choice and new_choice:
        yield "  time", spell_us(old_choice.time_us), spell_us(new_choice.time_us)
        yield "  busbw", in_gbs(old_choice.busbw_gbs), in_gbs(new_choice.busbw_gbs)


def _between(prediction: Prediction) -> str:
    return "TCP sockets" if prediction.no_nic else in_gbs(prediction.max_bw)


def _verdict(prediction: Prediction) -> str:
    return "accepts it" if prediction.accepted else f"refuses it: {prediction.why}"


def _channels(answer: Prediction) -> str:
    counts = answer.channels
    if counts is None:
        return "?"
    return f"{counts.coll}" + (f", {counts.nvls} NVLS" if counts.nvls else "")


def _choice(choice: Choice | None) -> str:
    return f"{choice.algorithm} {choice.protocol}" if choice else "none"


def moved_paths(before: Prediction, after: Prediction, names: Names) -> list[str]:
    """Paths whose type or bandwidth is another one, either direction once, those alike folded round the device that
    most of them share: `GPU3 to all other GPUs: NVL 370.8 -> 247.2 GB/s`."""
    alike: dict[str, list[tuple[str, str]]] = {}
    for a, row in before.paths.items():
        for b, (_, old_gbs, old_type) in row.items():
            new = after.paths.get(a, {}).get(b)
            if new is None or (new[1], new[2]) == (old_gbs, old_type) or not _is_endpoint_pair(a, b):
                continue
            pair = (a, b) if a < b else (b, a)
            pairs = alike.setdefault(_step(old_type, old_gbs, new[2], new[1]), [])
            if pair not in pairs:
                pairs.append(pair)
    gpus = {label for label in after.paths if label.startswith("GPU/")}
    return [f"{who}: {step}" for step, pairs in alike.items() for who in _folded(pairs, gpus, names)]


def _is_endpoint_pair(a: str, b: str) -> bool:
    """GPUs and NICs; the ways over processors and switches follow from them."""
    return {a.partition("/")[0], b.partition("/")[0]} <= {"GPU", "NET"} and a[:4] + b[:4] != "NET/NET/"


def _step(old_type: str, old: float, new_type: str, new: float) -> str:
    head = f"{old_type} {spell_gbs(old)} -> "
    return head + (in_gbs(new) if old_type == new_type else f"{new_type} {in_gbs(new)}")


def _folded(pairs: list[tuple[str, str]], gpus: set[str], names: Names) -> Iterator[str]:
    """Pairs round the device that most of them share, until none is left; many that share none in one phrase."""
    left = list(pairs)
    while left:
        if len(left) > FEW and len({label for pair in left for label in pair}) == 2 * len(left):
            # Sorted, the GPU of a pair comes before its NIC.
            yield " to ".join(fold_labels([spell(pair[at], names) for pair in left]) for at in (0, 1)) + ", one each"
            return
        tally = Counter(label for pair in left for label in pair)
        hub = max(tally, key=lambda label: (tally[label], label.startswith("GPU/")))
        others = [b if a == hub else a for a, b in left if hub in (a, b)]
        left = [pair for pair in left if hub not in pair]
        far = fold_labels([spell(label, names) for label in others])
        if len(others) > 1 and set(others) == gpus - {hub}:
            far = "all other GPUs" if hub in gpus else "all GPUs"
        yield f"{spell(hub, names)} to {far}"


def sentence(answer: WhatIf) -> str:
    """What an engineer would write to the data centre, in one or two sentences."""
    what = ", ".join(change.words for change in answer.changes)
    before, after = answer.before, answer.after
    if not before.accepted:
        return f"{before.by} already refuses the topology as it is: {before.why}."
    if not after.accepted:
        return f"With {what}, {after.by} no longer starts on this machine: {after.why}."
    if before.no_nic or after.no_nic:
        return f"{'As it is' if before.no_nic else f'With {what}'}: {NO_NIC}."
    old, new = before.all_reduce, after.all_reduce
    if old is None or new is None:
        return f"With {what}, no all-reduce can be compared."
    on = f"an all-reduce of {spell_bytes(answer.size)} over {plural(after.ranks, 'GPU')}"
    lost = new.time_us / old.time_us - 1
    if abs(lost) < NOTICEABLE:
        took = spell_us(new.time_us)
        return f"With {what}, {on} takes as long as before ({took} by NCCL's model): no loss to expect."
    ratio = new.time_us / old.time_us
    by = f"{ratio:.1f} times as long" if ratio >= 2 else f"{percent(abs(lost))} {'longer' if lost > 0 else 'less'}"
    text = (
        f"With {what}, {on} takes {spell_us(new.time_us)} instead of {spell_us(old.time_us)} ({by}): bus bandwidth"
        f" {in_gbs(new.busbw_gbs)} instead of {spell_gbs(old.busbw_gbs)}"
    )
    return text + _why(before, after) + "."


def _why(before: Prediction, after: Prediction) -> str:
    """What the search finds now for the algorithm that was to run, and whether another one must run."""
    old, new = before.all_reduce, after.all_reduce
    reasons = []
    number = GRAPH_OF.get(old.algorithm) if old is not None else None
    if number is not None:
        then, now = before.graph(number), after.graph(number)
        word = GRAPHS[number]
        if then is not None and then.channels and (now is None or not now.channels):
            reasons.append(f"NCCL finds no {word} channel any more")
        elif then is not None and now is not None and _figures(before, then) != _figures(after, now):
            (count, gbs), (was, of) = _figures(after, now), _figures(before, then)
            reasons.append(
                f"the {word} search finds {plural(count, 'channel')} of {in_gbs(gbs)} where it found {was} of"
                f" {spell_gbs(of)}"
            )
    if old is not None and new is not None and old.algorithm != new.algorithm:
        reasons.append(f"{new.algorithm} runs instead of {old.algorithm}")
    return f", because {' and '.join(reasons)}" if reasons else ""


def _figures(prediction: Prediction, graph: PredictedGraph) -> tuple[int, float]:
    return graph.channels, channel_gbs(prediction, graph) if graph.channels else 0.0


def what_if_json(answer: WhatIf, inputs: Iterable[Input] = (), not_observed: Iterable[NotObserved] = ()) -> Document:
    """Both predictions, and what an engineer would write."""
    return document_of(
        "what-if.WhatIfDocument",
        answer,
        inputs=inputs,
        changes=[change.words for change in answer.changes],
        before=prediction_json(answer.before),
        after=prediction_json(answer.after),
        sentence=sentence(answer),
        not_observed=not_observed,
    )


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
