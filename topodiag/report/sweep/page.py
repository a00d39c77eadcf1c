"""What a sweep found, on a page: faults first, then suspects, gaps between placements, and the matrix; and for programs
everything on the page, every run, and the faults as findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from topodiag.draw.heat import heat
from topodiag.model.finding import Input
from topodiag.report.documents.from_model import Document, document_of, from_model
from topodiag.report.findings import draw_findings
from topodiag.report.grid import UNKNOWN, Cell, Columns, Field, draw_listed, draw_table
from topodiag.report.text import Page, Part
from topodiag.sweep.parts import GAP_ID, SEVERE_SHARE, fault_words, severe, sweep_findings, untold
from topodiag.sweep.values import Fabric, Fault, JudgedRun, Standing, SweepJudgement, SweepPlan
from topodiag.words.units import fold_hosts, plural, spell_gbs

_SHOWN_FAULTS = 20
_LEAST_LABEL, _MOST_LABEL = 4, 24


def draw_sweep(page: Page, judged: SweepJudgement, plans: Sequence[SweepPlan], further: SweepPlan | None) -> None:
    """The verdict, then everything that explains it. `further` is the next round's plan, if there is one to make."""
    fabric = plans[-1].fabric
    page.add("", _verdict(judged))
    page.note_answer(_verdict(judged))
    if not page.style.quiet:
        page.add("  ", (_extent(judged, plans), "dim"))
    draw_findings(page, sweep_findings(judged, fabric), several_nodes=True, most=_SHOWN_FAULTS)
    if page.style.quiet:
        return
    _draw_settings(page, judged)
    _draw_rails(page, judged, fabric)
    if len(fabric.nodes) > 1:
        page.heading("pairs of nodes, by share of what is normal (the diagonal: inside the node)")
        _draw_heat(page, judged, fabric)
    for note in judged.notes:
        page.blank()
        page.add("note: ", note)
    if further is not None:
        page.blank()
        runs, waves = plural(len(further.runs), "run"), plural(further.waves, "wave")
        page.add("next: ", f"round {further.round}, {runs} in {waves}")


def _verdict(judged: SweepJudgement) -> Part:
    confirmed, suspects = len(judged.confirmed), len(judged.suspects)
    if confirmed:
        rest = f", {plural(suspects, 'suspect')}" if suspects else ""
        return (f"{plural(confirmed, 'fault')} found{rest}", "error")
    if suspects:
        return (f"{plural(suspects, 'suspect')}, none confirmed yet", "warning")
    if not any(run.standing is Standing.NORMAL for run in judged.runs):
        return ("nothing could be judged", "unknown")
    unknown = sum(run.standing is Standing.UNKNOWN for run in judged.runs)
    rest = f" ({unknown} of {plural(len(judged.runs), 'run')} not judged)" if unknown else ""
    return (f"no part is slower than its like{rest}", "ok")


def _extent(judged: SweepJudgement, plans: Sequence[SweepPlan]) -> str:
    states = {standing: sum(run.standing is standing for run in judged.runs) for standing in Standing}
    counts = ((len(plans[-1].fabric.nodes), "node"), (len(plans), "round"), (len(judged.runs), "run"))
    words = ", ".join(plural(count, word) for count, word in counts) + ": "
    words += ", ".join(f"{count} {standing.value}" for standing, count in states.items() if count)
    return words + (f"; {judged.missing} not done yet" if judged.missing else "")


def _draw_settings(page: Page, judged: SweepJudgement) -> None:
    runs = [run for run in judged.runs if run.run.kind == "settings"]
    if not runs:
        return
    page.heading("algorithm x protocol x collective, all nodes, at the greatest size")
    columns: Columns[JudgedRun] = {
        Field("collective"): lambda run: run.run.collective,
        Field("algorithm"): lambda run: run.run.algorithm or "NCCL's choice",
        Field("protocol"): lambda run: run.run.protocol or ("NCCL's choice" if run.run.algorithm else ""),
        Field("busbw GB/s", least=10): lambda run: (
            spell_gbs(run.gbs) if run.gbs is not None else (run.why or "-", "warning")
        ),
    }
    draw_table(page, columns, sorted(runs, key=lambda run: (run.run.collective, -(run.gbs or 0.0))))


