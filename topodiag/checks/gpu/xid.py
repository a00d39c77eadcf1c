"""Xids and SXids of the kernel log that no other check speaks of: NVLink, firmware, programs, and unknown ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Unpack

import msgspec

from topodiag.checks.interface import FindingParts, NodeCheck
from topodiag.checks.shared.node import kernel
from topodiag.checks.shared.node.kernel import XidGroup
from topodiag.hardware.xids import NvlinkError, link_of, nvlink_of, process_of, sxid, sxid_severity
from topodiag.model.events import Event
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.words.own_data import own_data
from topodiag.words.units import grouped, numbered, plural

ELSEWHERE = frozenset({"lost", "memory", "recovery"})
"""Families that GPU001, GPU002 and GPU005 judge."""

RECURS = 3
"""Programs that met the same fault on one GPU alone, from which on the GPU is suspected instead of the programs."""

SEVERITIES = {"error": Severity.ERROR, "warning": Severity.WARNING, "info": Severity.INFO}

SIDES: dict[str, str] = own_data("checks/gpu/xid")["sides"]

NvlinkLine = tuple[NvlinkError | None, Event]
"""A line of Xid 144 to 150, read where its form is known."""

NvlinkUnit = tuple[str, str, str]
"""Severity, unit and verdict of such lines."""


class XidInLog(NodeCheck, id="GPU003", unless=kernel.no_gpu):
    """GPU003: the kernel log holds an Xid or SXid error

    What it finds
        Every Xid and SXid that is neither a lost GPU (GPU001), nor a memory error (GPU002), nor a change of the
        recovery action (GPU005): NVLink errors (74; 144 to 150 with unit, link and status word), firmware that stopped
        (62, 109, 119, 120, 158), errors of programs (13, 31, 43, 45), NVSwitch errors, and numbers that the catalogue
        does not hold. A GPU's own processor (GSP) that does not answer the driver, where no Xid says so. Of AMD's
        driver: firmware that does not answer, a GPU that does not start, rings that time out, resets, memory errors.

    Why it matters
        After a fatal NVLink or firmware error the GPU's kernels never end: its rank hangs or dies, and every other rank
        waits for it. The number says where to look first: at the hardware, the driver or the program.

    Evidence it reads
        The kernel log in any form: dmesg with or without -T, journald, syslog. Metrics of the DCGM exporter, which hold
        the last Xid of each GPU.

    When it stays silent
        Xids that a program's own error causes (13, 31, 43, 45) are info, which leaves open whether the GPU is well
        where the lines name no program, unless three programs met the same one on one GPU and on no other. Events that
        the catalogue or the status word calls harmless are info, and so is a Nonfatal line of Xid 144 to 150 that asks
        for a report if it recurs and did not. No kernel log in the evidence: unknown. A few lines of one: unknown.

    How to confirm
        sudo dmesg -T | grep -E 'Xid|SXid'
        nvidia-smi nvlink -e                  error counters of the links, at both ends
        dcgmi diag -r 3                       on the drained node

    How to fix
        By the number: see the finding. The first Xid of a GPU is the cause; those that follow within seconds on the
        same GPU are its echoes. With an NVLink error look at both ends: the far end may have failed first.

    References
        NVIDIA, Xid Errors, Analyzing Xid Errors with the Xid Catalog (and its decode of Xid 144 to 150); NVIDIA,
        Fabric Manager for NVIDIA NVSwitch Systems User Guide, SXid errors.
    """

    def observe(self, judged: Node, peers: Sequence[Node]) -> Outcome:
        all_groups = kernel.xid_groups(judged)
        groups = [group for group in all_groups if group.entry is None or group.entry.family not in ELSEWHERE]
        troubles = [trouble for group in groups for trouble in _of_group(self, judged, group, groups)]
        worse = {group.label for group in all_groups if group not in groups}
        troubles = [_as_echo(trouble, worse) for trouble in troubles]
        troubles += _of_switches(self, judged)
        troubles += amd_troubles(self, judged)
        troubles += silent_firmware(self, judged, all_groups)
        clean = "the kernel log holds no other Xid" if all_groups else "the kernel log holds no Xid"
        unseen = "" if kernel.gpus_were_logged(judged) else kernel.no_log(judged)
        return self.any_of(judged, troubles, clean=clean, unknown=unseen)


_STOPPED = "work on this GPU stopped, and every rank of its job waits for it"


def _caused_by(side: str) -> str:
    return f"no such error: its cause is {side}" if side else ""


def _at(links: Sequence[int]) -> str:
    return f", {numbered('link', links)}" if links else ""


def _as_echo(trouble: Finding, worse: set[str]) -> Finding:
    """What a program met on a GPU whose memory or bus failed follows from that."""
    if trouble.severity is not Severity.INFO or not worse.intersection(trouble.where.gpus):
        return trouble
    return replace(trouble, cost=Cost(text="it follows from the other Xids of this GPU"))


def _on_gpu(
    check: NodeCheck, node: Node, label: str, words: str, events: Sequence[Event], *,
    links: Sequence[int] = (), advice: str = "xid", **parts: Unpack[FindingParts],
) -> Finding:  # fmt: skip
    """What lines of the log say of one GPU, or of links of it."""
    gpus = kernel.where_gpus([label])
    where = check.where(node, gpus=gpus, links=[f"{label} link {link}" for link in links if gpus])
    message = f"{kernel.named(node, label)}{_at(links)}: {words}{kernel.times(events)}"
    parts["evidence"] = events
    return check.finding(where, advice, message, **parts)


def _of_group(check: NodeCheck, node: Node, group: XidGroup, groups: Sequence[XidGroup]) -> Iterator[Finding]:
    label, entry, events = group.label, group.entry, group.events
    if entry is None:
        words = f"Xid {group.code}, which the catalogue does not hold"
        look = "Look the number up in NVIDIA's Xid catalog: docs.nvidia.com/deploy/xid-errors"
        medium, text = Confidence.MEDIUM, events[-1].text
        yield _on_gpu(check, node, label, words, events, observed=text, fix=(look,), confidence=medium)
        return
    if 144 <= group.code <= 150:
        yield from _of_nvlinks(check, node, group)
        return
    severity, side, words = SEVERITIES.get(entry.severity, Severity.WARNING), SIDES[entry.side], ""
    if entry.side == "program" and (count := _programs_on_one_gpu(group, groups)) >= RECURS:
        severity, side = Severity.WARNING, "the GPU's rather than the programs'"
        words = f", in {count} programs and on no other GPU"
    by_nobody = all(process_of(event.text) is None for event in events) and entry.side == "program"
    links = sorted({link for event in events if (link := link_of(event.text)) is not None})
    yield _on_gpu(
        check, node, label, f"Xid {group.code} ({entry.name}){words}", events,
        links=links if entry.family == "nvlink" else (),
        severity=severity,
        confidence=Confidence.MEDIUM if by_nobody and severity is Severity.INFO else Confidence.HIGH,
        observed=entry.means,
        expected=_caused_by(side),
        fix=kernel.with_bus(node, label, entry.actions),
        cost=_STOPPED if severity is Severity.ERROR else "",
    )  # fmt: skip


def _programs_on_one_gpu(group: XidGroup, groups: Sequence[XidGroup]) -> int:
    """How many programs met this Xid on this GPU, where no other GPU did."""
    single = not any(other.code == group.code and other.label != group.label for other in groups)
    programs = [process_of(event.text) for event in group.events if single]
    return len({program[0] for program in programs if program is not None})


def _of_nvlinks(check: NodeCheck, node: Node, group: XidGroup) -> Iterator[Finding]:
    """Lines of one unit, severity and verdict become one; a line of another form keeps the number's own severity."""
    units = grouped(
        ((error.severity, error.unit, error.words) if error is not None else ("warning", "", ""), (error, event))
        for error, event in [(nvlink_of(group.code, event.text), event) for event in group.events]
    )
    for unit, lines in units.items():
        yield _of_unit(check, node, group, unit, lines)


