"""The page of `topodiag diagnose`: the answer first, then why, where, what to change, its proof, what is open."""

from __future__ import annotations

from collections import Counter

from topodiag.lazy import regex
from topodiag.model.result import Result
from topodiag.model.verdict import RuledOut, State, Verdict
from topodiag.report.findings import where_words
from topodiag.report.gaps import draw_gaps, draw_unreadable
from topodiag.report.places import Places
from topodiag.report.text import FEW_LINES, Page, Part, more
from topodiag.report.verdict.cause import draw_answer, draw_cause, draw_do, draw_when, is_fault
from topodiag.words.units import few, fold_hosts, in_gbs, plural, short_hosts, spell_bytes

SIGNS = {
    State.FAILED: ("✖", "FAILED", "error"),
    State.HUNG: ("✖", "HUNG", "error"),
    State.SLOW: ("▲", "SLOW", "warning"),
    State.AT_RISK: ("▲", "AT RISK", "warning"),
    State.HEALTHY: ("✔", "HEALTHY", "ok"),
    State.UNKNOWN: ("?", "UNKNOWN", "unknown"),
}
"""Sign, word and hue of a state: never the hue alone."""
OTHERS_SHOWN = 3
LINES_SHOWN = 2
HOSTS_ROOM = 60
"""Characters of the hosts of a job in a list of jobs."""


def draw_diagnosis(page: Page, result: Result) -> None:
    """What a person reads of a whole case: verdict and action in the first lines and again in the last two."""
    verdict = result.verdict
    assert verdict is not None  # noqa: S101 - only a diagnosis is drawn so
    sign, word, hue = SIGNS[verdict.state]
    head = page.text((f"{sign} {word}", hue), "  ")
    begin = len(page.lines)
    page.add(head, (verdict.headline, "strong"))
    page.keep_lines(begin, 2)
    if verdict.causes:
        draw_do(page, verdict.causes[0])
        draw_answer(page, verdict.causes[0])
    for words in verdict.first:
        page.entry("", (words, "strong"))
    draw_unreadable(page, result)
    if page.style.quiet:
        return
    _draw_jobs(page, result, verdict)
    if verdict.causes:
        _draw_causes(page, result, verdict)
        draw_when(page, result)
    rest = Page(page.style)
    _draw_rest(rest, result, verdict)
    page.add_rest(rest, begin)
    if page.style.verbose:
        draw_gaps(page, result)
    if len(page.lines) > FEW_LINES:
        page.blank()
        page.lines.append(page.cut_words(page.text(head, (verdict.headline, "strong")), page.width))
        if verdict.causes and verdict.causes[0].finding.fix:
            page.add_do(verdict.causes[0].finding.fix[0])


def _draw_jobs(page: Page, result: Result, verdict: Verdict) -> None:
    """Where there are several jobs and runs, and not all are the same: the state of each."""
    if len({(job.state, job.causes) for job in verdict.jobs}) < 2 and not page.style.verbose:
        return
    hosts = {job.name: short_hosts(job.hosts, HOSTS_ROOM) for job in result.jobs}
    rows: list[list[Part]] = []
    for job in verdict.jobs:
        sign, word, hue = SIGNS[job.state]
        cause = ", ".join(verdict.causes[at].finding.id for at in job.causes)
        notes = [(f"  {part}", "dim") for part in (cause, hosts.get(job.name)) if part]
        rows.append([(f"{sign} {word.lower()}", hue), f"  {job.name}", *notes])
    page.entries("jobs", rows, 2 * LINES_SHOWN, "job", lines=0)


def _draw_causes(page: Page, result: Result, verdict: Verdict) -> None:
    """The first cause whole, the others in a line each; with -v all whole."""
    places = Places(result)
    whole = page.some(verdict.causes, 1)
    for number, cause in enumerate(whole):
        if number:
            page.blank()
            lead = page.text("  ", (f"cause {number + 1} of {len(verdict.causes)}  ", "strong"))
            page.add(lead, cause.finding.message)
        draw_cause(page, cause, result, places, first=number == 0)
    others = verdict.causes[len(whole) :]
    for number, cause in enumerate(others[:OTHERS_SHOWN]):
        finding = cause.finding
        where = where_words(finding.where, several_nodes=True)
        page.entry("also" if number == 0 else "", (f"{finding.id}  ", str(finding.severity)),
              f"{where}: {finding.message}" if where else finding.message, most=1)  # fmt: skip
    if len(others) > OTHERS_SHOWN:
        ids = [f"{check} ×{count}" if count > 1 else check
               for check, count in Counter(cause.finding.id for cause in others[OTHERS_SHOWN:]).items()]  # fmt: skip
        page.entry("", (f"{more(len(others) - OTHERS_SHOWN, 'cause')}: {few(ids, 6)}", "dim"), most=1)


