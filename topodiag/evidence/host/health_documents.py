"""What an agent of node health says in JSON, whoever wrote it: a part with a state that is none of health, and why.

    {"component": "infiniband", "health": "Unhealthy", "reason": "only 7 ports are active, expect >=8 ports"}
    {"name": "pcie-acs", "status": "abnormal", "error_name": "PCIeACSNotClosed", "detail": "Not All PCIe ACS are"
        " disabled"}
    {"check": "pcie_width", "passed": false, "device": "GPU 2"}

Of each object that calls itself unwell the sentences are read as those of any tool, and its names where no sentence
says which part it is. An object around it repeats what it holds. Agents that were looked at: gpud (api/v1 HealthState),
sichek (components/common), NVSentinel (health events), node-problem-detector.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from topodiag.evidence.host.part_states import MAX_LINE
from topodiag.evidence.host.told import told_of
from topodiag.evidence.host.verdict_lines import topic_of
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import Telling, event
from topodiag.model.system import TOLD_OF, KernelEvent
from topodiag.model.topics import Topic

MOST_CHARS = 1 << 22
MOST_DEPTH = 24
MOST_EVENTS = 50

_STATES = "health|status|state|result|outcome|verdict|health_?state|health_?status|condition"
_UNWELL = r"unhealthy|abnormal|fail(?:ed|ure)?|critical|fatal|error|degraded|down|bad|not[ _]?ok|nok|faulty|fault"
_FLAGS = "healthy|is_?healthy|passed|ok|success"
_MARK = re.compile(
    rf'"(?:{_STATES})"\s{{0,8}}:\s{{0,8}}"(?:{_UNWELL})"|"(?:{_FLAGS})"\s{{0,8}}:\s{{0,8}}false\b'
    r'|"(?:severity|level)"\s{0,8}:\s{0,8}"(?:critical|fatal)"',
    re.IGNORECASE,
)
_STATE_KEY, _FLAG_KEY = re.compile(rf"(?:{_STATES})\Z", re.IGNORECASE), re.compile(rf"(?:{_FLAGS})\Z", re.IGNORECASE)
_GRAVITY_KEY = re.compile(r"(?:severity|level)\Z", re.IGNORECASE)
"""How grave it would be stands beside a state; without one it says that it is so."""
_IS_UNWELL = re.compile(rf"(?:{_UNWELL})\Z", re.IGNORECASE)
_SENTENCES = re.compile(
    r"(?:reason|message|msg|details?|description|summary|warnings?|errors?|cause|info)\Z", re.IGNORECASE
)
_NAMES = re.compile(
    r"(?:component|name|check\w{0,10}|test\w{0,10}|error_?(?:name|code)|type|id|item|metric|module)\Z", re.IGNORECASE
)
_OF_DCGM = re.compile(r'"(?:DCGM \w{1,20}|GPU Device Serials)"\s{0,8}:')
"""Those have a reader that knows their sentences."""


class HealthDocuments(Telling):
    """Objects that call a part of the node unwell."""

    kind = "health-json"
    speaks_of = frozenset({Topic.SERVICES})
    trust = 20
    a_piece = "whose text it is, and of what, nobody knows"

    def recognises(self, head: str) -> bool:
        return head.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") and bool(_MARK.search(head)) and not _OF_DCGM.search(head)

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed: Parsed[KernelEvent] = Parsed()
        text = blob.text[:MOST_CHARS]
        parsed.lines = text.count("\n") + 1
        told: dict[tuple[str, str], str] = {}
        for document in _documents(text):
            for fault, sentence in _unwell(document, 0):
                if len(told) < MOST_EVENTS:
                    told.setdefault((fault, sentence), sentence)
        for fault, sentence in told:
            at = max(text.find(json.dumps(sentence)[1:-1][:80]), 0)
            number = text.count("\n", 0, at) + 1
            line = text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0]
            parsed.records.append(event(f"{TOLD_OF}{fault}", " ".join(sentence.split())[:300], blob, number, line))
        return parsed


def _documents(text: str) -> Iterator[Any]:
    """The values of a text: one, or one a line."""
    try:
        yield json.loads(text)
    except (ValueError, RecursionError):
        for line in text.split("\n"):
            if line.lstrip()[:1] == "{":
                try:
                    yield json.loads(line)
                except (ValueError, RecursionError):
                    continue


def _unwell(value: object, depth: int) -> list[tuple[str, str]]:
    """Fault and sentence of each innermost object that calls itself unwell."""
    if depth > MOST_DEPTH:
        return []
    if isinstance(value, list):
        return [said for each in value for said in _unwell(each, depth + 1)]
    if not isinstance(value, dict):
        return []
    stated = any(_STATE_KEY.match(key) for key in value)
    inner = [said for each in value.values() for said in _unwell(each, depth + 1)]
    if inner or not any(_is_unwell(key, each, stated) for key, each in value.items()):
        return inner
    said = _said(value)
    return [said] if said is not None else []


def _is_unwell(key: str, value: object, stated: bool) -> bool:
    if isinstance(value, str):
        if not stated and _GRAVITY_KEY.match(key) is not None:
            return value.strip().lower() in ("critical", "fatal")
        return _STATE_KEY.match(key) is not None and _IS_UNWELL.match(value.strip()) is not None
    return value is False and _FLAG_KEY.match(key) is not None


def _said(held: dict[str, Any]) -> tuple[str, str] | None:
    """Which fault an object tells of, by its sentences and then by its names, and the sentence to quote."""
    sentences = [text for key, each in held.items() if _SENTENCES.match(key) for text in _texts(each)]
    names = [text for key, each in held.items() if _NAMES.match(key) for text in _texts(each)]
    for sentence in sentences:
        told = told_of(sentence[:MAX_LINE])
        if told is not None and told.fault:
            return told.fault, sentence
    by_name = next((said for text in (*names, *sentences) if (said := topic_of(text, "unwell")) is not None), None)
    quoted = next((text for text in (*sentences, *names) if text), "")
    return (by_name.fault, quoted) if by_name is not None and quoted else None


def _texts(value: object) -> list[str]:
    held = value if isinstance(value, list) else [value]
    return [each.strip() for each in held if isinstance(each, str) and each.strip()]


__all__ = ["HealthDocuments"]