def _of_unit(check: NodeCheck, node: Node, group: XidGroup, unit: NvlinkUnit, lines: Sequence[NvlinkLine]) -> Finding:
    assert group.entry is not None  # noqa: S101 - the numbers are in the catalogue
    severity, part, words = unit
    if all(error is not None and error.if_again for error, _ in lines) and not _recurs(lines):  # to report if it recurs
        severity = "info"
    links = sorted({error.link for error, _ in lines if error is not None and error.link is not None})
    place = f" {part}, {words}" if part else ""
    return _on_gpu(
        check, node, group.label, f"Xid {group.code} ({group.entry.name}){place}", [event for _, event in lines],
        links=links,
        severity=SEVERITIES[severity],
        observed=f"{group.entry.means}; {part or 'unit not named'}" + (f": {words}" if words else ""),
        expected=_caused_by(SIDES[group.entry.side]),
        fix=kernel.with_bus(node, group.label, group.entry.actions),
        cost="traffic over this link stopped, and every rank of its job waits for it" if severity == "error" else "",
    )  # fmt: skip


def _recurs(lines: Sequence[NvlinkLine]) -> bool:
    """Whether one link reported the same error at two moments; lines without a time count each."""
    links = [error.link if error is not None else None for error, _ in lines]
    times = [at if event.time_s is None else f"{event.time_s}" for at, (_, event) in enumerate(lines)]
    return len(set(zip(links, times, strict=True))) > len(set(links))