def _draw_rails(page: Page, judged: SweepJudgement, fabric: Fabric) -> None:
    """Nodes under suspicion whose rails were measured one by one."""
    nodes, columns = rails_of(judged, fabric)
    accused = {part.place for fault in judged.faults for part in fault.parts if part.kind in {"link", "pcie", "host"}}
    racks = {part.place for fault in judged.faults for part in fault.parts if part.kind in {"leaf", "uplink"}}
    # The best run over a rail is what its port can do; of other nodes it would be their partner's fault.
    slow = [node for node in nodes if node in accused or fabric.racks.get(node) in racks]
    if slow:
        page.heading("nodes by rail: the best run over each, per cent of normal")
        draw_listed(page, columns, slow, 16, "node")


def rails_of(judged: SweepJudgement, fabric: Fabric) -> tuple[list[str], Columns[str]]:
    """The nodes whose rails were measured one by one, and how much of normal the best run over each rail reached."""
    ordered = sorted(judged.runs, key=lambda run: run.share or 0.0, reverse=True)
    best = {
        (node, run.run.rail): run
        for run in reversed(ordered)  # the last one stays
        if run.run.kind == "rails" and run.share is not None
        for node in run.run.nodes
    }
    measured = {node for node, _ in best}

    def share(rail: int, node: str) -> Cell:
        run = best.get((node, rail))
        if run is None or run.share is None:
            return Cell(("-", "dim"), UNKNOWN)
        hue = "" if run.standing is not Standing.LOW else "error" if run.share < SEVERE_SHARE else "doubtful"
        return Cell((f"{100 * run.share:.0f}", hue), run.share)

    rails = {Field(str(rail), right=True): partial(share, rail) for rail in range(fabric.rails)}
    return [node for node in fabric.nodes if node in measured], {Field("node", least=8): str, **rails}


def _draw_heat(page: Page, judged: SweepJudgement, fabric: Fabric) -> None:
    """The matrix on the page, one character a cell, and what the characters mean."""
    longest = max((len(node) for node in fabric.nodes), default=0) + 8
    label = min(max(longest, _LEAST_LABEL), _MOST_LABEL, page.width // 3)
    room = page.width - label - 4
    drawn = heat(judged, fabric, room)
    wide = 2 if len(drawn.labels) * 2 <= room else 1
    none = "." if page.style.ascii else "·"
    for row, name in enumerate(drawn.labels):
        parts: list[Part] = []
        for column in range(len(drawn.labels)):
            char, hue = _char(drawn.cells.get((min(row, column), max(row, column))), none)
            parts.append((char.ljust(wide), hue))
        page.add_line(page.text("  ", (page.cut(page.text(name), label).plain.ljust(label), "dim"), "  ", *parts))
    block = f"a cell is {drawn.block} x {drawn.block} nodes, its worst run: " if drawn.block > 1 else ""
    page.add("  ", f"{block}■ normal, 0-9 tenths of normal, x failed, ? not judged, {none} not measured")


def _char(judged_run: JudgedRun | None, none: str) -> tuple[str, str]:
    if judged_run is None:
        return none, "dim"
    match judged_run.standing:
        case Standing.NORMAL:
            return "■", "nvlink"
        case Standing.LOW:
            share = judged_run.share or 0.0
            return str(min(int(share * 10), 9)), "error" if share < SEVERE_SHARE else "doubtful"
        case Standing.FAILED:
            return "x", "error"
        case _:
            return "?", "unknown"


def sweep_json(
    judged: SweepJudgement, plans: Sequence[SweepPlan], further: SweepPlan | None, inputs: Iterable[Input] = ()
) -> Document:
    """Everything on the page, and every run."""
    fabric = plans[-1].fabric
    return document_of(
        "sweep.SweepDocument",
        judged,
        inputs=inputs,
        format="topodiag-sweep-verdict",
        version=1,
        nodes=fold_hosts(fabric.nodes),
        rounds=len(plans),
        faults=[_fault(fault, fabric) for fault in (*judged.confirmed, *judged.suspects)],
        placements=[from_model("sweep.Gap", gap, check=GAP_ID) for gap in judged.gaps],
        next=None if further is None else {"round": further.round, "runs": len(further.runs)},
        findings=sweep_findings(judged, fabric),
    )


def _fault(fault: Fault, fabric: Fabric) -> Document:
    return from_model(
        "sweep.Fault",
        fault,
        check=GAP_ID if severe(fault) else None,
        where=fault_words(fault, fabric),
        nics=sorted({name for part in fault.parts if part.kind == "link" and (name := fabric.nic(part.rail))}),
        not_told_apart=untold(fault),
    )