def _draw_rest(page: Page, result: Result, verdict: Verdict) -> None:
    """What to look at next, what is at odds or open, what it is not, what bears on nothing, and what all rests on: in
    the order in which a reader can spare it."""
    verbose = bool(page.style.verbose)
    for number, step in enumerate(verdict.next_evidence if verbose else verdict.next_evidence[:1]):
        on = f" on {step.where}" if step.where else ""
        words = f"{on}: {step.why or step.what}"
        page.entry("next" if number == 0 else "", (step.command, "close"), words, hue="ok", most=2)
    for number, conflict in enumerate(result.identity.conflicts if verbose else result.identity.conflicts[:1]):
        label = "conflict" if number == 0 else ""
        page.entry(label, (conflict.subject, "strong"), f": {conflict.text}", hue="doubtful", most=1)
    _draw_measured(page, result)
    draw_ruled_out(page, verdict)
    _draw_unrelated(page, verdict)
    drawn = {cause.price.says for cause in verdict.causes}
    open_ = [(words,) for words in verdict.not_explained if words not in drawn]
    page.entries("unclear", open_, LINES_SHOWN, "line", hue="doubtful")
    page.entry("read", " · ".join(words for words in verdict.joined if not words.endswith(" none")), most=1)


def _draw_measured(page: Page, result: Result) -> None:
    """What NCCL's Inspector measured: of each communicator the size that took most of the time."""
    inspections = [job.inspection for job in result.jobs if job.inspection is not None]
    rows: list[list[Part]] = []
    for comm in (comm for inspection in inspections for comm in inspection.communicators if comm.sizes):
        size = max(comm.sizes, key=lambda size: size.calls * size.clean_us)
        hosts = fold_hosts(list(dict.fromkeys(member.host for member in comm.members.values() if member.host)))
        where = f" on {hosts}" if hosts else ""
        rows.append([
            f"{size.collective} of {spell_bytes(size.bytes)}: ", (in_gbs(size.busbw_mid_gbs), "strong"),
            f" bus bandwidth, {plural(comm.nranks, 'rank')}{where}",
        ])  # fmt: skip
    page.entries("measured", rows, LINES_SHOWN, "communicator")


def _draw_unrelated(page: Page, verdict: Verdict) -> None:
    """Faults that no job met. Where nothing else is said, what was seen without being a fault is all there is to go
    on; of a healthy job it is said as a note where it names ranks."""
    everything = page.style.verbose or verdict.state is State.UNKNOWN
    healthy = verdict.state is State.HEALTHY
    unrelated = [
        finding for finding in verdict.unrelated if everything or is_fault(finding) or (healthy and finding.where.ranks)
    ]
    rows: list[list[Part]] = []
    for finding in unrelated:
        where = where_words(finding.where, several_nodes=True)
        severity = str(finding.severity)
        rows.append([(finding.id, severity), "  ", finding.message, (f"  {where}" if where else "", "dim")])
    label = "note" if healthy and not any(map(is_fault, unrelated[:1])) else "unrelated"
    page.entries(label, rows, LINES_SHOWN, "finding")


def draw_ruled_out(page: Page, verdict: Verdict) -> None:
    """Each with its source: the tool whose lines clear it, else the checks that did."""
    if not verdict.ruled_out:
        return
    if not page.style.verbose:
        page.entry("ruled out", ", ".join(f"{part.what} ({source_of(part)})" for part in verdict.ruled_out), most=2)
        return
    rows = [((part.what, "strong"), f": {part.by}") for part in verdict.ruled_out]
    page.entries("ruled out", rows, len(rows), "part")


_CHECKS = regex(r"\(([A-Z0-9]{3}\d{3}(?:, [A-Z0-9]{3}\d{3})*)\)")
_TOOLS = (
    ("nvml", "NVML"), ("nvidia-smi", "nvidia-smi"), ("sys-", "sysfs"), ("ibstat", "ibstat"), ("lspci", "lspci"),
)  # fmt: skip
"""Part of a source's name, and what a reader calls it."""
_OF_NCCL = ("NCCL ", "NET/", "Using network ")
"""What lines of NCCL's logs have that show what it uses, whatever the name of the file."""


def source_of(part: RuledOut) -> str:
    """Where the lines that clear a part are from; the checks that cleared it where no line is kept."""
    for line in part.evidence:
        tools = [name for sign, name in _TOOLS if sign in line.source]
        if tools or any(words in line.text for words in _OF_NCCL):
            return tools[0] if tools else "NCCL log"
    match = _CHECKS.search(part.by)
    return match[1] if match else part.by
