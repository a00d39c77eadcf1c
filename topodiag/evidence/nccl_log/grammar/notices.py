"""Notices by which a cloud or an operator says that a machine is about to be taken from whoever runs on it.

    GCP Metadata Service says termination is imminent
    Spot interruption notice received. Instance will be interrupted at 2025-09-18T08:22:00Z
    {"Events":[{"EventType":"Preempt","ResourceType":"VirtualMachine","EventStatus":"Scheduled", ..
    systemd-logind[812]: Power key pressed short.

The last is how a cloud's hypervisor asks a guest to go (ACPI). Agents that listen for such notices, settings, texts
that explain them, and machines that are moved while they run say nothing.

SOURCE: Google Compute Engine's metadata (instance/preempted, instance/maintenance-event); AWS' instance metadata
(spot/instance-action) and its node termination handler; Azure's Scheduled Events; Karpenter's interruption controller.
"""

from __future__ import annotations

import re

from topodiag.evidence.nccl_log.grammar.any_of import any_of
from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.lazy import regex

_TAKES = r"(?:[Tt]erminat|[Pp]reempt|[Ee]vict|[Ii]nterrupt|[Rr]eclaim|[Rr]eclamat|[Rr]etir|[Dd]eallocat)\w{2,6}"
_NOTICE = compiled(
    rf"\b(?:[Ss]hutdown|{_TAKES}) (?:of (?:this|the) (?:\w{{1,12}} )?(?:instance|VM|node|machine) )?(?:is )?imminent\b"
    r"|\b(?:instance|VM|machine|node|host|server)s?(?:[/ ][\w.-]{1,80})? (?:is being|will be|is about to be|is going to"
    rf" be|is scheduled (?:to be|for)) (?:{_TAKES}|taken (?:back|away)|stopped by the (?:cloud|provider))\b"
    rf"|\b(?:[Rr]eceived|[Gg]ot|[Dd]etected|[Cc]aught) (?:an? |the )?(?:\w{{1,16}} ){{0,3}}{_TAKES}"
    r" (?:notice|notification|warning|event)\b"
    rf"|\b(?:[Ss]pot|{_TAKES})(?: \w{{1,16}}){{0,2}} (?:notice|notification|warning|event)s?"
    r" (?:was |were |has been )?(?:received|detected|issued|triggered|arrived)\b"
    r"|\bmaintenance[-_]event\b\W{1,6}TERMINATE_ON_HOST_MAINTENANCE\b|\binstance/preempted\b\W{1,6}TRUE\b"
    r"|\"action\": ?\"(?:terminate|stop|hibernate)\", ?\"time\": ?\"\d{4}-"
    r"|\"EventType\": ?\"(?:Preempt|Terminate|Redeploy)\".{0,400}\"EventStatus\": ?\"(?:Scheduled|Started)\""
    r"|\bsystemd-logind\b\S{0,12} Power key pressed\b"
)
_SPOKEN_OF = regex(
    r"\b(?:if|when|whenever|unless|until|in case|before|may|might|could|would|should|can|listen\w*|watch\w*|monitor\w*"
    r"|poll\w*|wait\w*|check\w*|start\w*(?!-)|enabl\w*|register\w*|handl(?:e|es|ing)|no|not|without|never|simulat\w*|test\w*)\b"
    r"|\?\s*$|^\s{0,8}(?:#|//|\*)",
    re.IGNORECASE,
)
"""What may come, who listens for it, and what did not come."""
_FACTS = regex(r"\"action\"|\"EventType\"|systemd-logind|_event\b|-event\b|instance/preempted")
"""Values that say so themselves, whatever stands beside them."""

WORDS = (
    b"imminent", b" notice", b" notification", b" warning", b" event", b"maintenance-event",
    b"maintenance_event",
    b"instance/preempted", b'"action"', b'"EventType"', b"Power key pressed", b"is being", b"will be", b"about to be",
    b"is going to be", b"is scheduled",
)  # fmt: skip
"""A line without any of these is none of theirs."""
BEFORE = 60
"""Characters before the words that say whether they are only spoken of."""
_ANY = compiled(any_of(WORDS).decode())


def is_notice(text: str) -> bool:
    """Whether a line announces that the machine will be taken."""
    found = _NOTICE.search(text) if _ANY.search(text) is not None else None
    if found is None:
        return False
    sentence = text[max(0, found.start() - BEFORE) : found.end()]
    return _FACTS.search(found[0]) is not None or _SPOKEN_OF.search(sentence) is None


__all__ = ["WORDS", "is_notice"]
