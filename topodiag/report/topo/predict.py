"""`topo predict`: what NCCL would choose on a topology, drawn for a terminal, and as the machine-readable result."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from topodiag.model.finding import Input
from topodiag.model.nccl_enums import BY_WEIGHT, Graph, Pattern
from topodiag.model.nccl_versions import Feature, has, minor_of, spell_version
from topodiag.model.provenance import NotObserved
from topodiag.nccl.prediction import NO_NIC, Choice, PredictedGraph, Prediction
from topodiag.report.documents.from_model import VERSIONS, Document, document_of, from_model
from topodiag.report.grid import Columns, Entry, Field, draw_grid, draw_table, draw_terms, figure
from topodiag.report.node.matrix import hue_of
from topodiag.report.text import Page, Part
from topodiag.words.places import base_name
from topodiag.words.units import in_gbs, neighbours, plural, spell_bytes, spell_gbs, spell_us

PATTERNS = {int(pattern): pattern.words for pattern in Pattern}
GRAPHS = {int(graph): graph.words for graph in Graph}
Names = Mapping[str, str]
"""The devices behind NCCL's labels."""


def draw_prediction(
    page: Page, prediction: Prediction, name: str, *, names: Names | None = None, explain: bool = False
) -> None:
    """Verdict, system, graphs, channels, choices by size; with `explain` every term of the derivation. `names` are the
    devices behind NCCL's labels."""
    draw_verdict(page, prediction, name)
    if not prediction.accepted or page.style.quiet:
        return
    page.blank()
    if prediction.no_nic:
        page.add(page.text("  ", ("!", "doubtful"), " "), NO_NIC)
    else:
        draw_graphs(page, prediction, {**(names or {}), **virtual_names(prediction)})
    _draw_lost_tree(page, prediction)
    page.blank()
    draw_paths(page, prediction)
    _draw_virtual_nics(page, prediction)
    draw_choices(page, prediction)
    if page.style.verbose:
        draw_tuning(page, prediction)
    if explain:
        draw_terms(page, [(term.name, term.value, term.formula) for term in prediction.terms], room=FORMULA)


def virtual_names(*predictions: Prediction) -> dict[str, str]:
    """Labels of virtual NICs by the ports that they are made of."""
    return {nic.label: nic.name for prediction in predictions for nic in prediction.virtual_nics}


def draw_verdict(page: Page, prediction: Prediction, name: str) -> None:
    """One line whether NCCL takes it, and what it then sees."""
    if not prediction.accepted:
        place = base_name(name) + (f":{prediction.line}" if prediction.line else "")
        words = f"{prediction.by} refuses it: {prediction.why}"
        page.add(page.text(("✖", "error"), " ", (place, "strong"), "  "), words)
        page.note_answer(words, sign="✖", hue="error", name=place)
        return
    hosts = plural(prediction.nodes, "node")
    seen = "" if prediction.nccl_nodes in (0, prediction.nodes) else f" ({prediction.nccl_nodes} nodes to NCCL)"
    words = f"{prediction.by} on {hosts}{seen}, {plural(prediction.ranks, 'rank')}"
    page.add(page.text(("✔", "ok"), " ", (base_name(name), "strong"), "  "), words)
    items = [] if prediction.no_nic else [f"best path {in_gbs(prediction.max_bw)}"]
    items.append(f"{in_gbs(prediction.total_bw)} per GPU in all")
    answer = ", ".join([words, *items]) + (f"; {NO_NIC}" if prediction.no_nic else "")
    page.note_answer(answer, sign="✔", hue="ok", name=base_name(name))
    if page.style.quiet:
        return
    if prediction.channels is not None:
        counts = prediction.channels
        kinds = (("coll", counts.coll), ("collnet", counts.collnet), ("nvls", counts.nvls), ("p2p", counts.p2p))
        words = ", ".join(f"{count} {kind}" for kind, count in kinds if count)
        items.append(f"channels: {words}, {counts.p2p_per_peer} per peer")
    page.add_items("  ", items)
    if prediction.decided_by:
        page.add("  ", f"its rings come from {prediction.decided_by}")


FORMULA = 44
"""Columns that the formula must have beside them; with less it has a line of its own."""


def over_network(prediction: Prediction) -> bool:
    """Whether NCCL sees more than one node, so that there are ways to NICs at all."""
    return (prediction.nccl_nodes or prediction.nodes) > 1


NOT_FOUND = "not found"


