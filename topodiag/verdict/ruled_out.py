"""What it is not: parts that were judged clean on the machines of the case, with the lines that clear them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from topodiag.lazy import dataclass
from topodiag.model.finding import Severity, Status
from topodiag.model.result import Result
from topodiag.model.verdict import RuledOut
from topodiag.verdict import clearing
from topodiag.verdict.scene import Scene
from topodiag.words.own_data import own_data
from topodiag.words.units import fold_hosts, grouped, plural

_OF_HARDWARE = frozenset({"GPU", "NVL", "NIC"})


@dataclass(frozen=True, slots=True)
class Part:
    """A part that can be ruled out: `checks` must all have been judged clean, or not apply, and one at least clean."""

    what: str
    checks: tuple[str, ...]
    says: Mapping[str, str]
    """By check, what its clean answer compared."""
    proof: str = ""
    """The function of clearing.py whose lines clear the part."""
    needs: tuple[str, ...] = ()
    """Of the checks, those that must have been judged clean: an answer of the others alone clears nothing."""
    shown: bool = False
    """Whether nothing is ruled out without a line of the proof."""
    against: tuple[str, ...] = ()
    """Checks of which any finding, a note as well, speaks against the part."""

    @property
    def families(self) -> frozenset[str]:
        """Families of hardware that the part is of: a warning about any of it speaks against the whole part."""
        return frozenset(check[:3] for check in self.checks) & _OF_HARDWARE


PARTS = msgspec.convert(own_data("verdict/ruled_out")["part"], tuple[Part, ...])
"""In the order in which a reader would ask."""


def ruled_out(result: Result, scene: Scene, *, unread: bool = False) -> tuple[RuledOut, ...]:
    """Parts that nothing accuses and that were seen whole, with how much of the machines was seen; no GPUs where the
    verdict is that none was read (`unread`)."""
    accused = _accused(result)
    texts = {finding.id for finding in result.findings}
    families = {check[:3] for check in accused}
    jobs = {job.name for job in scene.case.jobs}
    subjects, open_ = _judged(result, scene)
    outs = []
    for part in PARTS:
        against = texts.intersection((*part.needs, *part.against))
        if (
            against
            or accused.intersection(part.checks)
            or part.families & families
            or (unread and "GPU" in part.families)
        ):
            continue
        # What could not be judged of a job is not ruled out by what is clean on its nodes.
        unsure = any(jobs & open_.get(check, set()) - subjects.get(check, set()) for check in part.needs)
        if not unsure and all(_seen_everywhere(check, subjects, scene) for check in part.needs):
            out = _ruled(part, subjects, open_, scene)
            outs += [out] if out.evidence or not part.shown else []
    return tuple(outs)


def _accused(result: Result) -> set[str]:
    """Checks that speak against a part: of findings, and of what is offered as a cause of a slow run."""
    accused = {finding.id for finding in result.findings if finding.severity > Severity.INFO}
    offered = [hypothesis for benchmark in result.benchmarks for hypothesis in benchmark.hypotheses]
    accused.update(hypothesis.check for hypothesis in offered)
    named = any(one.settings or "NCCL_" in one.cause for one in offered)
    if named or any(finding.settings for finding in result.findings if finding.severity > Severity.INFO):
        accused.add("ENV001")  # whatever check names a setting as what does it
    if "NET006" in accused:
        accused.add("TOP004")  # few channels where captures show all links: the sources disagree about NVLink
    return accused


def _judged(result: Result, scene: Scene) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """By check, the nodes and jobs of which it was clean, and those of which it could not judge. A job of which the log
    shows some ranks, or does not say how many it has, clears nothing, nor what was seen on some nodes or devices: the
    others may use what these do not."""
    in_part = {job.name for job in scene.case.jobs if len(job.ranks) < job.world_size or not job.size_told}
    seen = (one for one in result.with_status(Status.CLEAN) if one.node not in in_part)
    whole = (one for one in seen if one.coverage is None or one.coverage.seen >= one.coverage.total)
    groups = [grouped((one.check, one.node) for one in some) for some in (whole, result.with_status(Status.UNKNOWN))]
    clean, unknown = ({check: set(nodes) for check, nodes in group.items()} for group in groups)
    return clean, unknown


def _seen_everywhere(check: str, subjects: dict[str, set[str]], scene: Scene) -> bool:
    """Whether a check was clean on every machine in question, or of every job that is there."""
    jobs, clean = {job.name for job in scene.case.jobs}, subjects.get(check, set())
    of_jobs, of_machines = bool(jobs) and jobs <= clean, bool(clean) and scene.machines <= scene.hosts(clean - jobs)
    return "" in clean or of_jobs or of_machines


def _ruled(part: Part, subjects: dict[str, set[str]], open_: Collection[str], scene: Scene) -> RuledOut:
    jobs = {job.name for job in scene.case.jobs}
    clean = set.intersection(*(subjects[check] for check in part.needs))
    nodes = sorted(name for name in clean if name and name not in jobs)
    clean_checks = [check for check in part.says if _seen_everywhere(check, subjects, scene)]
    judged, words = ", ".join(clean_checks), ", ".join(part.says[check] for check in clean_checks)
    rest = [check for check in part.checks if check in open_]
    unsure = f"; not judged everywhere: {', '.join(rest)}" if rest else ""
    hosts = nodes or sorted({host for job in scene.case.jobs for host in job.hosts})
    evidence = getattr(clearing, part.proof)(scene, hosts) if part.proof else ()
    return RuledOut(part.what, f"{words}{_on(nodes, scene)} ({judged}){unsure}", evidence[: clearing.MAX_LINES])


def _on(nodes: Sequence[str], scene: Scene) -> str:
    """On which nodes, and how many of those that the evidence names they are; "" for none."""
    if not nodes:
        return ""
    seen, known = len(scene.hosts(nodes)), len(scene.machines)
    return f" on {fold_hosts(nodes)}" + (f" ({seen} of {plural(known, 'node')} seen)" if seen < known else "")
