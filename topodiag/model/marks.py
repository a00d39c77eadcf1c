"""Which findings touch which device, so that a drawing marks what the checks found and judges nothing itself."""

from __future__ import annotations

from collections.abc import Iterable

from topodiag.model.busid import normalise_bus_id
from topodiag.model.finding import Finding
from topodiag.words.fold import grouped


class Marks:
    """An index of findings by device label (`GPU3`, `mlx5_0`) and by bus id."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._by_name = grouped((name, finding) for finding in findings for name in _names(finding))

    def on(self, *names: str | None) -> list[Finding]:
        """The findings on any of these, worst first, each once."""
        findings = {id(f): f for name in names if name for f in self._by_name.get(name, ())}
        return sorted(findings.values(), key=lambda finding: (-finding.severity, finding.id))

    def about(self, family: str, *names: str | None) -> list[Finding]:
        """Those whose id begins with `family`."""
        return [finding for finding in self.on(*names) if finding.id.startswith(family)]


def _names(finding: Finding) -> set[str]:
    names = {*finding.where.gpus, *finding.where.nics}
    for label in finding.where.links:
        names.add(normalise_bus_id(label) or label)
        first, space, rest = label.partition(" ")
        if space and rest.startswith(("link ", "port ")):
            names.add(first)
    return names