def channel_gbs(prediction: Prediction, graph: PredictedGraph) -> float:
    """What one channel of a graph carries: between nodes, or on the only one."""
    return graph.bw_inter if over_network(prediction) else graph.bw_intra


def total_gbs(prediction: Prediction, graph: PredictedGraph) -> float | None:
    """What all channels carry. None for NVLS on one node: there a channel's figure is that of one head, and what comes
    of it NCCL's tuning alone says."""
    if graph.id == Graph.NVLS and not over_network(prediction):
        return None
    return graph.channels * channel_gbs(prediction, graph)


def draw_graphs(page: Page, prediction: Prediction, names: Names) -> None:
    """What the searches found, and the first channel of each. On one node nothing goes to NICs."""
    far = over_network(prediction)
    # Where a search found nothing its word must stay, so the pattern cannot go.
    missing = any(not graph.channels for graph in prediction.graphs)
    columns: Columns[PredictedGraph] = {
        Field("pattern", drop=0 if missing else 3): lambda graph: PATTERNS.get(graph.pattern, str(graph.pattern)),
        Field("channels", right=True): lambda graph: graph.channels,
        Field("GB/s inside" if far else "GB/s each", right=True, drop=1): lambda graph: spell_gbs(graph.bw_intra),
        Field("to NICs", right=True): lambda graph: spell_gbs(graph.bw_inter) if far else "",
        Field("in all", right=True): lambda graph: figure(total_gbs(prediction, graph), spell_gbs, hue="strong"),
        Field("paths" if far else "path"): lambda graph: path_types(prediction, graph),
        Field("crossNic", right=True, drop=4): lambda graph: ("yes" if graph.cross_nic else "no") if far else "",
        Field("first channel", least=16, drop=2): lambda graph: spell_order(next(iter(graph.orders), ()), names),
    }
    rows: list[list[Entry]] = []
    for graph in prediction.graphs:
        cells = [cell(graph) for cell in columns.values()] if graph.channels else [(NOT_FOUND, "doubtful"), *[""] * 7]
        rows.append([(GRAPHS.get(graph.id, "?"), "name"), *cells])
    if rows:
        draw_grid(page, (Field("graph"), *columns), rows)


def path_types(prediction: Prediction, graph: PredictedGraph) -> str:
    """`NVL, PIX`: the path types inside a node and, where there is more than one, to the NICs."""
    return f"{graph.type_intra}, {graph.type_inter}" if over_network(prediction) else graph.type_intra


def spell_graph(prediction: Prediction, number: int) -> str:
    """`8 × 48 = 384 GB/s, NVL, PIX`, on one node without the way to the NICs; "" where the graph was not asked for."""
    graph = prediction.graph(number)
    if graph is None:
        return ""
    if not graph.channels:
        return NOT_FOUND
    total = total_gbs(prediction, graph)
    gbs = channel_gbs(prediction, graph)
    sum_of_all = in_gbs(gbs) if total is None else f"{spell_gbs(gbs)} = {in_gbs(total)}"
    return f"{graph.channels} × {sum_of_all}, {path_types(prediction, graph)}"


def graph_rows(before: Prediction, after: Prediction) -> Iterator[tuple[str, str, str]]:
    """Each graph that either side has, with what it comes to on both."""
    for number, title in GRAPHS.items():
        old, new = spell_graph(before, number), spell_graph(after, number)
        if {old, new} - {"", NOT_FOUND}:
            yield title, old or NOT_FOUND, new or NOT_FOUND


def spell(label: str, names: Names) -> str:
    return names.get(label, label)


def spell_order(order: Iterable[str], names: Names) -> str:
    """A channel from NET over the GPUs to NET; GPUs in a row without their word: `mlx5_0 GPU 0 1 2 3 mlx5_0`."""
    words: list[str] = []
    for label in order:
        word = spell(label, names)
        number = re.fullmatch(r"GPU([0-9]{1,4})", word)
        if number is None:
            words.append(word.removeprefix("GPU/"))
        elif words and (words[-1].isdigit()):
            words.append(number[1])
        else:
            words += ["GPU", number[1]]
    return " ".join(words)


def _draw_lost_tree(page: Page, prediction: Prediction) -> None:
    if not prediction.lost_tree:
        return
    page.blank()
    why = "no tree was found: its stand-in has one channel, and NCCL cuts the rings down to that"
    bound = Feature.TREES_BOUND_BY_PXN
    if has(minor_of(prediction.version), bound):
        others = f"{spell_version(bound.since - 1)} and {spell_version(bound.until + 1)}"
        why += f"; NCCL {others} find one, and this version may with --env NCCL_PXN_DISABLE=1"
    page.add(page.text("  ", ("✖", "error"), " "), why)


