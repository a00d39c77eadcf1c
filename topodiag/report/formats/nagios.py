"""One line for monitoring systems: `TOPODIAG CRITICAL - ... | errors=2 ...`, with the exit code that belongs to it.

States and codes are those of the Monitoring Plugins development guidelines: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
What could not be judged is UNKNOWN, never OK.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TextIO

from topodiag.model.finding import Severity
from topodiag.model.node import Sight, gpu_sight
from topodiag.model.result import Result
from topodiag.report.interface import Style
from topodiag.report.words import counted, judged, severity_counts, unexplained_words
from topodiag.words.text import clean
from topodiag.words.units import fold_hosts

MAX_LINE = 400
"""Characters of the text before the performance data; many systems cut longer lines."""
TOLD = 3
"""Findings named in the line, worst first."""


class State(IntEnum):
    """The plugin's state, which is its exit code."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


def state_of(result: Result) -> State:
    """Errors are critical, warnings warn; without either it is OK only when GPUs were seen, something was judged,
    and no line of trouble stays unexplained."""
    counts = severity_counts(result.findings)
    if counts[Severity.ERROR]:
        return State.CRITICAL
    if counts[Severity.WARNING]:
        return State.WARNING
    seen = all(gpu_sight(node).sight is Sight.SEEN for node in result.nodes)
    fine = result.nodes and seen and judged(result).judged and not result.troubles()
    return State.OK if fine else State.UNKNOWN


def line(state: State, text: str, perfdata: str = "") -> str:
    """The plugin's line; `|` in the text would begin performance data, so it becomes `/`."""
    safe = clean(text, ascii_only=True, limit=MAX_LINE).replace("|", "/")
    return f"TOPODIAG {state.name} - {safe}" + (f" | {perfdata}" if perfdata else "")


def write(result: Result, stream: TextIO, _: Style) -> None:
    """`--format nagios`."""
    stream.write(line(state_of(result), _text(result), _perfdata(result)) + "\n")


def _text(result: Result) -> str:
    hosts = fold_hosts([node.host for node in result.nodes]) or "no machine in the evidence"
    tally = judged(result)
    checks = f"{tally.judged} of {tally.total} checks ran, {tally.unknown} unknown"
    if result.findings:
        counts = ", ".join(words for _, words in counted(result.findings))
        words = "; ".join(f"{finding.id} {finding.message}" for finding in result.findings[:TOLD])
        rest = f"; {len(result.findings) - TOLD} more" if len(result.findings) > TOLD else ""
        return f"{hosts}: {counts}: {words}{rest}"
    unseen = [sight for node in result.nodes if (sight := gpu_sight(node)).sight is not Sight.SEEN]
    if unseen:
        verdict = "no NVIDIA GPU" if unseen[0].sight is Sight.NONE else "GPUs could not be read"
        return f"{hosts}: {verdict}: {unseen[0].why}"
    if result.troubles():
        return f"{hosts}: {unexplained_words(result.troubles())}: {result.troubles()[0].text}"
    if not tally.judged:
        return f"{hosts}: nothing could be judged ({checks})"
    return f"{hosts}: no faults found in what was seen ({checks})"


def _perfdata(result: Result) -> str:
    counts = severity_counts(result.findings)
    tally = judged(result)
    values = [
        f"errors={counts[Severity.ERROR]};;1;0",
        f"warnings={counts[Severity.WARNING]};1;;0",
        f"infos={counts[Severity.INFO]};;;0",
        f"judged={tally.judged};;;0;{tally.total}",
        f"unknown={tally.unknown};;;0;{tally.total}",
    ]
    return " ".join(values)
