"""The head of the table: the verdict on a node or a job in one line, and which machine a node is in the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from topodiag.model.devices import NicRole
from topodiag.model.finding import Finding, Severity
from topodiag.model.node import Node, Sight, gpu_sight
from topodiag.model.result import Result, Trouble
from topodiag.report.text import Page, Part, plain
from topodiag.report.words import SIGNS, Judged, counted, findings_of, judged, unexplained_words
from topodiag.words.units import first_of, in_gbps, number, plural

CHECKS_NAMED = 4
"""Checks that the last line names."""


def draw_header(page: Page, result: Result, node: Node) -> None:
    """Verdict, machine, software. Says healthy only of what was seen, and only when GPUs were."""
    sight = gpu_sight(node)
    unseen = {Sight.SEEN: "", Sight.NONE: "no NVIDIA GPU here"}.get(
        sight.sight, "not known: the GPUs could not be read"
    )
    tally = judged(result, node.host)
    name, findings, open_ = node.host or "this node", findings_of(result, node), result.troubles(node.host)
    draw_verdict(page, name, findings, tally, what="seen", why_none=unseen, troubles=open_)
    page.add_items("  ", _machine(node))
    if sight.sight is not Sight.SEEN:
        label = "no NVIDIA GPU: " if sight.sight is Sight.NONE else "GPUs unknown: "
        page.add(page.text("  ", (label, "unknown")), sight.why)
    if page.style.verbose:
        captured = f"captured {node.time.value}" if node.time.value else ""
        page.add_items("  ", [(word, "dim") for word in (*installed_words(node), captured) if word])


def draw_machine_line(page: Page, node: Node) -> None:
    """The machine by name and parts, without a verdict."""
    page.add_items(page.text((node.host or "this node", "strong"), "  "), _machine(node))


def machine_words(node: Node) -> list[str]:
    """The machine in plain words, as the terminal's head has it."""
    return list(map(plain, _machine(node)))


def draw_verdict(
    page: Page,
    name: str,
    findings: Sequence[Finding],
    tally: Judged,
    *,
    what: str,
    why_none: str = "",
    troubles: Sequence[Trouble] = (),
) -> None:
    """The verdict in a line: how many findings of which severity and the worst of them, or that none was found in what
    was seen or logged (`what`). Below it what to do. `why_none` says why no findings mean nothing; `troubles` are lines
    that no finding explains."""
    checks = f"  ({tally.judged} of {plural(tally.total, 'check')} ran)"
    pairs = counted(findings)
    parts: list[Part] = [(text, str(severity)) for severity, text in pairs]
    sign, hue = "?", "doubtful" if troubles else "unknown"
    if troubles:
        parts.append((unexplained_words(troubles), "doubtful"))
    if pairs:
        sign, hue = SIGNS[pairs[0][0]], str(pairs[0][0])
    elif not troubles:
        if why_none:
            verdict = why_none
        elif not tally.judged:
            verdict = "no check could run"
        elif tally.unknown > tally.judged:
            verdict = f"no faults found in the little that was {what}"
        else:
            sign, hue, verdict = "✔", "ok", f"no faults found in what was {what}"
        parts = [(verdict, hue)]
    words = page.join(parts, ", ")
    worst, causes = _causes(findings)
    action = causes[0].fix[0] if causes and causes[0].fix and causes[0].severity > Severity.INFO else ""
    cause = _cause(page, worst, causes, len(name) + words.cell_len)
    whole = len(name) + words.cell_len + len(cause) + len(checks) + 4
    page.add(page.text((sign, hue), " ", (name, "strong"), "  "), words, cause,
             (checks if whole <= page.width or page.style.verbose else "", "dim"))  # fmt: skip
    page.entry("do", (action, "strong"), hue="ok")
    page.note_answer(words, cause, sign=sign, hue=hue, name=name, action=action)


def _causes(findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """The worst findings, and of these those that follow from no other."""
    worst = [finding for finding in findings if finding.severity == max(finding.severity for finding in findings)]
    return worst, [finding for finding in worst if finding.follows is None] or worst


def _cause(page: Page, worst: Sequence[Finding], causes: Sequence[Finding], taken: int) -> str:
    """The worst finding in its own words where it is alone and the line has room for it, else the checks. What follows
    from another finding is no cause: it is counted."""
    below = len(worst) - len(causes)
    rest = f"; {below} {'follows' if below == 1 else 'follow'} from it" if below else ""
    if len(causes) == 1 and taken + len(causes[0].message) + len(rest) + 8 <= page.width:
        return f": {causes[0].message}{rest}"
    ids = list(dict.fromkeys(cause.id for cause in causes))
    return f" ({first_of(ids, CHECKS_NAMED)}{rest})" if ids else ""


def _machine(node: Node) -> list[Part]:
    words: list[Part] = []
    if node.system.value:
        words.append((node.system.value, "strong"))
    names = Counter(gpu.name.get("GPU of unknown model") for gpu in node.gpus)
    if len(names) == 1 and node.gpus and not node.gpus[0].name.known:
        words.append(plural(len(node.gpus), "GPU"))
    else:
        words.extend(f"{count}× {name}" for name, count in names.items())
    words.extend(_nics(node))
    if node.nvswitches:
        words.append(plural(len(node.nvswitches), "NVSwitch", "NVSwitches"))
    if node.cpu.arch.value not in (None, "x86_64"):
        words.append(str(node.cpu.arch.value))
    if not words:
        words.append("machine unknown")
    return words


def _nics(node: Node) -> list[str]:
    compute = [nic for nic in node.nics if nic.role is NicRole.COMPUTE]
    others = Counter(nic.role for nic in node.nics if nic.role is not NicRole.COMPUTE)
    words = []
    if compute:
        up = [port for nic in compute for port in nic.ports if port.state.get("ACTIVE") == "ACTIVE"]
        rates = {port.rate_gbps.value for port in up if port.rate_gbps.value}
        slowest = f"{number(min(rates))}–" if len(rates) > 1 else ""
        at = f" at {slowest}{in_gbps(max(rates))}" if rates else ""
        words.append(f"{plural(len(compute), 'compute NIC')}{at}")
    for role in (NicRole.STORAGE, NicRole.MANAGEMENT):
        if others[role]:
            words.append(plural(others[role], f"{role.value} NIC"))
    if others[NicRole.UNKNOWN]:
        words.append(plural(others[NicRole.UNKNOWN], "NIC") + (" of unknown role" if compute else ""))
    return words


def installed_words(node: Node) -> list[str]:
    """The processors and the software."""
    words = []
    if node.cpu.name.value:
        sockets = node.cpu.sockets.value
        words.append(f"{sockets}× {node.cpu.name.value}" if sockets and sockets > 1 else node.cpu.name.value)
    for label, fact in (
        ("driver", node.os.driver_version),
        ("CUDA", node.os.cuda_version),
        ("Linux", node.os.kernel),
        ("guest:", node.os.virtualization),
        ("in", node.os.container),
    ):
        if fact.value and fact.value != "none":
            words.append(f"{label} {fact.value}")
    return words