def draw_paths(page: Page, prediction: Prediction) -> None:
    """How many pairs are joined by which type: a matrix for few GPUs is `topo show`'s to draw."""
    gpus = [label for label in prediction.paths if label.startswith("GPU/")]
    for title, kind in (("GPU to GPU", "GPU/"), ("GPU to NIC", "NET/")):
        counted = Counter(
            (prediction.paths[a][b][2], prediction.paths[a][b][1])
            for a in gpus
            for b in prediction.paths[a]
            if b != a and b.startswith(kind)
        )
        words: list[Part] = [
            page.text((word, hue_of(word)), f" {in_gbs(gbs)} ×{count}")
            for (word, gbs), count in sorted(counted.items(), key=lambda item: (-item[1], item[0]))
        ]
        page.add_items(page.text("  ", (f"{title}  ", "dim")), words)


def _draw_virtual_nics(page: Page, prediction: Prediction) -> None:
    """The devices that NCCL makes of several ports, folded by speed."""
    by_speed = groupby(sorted(prediction.virtual_nics, key=lambda nic: -nic.gbs), key=lambda nic: nic.gbs)
    words: list[Part] = [f"{', '.join(nic.name for nic in nics)} {in_gbs(gbs)} each" for gbs, nics in by_speed]
    page.add_items(page.text("  ", ("virtual NICs  ", "dim")), words)


_CHOICES: Columns[list[Choice]] = {
    Field("bytes"): lambda run: (
        spell_bytes(run[0].bytes) + (f" - {spell_bytes(run[-1].bytes)}" if len(run) > 1 else "")
    ),
    Field("algorithm"): lambda run: run[-1].algorithm,
    Field("protocol"): lambda run: run[-1].protocol,
    Field("time", right=True): lambda run: spell_us(run[-1].time_us),
    Field("busbw GB/s", right=True): lambda run: (spell_gbs(run[-1].busbw_gbs), "strong"),
}


def draw_choices(page: Page, prediction: Prediction) -> None:
    """For each collective the ranges of sizes in which NCCL keeps to one algorithm and protocol."""
    for collective in BY_WEIGHT:
        mine = [choice for choice in prediction.choices if choice.collective == collective]
        if not mine or (collective != "AllReduce" and not page.style.verbose):
            continue
        page.heading(collective, ("  what NCCL would run, its own estimate at the upper size", "dim"), lead="  ")
        draw_table(page, _CHOICES, ranges_of(mine))
    if prediction.choices and prediction.left_out:
        page.add("  ", (prediction.left_out, "dim"))


def ranges_of(choices: Sequence[Choice]) -> list[list[Choice]]:
    """Neighbouring sizes with one algorithm and protocol."""
    return neighbours(choices, key=lambda choice: (choice.algorithm, choice.protocol))


def draw_tuning(page: Page, prediction: Prediction) -> None:
    """The tuning table: latency and algorithm bandwidth of each combination in use."""
    rows: list[list[Part]] = [
        [collective, algorithm, protocol, f"{latency:.1f}", spell_gbs(gbs)]
        for collective, algorithms in prediction.tuning.items()
        for algorithm, protocols in algorithms.items()
        for protocol, (latency, gbs) in protocols.items()
        if gbs > 0
    ]
    if rows:
        note = "  algorithm bandwidth; busbw = it × 2(n-1)/n for AllReduce"
        page.heading("tuning table", (note, "dim"), lead="  ")
        draw_grid(page, (Field("collective"), Field("algorithm"), Field("protocol"), Field("us", right=True),
                         Field("GB/s", right=True)), rows)  # fmt: skip


def predict_json(
    prediction: Prediction, inputs: Iterable[Input] = (), not_observed: Iterable[NotObserved] = ()
) -> Document:
    """The published shape of `topo predict --format json`: schema/predict-1.0.schema.json."""
    given = {"inputs": inputs, "not_observed": not_observed, "line": prediction.line or None, "system": prediction}
    return document_of("predict.PredictDocument", prediction, **given)


def prediction_json(prediction: Prediction) -> Document:
    """The decisions alone, as `topo what-if` prints them twice."""
    given = {"schema_version": VERSIONS["what-if"], "line": prediction.line or None, "system": prediction}
    return from_model("what-if.Prediction", prediction, **given)
