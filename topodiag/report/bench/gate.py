"""`topodiag bench --gate`: one line for each file, then the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from topodiag.model.bench import Gate, GateState
from topodiag.report.text import Page
from topodiag.words.fold import plural
from topodiag.words.units import in_gbs, spell_bytes, spell_gbs

PATH_WIDTH = 48
"""Columns that paths are lined up in; a longer one is printed whole."""
_SIGNS = {GateState.PASS: ("✔", "ok"), GateState.FAIL: ("✖", "error"), GateState.UNKNOWN: ("?", "unknown")}


def draw_gate(page: Page, gates: Sequence[Gate]) -> None:
    """Each file with what it reached and the bar, the reason below what did not pass."""
    wide = max((len(gate.path) for gate in gates), default=0)
    for gate in gates:
        sign, hue = _SIGNS[gate.state]
        page.add(
            page.text((sign, hue), " ", (gate.state.value.ljust(7), hue), "  "),
            page.text((gate.path.ljust(min(wide, PATH_WIDTH)), "strong"), f"  {_numbers(gate)}"),
        )
        if gate.state is not GateState.PASS and gate.why:
            page.add("           ", (gate.why, "dim"))
    page.blank()
    counts = Counter(gate.state for gate in gates)
    words = ", ".join(f"{counts[state]} {state.value}" for state in GateState if counts[state])
    worst = next((state for state in (GateState.FAIL, GateState.UNKNOWN) if counts[state]), GateState.PASS)
    sign, hue = _SIGNS[worst]
    page.note_answer((words, hue), sign=sign, hue=hue, name=plural(len(gates), "file"))


def _numbers(gate: Gate) -> str:
    """`87.5 GB/s at 8 GiB, bar 384.3`, as far as it is known."""
    if gate.gbs is None or gate.size is None:
        return "no bandwidth"
    bar = f"bar {spell_gbs(gate.bar_gbs)}" if gate.bar_gbs is not None else "no bar"
    return f"{gate.collective} {in_gbs(gate.gbs)} at {spell_bytes(gate.size)}, {bar}".strip()
