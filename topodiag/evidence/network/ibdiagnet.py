"""`ibdiagnet`: the lines of its log that find a fault of the fabric.

    -E- S946dae0300aabbcc/Nleaf-03/P17<-->H946dae03/gpu-017/U1/P1 - Unexpected actual link width 1x
    -W- gpu-017/mlx5_3/U1/P1 - "symbol_error_counter" increased during the run (difference value=312,...)
    -W- link with PHY=1x found at direct path "1,19"
    -I- Speed / Width checks      0          2

`-I-` lines inform; their table counts errors by stage. Formats: ibdiagnet 1.5 (ibdiag.tcl) and ibutils2 2.1 to 2.13.

`hca_self_test.ofed`: the state of the ports of each adapter, and the tests that failed.

    Port State of Port #1 on CA #0 (HCA)..... UP 4X HDR (InfiniBand)
    Port State of Port #1 on CA #1 (HCA)..... DOWN (InfiniBand)
    Error Counter Check on CA #0 (HCA)...... FAIL
        REASON: found errors in the following counters

Format: ofed-scripts 4 to 24. It numbers the adapters and names none.
"""

from __future__ import annotations

import re
from collections import Counter

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import MAX_LINE, Reporting, report
from topodiag.lazy import regex
from topodiag.model.events import REMARK, Event
from topodiag.model.topics import Topic

MAX_OF_KIND = 50
"""Lines kept of one kind: a fabric with a bad switch writes thousands."""

_MARK = regex(r"^[ \t>|]{0,20}-[IWE]- \S", re.MULTILINE)
_LINE = regex(r"[ \t>|]{0,20}-([IWE])- (\S.{0,600}?)\s*\Z")
_STAGE = regex(r"(\S.{1,60}?)\s{2,60}(\d{1,9})\s{1,40}(\d{1,9})(?:\s{1,40}.{0,200})?\Z")
_SLOW = regex(r"[Uu]nexpected (?:actual )?link (?:speed|width)|[Ll]ink (?:width|speed) is (?:different|lower)"
                   r"|link with (?:PHY|SPD|LOG|WIDTH|SPEED)=|[Ll]ink at lower (?:width|speed)")  # fmt: skip
_ERRORS = regex(r"\b(?:symbol_error|port_rcv_errors|link_error_recovery|link_down(?:ed)?|local_link_integrity"
                     r"|excessive_buffer|port_rcv_remote_physical|SymbolErrors?|LinkDowned|LinkErrorRecovery"
                     r"|PortRcvErrors)"
                     r"\w{0,24}|\bBER\b|bit error rate", re.IGNORECASE)  # fmt: skip
_SUMMARY = regex(
    r"check finished with|finished (?:successfully|with)|See (?:the )?(?:log|file)|(?:was"
    r"|were) skipped|ibdiagnet",
    re.I,
)


class Ibdiagnet(Reporting):
    """Links and counters that ibdiagnet finds at fault, and what else it calls an error."""

    kind = "ibdiagnet"
    speaks_of = frozenset({Topic.FABRIC})
    trust = 55
    a_piece = "an excerpt shows some lines of it"

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        kept: Counter[str] = Counter()
        stages: list[Event] = []
        for number, whole in blob.lines():
            parsed.lines = number
            found = _LINE.match(whole[:MAX_LINE])
            if found is None:
                continue
            level, text = found[1], found[2]
            if level == "I":
                stage = _STAGE.match(text)
                if stage is not None and int(stage[3]) > 0:
                    words = f"{stage[1].strip()}: {stage[3]} errors, {stage[2]} warnings"
                    stages.append(report(REMARK, words, blob, number, whole))
                continue
            kind = _kind(level, text)
            kept[kind] += 1
            if kind and kept[kind] <= MAX_OF_KIND:
                parsed.records.append(report(kind, text, blob, number, whole))
        if not parsed.records:
            parsed.records.extend(stages)
        return parsed


def _kind(level: str, text: str) -> str:
    """The kind of event that a line makes; "" for a warning of which nobody knows that it is a fault."""
    if _SLOW.search(text):
        return "fabric.link_slow"
    if _ERRORS.search(text):
        return "fabric.link_errors"
    return REMARK if level == "E" and not _SUMMARY.search(text) else ""


_SELF_TEST_MARK = regex(
    r"Performing Adapter Device Self Test|^[ \t>"
    r"|]{0,20}Port State of Port #\d{1,3} on CA #\d",
    re.MULTILINE,
)
_PORT = regex(
    r"[ \t>|]{0,20}(Port State of Port #\d{1,3} on CA #\d{1,3}[^.]{0,20})\.{2,40}\s{0,4}(DOWN"
    r"|INIT|ARMED|POLLING)\b(.{0,60})"
)
_FAILED = regex(r"[ \t>|]{0,20}(\S[^.]{3,80}?)\s{0,3}\.{2,60}\s{0,4}FAIL\b")


class HcaSelfTest(Reporting):
    """What the self test of MLNX_OFED finds at fault."""

    kind = "hca-self-test"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    quiet_is_news = True
    trust = 55
    a_piece = "it names no adapter"

    def recognises(self, head: str) -> bool:
        return _SELF_TEST_MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        for number, line in blob.lines():
            parsed.lines = number
            found = _said(line[:MAX_LINE])
            if found is not None:
                parsed.records.append(report(*found, blob, number, line))
        return parsed


def _said(line: str) -> tuple[str, str] | None:
    if port := _PORT.match(line):
        return "nic.port_down", f"{port[1].strip()}: {port[2]}{port[3].rstrip()}"
    failed = _FAILED.match(line)
    if failed is None:
        return None
    return "fabric.link_errors" if "Error Counter" in failed[1] else REMARK, f"{failed[1]}: FAIL"
