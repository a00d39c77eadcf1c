"""The order of findings: causes first, what follows from them below, each with its reason. Decides no finding: it only
relates those that the checks made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from topodiag.model.finding import Confidence, Finding, Follows, Severity
from topodiag.model.result import Case
from topodiag.verdict.interface import RULES, Reach, Rule
from topodiag.verdict.scene import Scene
from topodiag.words.units import grouped

MOST_CAUSES = 64
"""Findings of one check that are tried as the cause of another one: beyond those, all say the same."""

_STAGES = (
    ("GPU",), ("NVL",), ("PCI", "FLT"), ("NIC",), ("NET008", "NET009", "NET010"), ("HST",),
    ("JOB002", "JOB003", "JOB004", "JOB010", "JOB013", "ENV", "GDR", "NET", "P2P", "NUM", "TOP"), ("JOB007",),
    ("JOB009", "JOB006", "JOB008"), ("JOB005", "JOB011", "JOB012", "JOB014", "JOB015", "BEN", "PLC"), ("JOB001",),
)  # fmt: skip
"""What can produce what, where nothing else decides: what stands earlier can produce what stands later."""

_ONLY_SLOW = ("ENV", "NET001", "NET003", "NET004", "NET006", "P2P", "GDR", "NUM", "BEN", "PLC", "TOP003", "HST003")
"""Faults that make a job slow. Of a job that failed they are not what its user asks for first."""

_FAILURES = ("JOB005", "JOB001")
"""What a job shows of its own end."""

_MEMBERS_MISSING = "JOB001"
"""Ranks that did not come up: hardly ever the cause."""

_SETTINGS = ("ENV", "JOB003")
"""Checks that find settings."""

LOW = "BEN001"
LOSSES = (LOW, "BEN005", "JOB015")
"""Checks that see a job or a run lose bandwidth."""
Key = tuple[object, ...]


def arranged(findings: Sequence[Finding], case: Case) -> tuple[Finding, ...]:
    """The findings of a case, worst first; each consequence names its cause and stands below it. The order is stable:
    equal evidence gives equal order."""
    failed = any(finding.id == "JOB005" and finding.severity is Severity.ERROR for finding in findings)
    ordered = sorted(findings, key=lambda finding: _key(finding, failed))
    parents = _parents(ordered, Scene(case))
    below = grouped((parent, child) for child, (parent, _) in parents.items())
    keys = [_key(finding, failed) for finding in ordered]
    roots = [at for at in range(len(ordered)) if at not in parents]
    roots.sort(key=lambda at: (not _ends_job(at, below, ordered), min(keys[place] for place in _tree(at, below))))
    order = []
    for root in roots:
        for at in _tree(root, below):
            head = ordered[at]
            if at in parents:
                parent, why = parents[at]
                above = ordered[parent]
                head = replace(head, follows=Follows(above.id, above.message, why))
                if head.id == LOW:
                    from topodiag.checks.bench.low import without_guess  # noqa: PLC0415 - where a run was measured

                    head = without_guess(head)
            order.append(head)
    return tuple(order)


def takes_part(cause: Finding, findings: Sequence[Finding], scene: Scene) -> str:
    """How a fault leads to a loss of bandwidth that another one stands above, "" where it does not: two faults may slow
    one run. What all nodes of the run have alike is how they are built, and in what is expected of them. `findings` are
    arranged."""
    if cause.severity is Severity.INFO:
        return ""
    below = ((one, one.follows.message) for one in findings if one.id in LOSSES and one.follows is not None)
    others = [loss for loss, above in below if above != cause.message and _may_explain(cause, loss)]
    losses = [loss for loss in others if not scene.nodes(loss) <= scene.nodes(cause)]
    rules = [rule for rule in RULES if cause.id in rule.causes] if losses else []
    texts = (rule.explains(cause, loss, scene) for loss in losses for rule in rules if loss.id in rule.leads_to)
    return next(filter(None, texts), "")


def _ends_job(root: int, below: dict[int, list[int]], ordered: Sequence[Finding]) -> bool:
    """Whether the failure of a job follows from this cause: then it is what its user asks for first. A failure that
    nothing explains is no cause of itself, and keeps its place."""
    if ordered[root].id in _FAILURES:
        return False
    return any(ordered[at].id in _FAILURES and ordered[at].severity is Severity.ERROR for at in _tree(root, below))


def _tree(root: int, below: dict[int, list[int]]) -> Iterator[int]:
    """A finding and all that follows from it, each below its cause."""
    pending = [root]
    while pending:
        at = pending.pop()
        yield at
        pending += reversed(below.get(at, ()))


def _parents(ordered: Sequence[Finding], scene: Scene) -> dict[int, tuple[int, str]]:
    """By finding, its cause and how that leads to it."""
    by_id = grouped((finding.id, at) for at, finding in enumerate(ordered))
    places = ((finding.id, at, node) for at, finding in enumerate(ordered) for node in scene.nodes(finding))
    by_node = grouped(((check, node), at) for check, at, node in places)
    parents: dict[int, tuple[int, str]] = {}
    for rule in RULES:
        if rule.in_part or not any(check in by_id for check in rule.causes):
            continue
        for at in sorted(at for check in rule.leads_to for at in by_id.get(check, ())):
            if at in parents:
                continue
            pair = _cause(rule, ordered[at], _candidates(rule, ordered[at], scene, by_id, by_node), ordered, scene)
            if pair is not None and not _leads_to(pair[0], at, parents):
                parents[at] = pair
    return parents


def _candidates(
    rule: Rule, other: Finding, scene: Scene, by_id: dict[str, list[int]], by_node: dict[tuple[str, str], list[int]]
) -> Iterator[int]:
    for check in rule.causes:
        own = by_id.get(check, [])
        if len(own) > MOST_CAUSES and rule.reach is Reach.NODE:
            own = [at for node in sorted(scene.nodes(other)) for at in by_node.get((check, node), ())]
        yield from own[:MOST_CAUSES]


def _cause(
    rule: Rule, other: Finding, candidates: Iterator[int], ordered: Sequence[Finding], scene: Scene
) -> tuple[int, str] | None:
    for at in candidates:
        cause = ordered[at]
        if cause is other or cause.id == other.id or not (rule.notes or _may_explain(cause, other)):
            continue
        why = rule.explains(cause, other, scene)
        if why:
            return at, why
    return None


def _may_explain(cause: Finding, other: Finding) -> bool:
    """A note explains no fault, and a doubtful warning no error that is sure. That ranks left no line in the evidence
    follows from nothing."""
    if other.id == _MEMBERS_MISSING and other.severity is Severity.INFO:
        return False
    if other.id == "NET003" and other.settings and not cause.id.startswith(_SETTINGS):
        return False  # the NICs are up: no fault of a part took them, a setting did
    if cause.severity >= other.severity:
        return True
    doubtful = cause.confidence is Confidence.LOW and other.confidence is not Confidence.LOW
    return cause.severity is Severity.WARNING and not doubtful


def _leads_to(cause: int, at: int, parents: dict[int, tuple[int, str]]) -> bool:
    """Whether the cause itself follows from this finding."""
    while cause in parents and cause != at:
        cause = parents[cause][0]
    return cause == at


def _key(finding: Finding, failed: bool) -> Key:
    lost = finding.cost.gbs_lost or 0.0
    slow_only = failed and finding.severity is Severity.ERROR and finding.id.startswith(_ONLY_SLOW)
    return (
        -finding.severity,
        finding.id == _MEMBERS_MISSING,
        slow_only,
        -finding.confidence,
        -lost,
        _stage(finding.id),
        finding.id,
        not (finding.where.gpus or finding.where.nics or finding.where.links),  # what names the part is told first
        finding.where.nodes,
        finding.message,
    )


def _stage(check: str) -> int:
    exact = next((at for at, names in enumerate(_STAGES) if check in names), None)
    return exact if exact is not None else next((at for at, names in enumerate(_STAGES) if check[:3] in names), 8)
