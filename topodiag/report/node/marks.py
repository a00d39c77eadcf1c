"""How a drawing marks findings: the sign of the worst one and their ids."""

from __future__ import annotations

from rich.text import Text

from topodiag.model.finding import Severity
from topodiag.model.marks import Marks
from topodiag.report.text import Page

SIGNS = {Severity.ERROR: "✖", Severity.WARNING: "▲", Severity.INFO: "●"}
_MAX_IDS = 4


def sign(page: Page, marks: Marks, *names: str | None) -> Text:
    """`✖NVL001,PCI001`, each id in the hue of its severity; empty where nothing was found. No blank to wrap at."""
    ids: dict[str, Severity] = {}
    for finding in marks.on(*names):
        ids.setdefault(finding.id, finding.severity)
    if not ids:
        return Text()
    worst = max(ids.values())
    shown = [(check, str(severity)) for check, severity in list(ids.items())[:_MAX_IDS]]
    drawn = page.text((SIGNS[worst], str(worst)), page.join(shown, ","))
    if len(ids) > _MAX_IDS:
        drawn.append_text(page.text((f" +{len(ids) - _MAX_IDS}", "dim")))
    return drawn