def _of_switches(check: NodeCheck, node: Node) -> Iterator[Finding]:
    own = [event for event in node.events if event.kind == "sxid"]
    numbered_events = grouped(((event.bus_id or "", event.code), event) for event in own if event.code is not None)
    for (bus_id, code), events in numbered_events.items():
        entry = sxid(code)
        severity = max(SEVERITIES[sxid_severity(code, event.text)] for event in events)
        links = sorted({link for event in events if (link := link_of(event.text)) is not None})
        what = entry.name if entry is not None else "not in the catalogue"
        switch = f"NVSwitch {bus_id}" if bus_id else "An NVSwitch"
        stopped = f"NVLink traffic through {plural(len(links) or 1, 'link')} of the switch stopped"
        yield check.finding(
            check.where(node, links=(bus_id,) if bus_id else ()),
            "sxid",
            f"{switch}{_at(links)}: SXid {code} ({what}){kernel.times(events)}",
            severity=severity,
            observed=entry.means if entry is not None else events[-1].text,
            expected=_caused_by(SIDES["hardware"] if severity is Severity.ERROR else SIDES["either"]),
            cost=stopped if severity is Severity.ERROR else "",
            evidence=events,
        )


# What AMD's driver says in the kernel log (amd_events.toml): a GPU whose firmware is stuck, that did not start,
# that was reset, or whose memory failed. GPU003 makes findings of it.


class _Words(msgspec.Struct, frozen=True):
    signs: tuple[str, ...]
    words: str
    side: str
    fix: tuple[str, ...]
    cost: str = _STOPPED

    def of(self, events: list[Event]) -> list[Event]:
        return [event for event in events if any(sign in event.text.lower() for sign in self.signs)]


@cache
def _words() -> tuple[_Words, ...]:
    return msgspec.convert(own_data("checks/gpu/amd_events")["trouble"], tuple[_Words, ...])


def amd_troubles(check: NodeCheck, node: Node) -> list[Finding]:
    """One for each GPU whose driver speaks of trouble."""
    reset: str | None = None
    placed: list[tuple[str, Event]] = []
    for event in reversed([event for event in node.events if event.kind == "amdgpu"]):
        # A line of a queue's timeout names no GPU: the reset that its handler begins does (amdgpu_job_timedout).
        timed_out = event.bus_id is None and " timeout" in event.text.lower()
        placed.append((kernel.label_at(node, reset if timed_out else event.bus_id), event))
        reset = event.bus_id if "reset begin" in event.text.lower() else reset if timed_out else None
    return [_of_gpu(check, node, label, own) for label, own in grouped(reversed(placed)).items()]


def _of_gpu(check: NodeCheck, node: Node, label: str, events: list[Event]) -> Finding:
    entry = next(entry for entry in _words() if entry.of(events))
    kernel_events, name = entry.of(events), kernel.named(node, label)
    return check.finding(
        check.where(node, gpus=kernel.where_gpus([label])),
        "xid",
        f"{name}: {entry.words}{kernel.times(kernel_events)}",
        severity=Severity.ERROR,
        observed=kernel_events[0].text,
        expected=_caused_by(entry.side),
        fix=kernel.with_bus(node, label, entry.fix),
        cost=entry.cost,
        evidence=events,
    )


# A GPU whose own processor (GSP) does not answer the driver, told by the driver's functions and by no Xid.


_SAME = frozenset({62, 79, 109, 119, 120, 143})
"""Xids of which such lines are the echo."""


def silent_firmware(check: NodeCheck, node: Node, groups: Sequence[XidGroup]) -> list[Finding]:
    """The one trouble of such lines, where neither an Xid nor a lost GPU speaks for them."""
    events = [event for event in node.events if event.kind == "gsp"]
    spoken = any(group.code in _SAME for group in groups) or any(event.kind == "gpu-lost" for event in node.events)
    if not events or spoken:
        return []
    label = kernel.label_at(node, next((event.bus_id for event in events if event.bus_id is not None), None))
    words = "its processor (GSP) does not answer the driver"
    return [_on_gpu(check, node, label, words, events, advice="silent firmware")]
