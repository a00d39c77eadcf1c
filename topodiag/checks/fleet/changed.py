"""FLT003: what is otherwise than in the last good capture of the node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from topodiag.checks.fleet.changes import Changes, FactChange, changes_between
from topodiag.checks.fleet.places import labels
from topodiag.checks.interface import Advice, Check
from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Cost, Finding, Outcome, Severity, Where
from topodiag.model.history import Capture, NodeHistory
from topodiag.model.provenance import Origin
from topodiag.words.states import GOOD

MAX_TOLD = 40
"""Changes of one node that are told one by one: a new image changes hundreds of facts."""
MAX_VALUE = 80
_SOFTWARE = frozenset({
    "os", "driver", "firmware", "kernel command line", "kernel modules", "driver parameters", "services", "nccl.conf",
    "system", "limits",
})  # fmt: skip
"""Families that people change on purpose, and limits, which are those of whoever captured; the others change when
something breaks, or is set up otherwise."""
_LINKS = frozenset({"pci", "nvlink", "nic"})
"""Families whose changes alter the paths that the bandwidths of links make: those then follow, and are notes."""
_MORE_IS_BETTER = regex(
    r"(?:width|generation|lanes|rate|links|line rate|speed|GPUs|NVSwitches|.* network cards|locked memory|open files"
    r"|shared memory|(?:interface )?MTU)\Z"
)
_NUMBER = regex(r"-?[0-9]{1,18}(?:\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class CaptureChange:
    """What changed, between which captures."""

    before: Capture
    now: Capture
    basis: str
    found: Changes


class ChangedSinceGood(Check[NodeHistory, CaptureChange]):
    """FLT003: changed since the last good capture of this node

    What it finds
        Facts of a node that are otherwise than in its last capture without an error, or in the capture given: lanes,
        links, states, firmware, drivers, settings, and parts that were replaced or are numbered otherwise.

    Why it matters
        A node that worked and works no more has changed. What changed is the shortest list of suspects.

    Evidence it reads
        Two captures of one node: `topodiag scan --since BUNDLE`, or a store of them: `topodiag fleet history STORE`.
        Parts are matched by serial number (GPU UUID, node GUID of a network card), not by name.

    When it stays silent
        The first capture of a node: unknown. Serial numbers, addresses, clocks, uptime and counters differ between any
        two captures. A fact that only one capture holds: not known in the other one. States and widths of links
        within 5 minutes of a boot, while links train. A machine of which no GPU and no network card is the same is
        another machine: that alone is said. A quantity that moved by less than 10 %. Paths that change together with a
        link are notes beside the link.

    How to confirm
        topodiag scan --since BEFORE.tar.gz NOW.tar.gz -v

    How to fix
        A change that nobody made is a fault: reseat or replace the part. One that somebody made and that costs: take it
        back, or make it on all nodes.

    References
        Documentation of topodiag, history of a fleet.
    """

    id = "FLT003"

    def observe(self, judged: NodeHistory, peers: Sequence[NodeHistory]) -> CaptureChange | Outcome:
        if judged.now is None:
            return self.unknown(judged, "no capture of the node")
        if judged.before is None:
            return self.unknown(judged, "no earlier capture of the node to compare with")
        changes = changes_between(judged.before, judged.now)
        if not (changes.changes or changes.replaced or changes.renamed or changes.another):
            compared = changes.compared + judged.same
            if not compared:
                return self.unknown(judged, "the two captures have no fact in common")
            later = "; states of links were left out, the node had just booted" if changes.training else ""
            why = f"{compared} facts are as in the {judged.basis} of {judged.before.day}{later}"
            return self.clean(judged, why)
        return CaptureChange(judged.before, judged.now, judged.basis, changes)

    def tell(self, judged: NodeHistory, observed: CaptureChange) -> Iterable[Finding]:
        changes = observed.found
        if changes.another:
            yield self._note(
                judged,
                observed,
                "this is another machine under the same name",
                "no GPU and no network card is the same",
            )
            return
        for part in changes.replaced:
            yield self._note(
                judged, observed, "a part was replaced", "another serial number in the same place", (part,)
            )
        if changes.renamed:
            said = ", ".join(f"{before} is {now}" for before, now in changes.renamed[:8])
            yield self._note(judged, observed, "parts are numbered otherwise", said)
        linked = any(change.family in _LINKS for change in changes.changes)
        pairs = sorted(((severity_of(change, linked), change) for change in changes.changes), key=lambda pair: -pair[0])
        for severity, change in pairs[:MAX_TOLD]:
            yield self._change(judged, observed, change, severity)
        if len(pairs) > MAX_TOLD:
            words = f"{len(pairs) - MAX_TOLD} more facts changed"
            yield self._note(judged, observed, words, "the changes in full: --format json of both captures")

    def _change(self, judged: NodeHistory, observed: CaptureChange, change: FactChange, severity: Severity) -> Finding:
        before, after = _short(change.before, change.unit), _short(change.after, change.unit)
        where = Where(nodes=(judged.host,), **labels(change.parts))
        return self.finding(
            where,
            Advice(severity),
            f"{_named(change)} changed from {before} to {after}",
            observed=after,
            expected=f"{before}, as in the {observed.basis}",
            cost=Cost(text="" if severity is Severity.INFO else "it may cost bandwidth or stability"),
            fix=() if severity is Severity.INFO else ("find out who changed it; if nobody did, the part is at fault",),
            evidence=[
                Origin(observed.before.source, None, f"{observed.before.day}: {change.key} {before}"),
                Origin(change.source or observed.now.source, None, f"{observed.now.day}: {change.key} {after}"),
            ],
        )

    def _note(
        self, judged: NodeHistory, observed: CaptureChange, message: str, seen: str, parts: Sequence[str] = ()
    ) -> Finding:
        return self.finding(
            Where(nodes=(judged.host,), **labels(parts)),
            Advice(Severity.INFO),
            message,
            observed=seen,
            expected=f"the parts of the {observed.basis}",
            evidence=[Origin(observed.before.source, None, observed.before.day)],
        )


def severity_of(change: FactChange, linked: bool) -> Severity:
    """A warning where the change is for the worse, or nobody can say, in hardware or in limits; a note otherwise.
    `linked`: links changed as well."""
    follows = linked and change.family == "pairing" and change.key.endswith("by path")
    if follows or change.family in _SOFTWARE or change.after.lower() in GOOD:
        return Severity.INFO
    numbers = _NUMBER.match(change.before), _NUMBER.match(change.after)
    if _MORE_IS_BETTER.match(change.key) and numbers[0] is not None and numbers[1] is not None:
        before, after = float(numbers[0][0]), float(numbers[1][0])
        # Limits have -1 for "unlimited".
        if before >= 0 and (after > before or after < 0):
            return Severity.INFO
    return Severity.WARNING


def _named(change: FactChange) -> str:
    """The family where the key alone says little."""
    return change.key if change.key.lower().startswith(change.family) else f"{change.family}: {change.key}"


def _short(value: str, unit: str) -> str:
    text = value if len(value) <= MAX_VALUE else value[: MAX_VALUE - 1] + "…"
    return f"{text} {unit}".rstrip()
