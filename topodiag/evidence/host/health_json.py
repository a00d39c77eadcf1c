"""JSON in which a health agent says that a part is ill: each innermost object with such a verdict, and its words.

    {"component": "accelerator-nvidia-fabric-manager", "health": "Unhealthy", "reason": "... found but not active"}
    {"name": "HWThermalSlowdown", "status": "abnormal", "detail": "GPU 4 hw thermal slowdown active"}
    {"checkName": "GpuMemWatch", "isFatal": true, "message": "GPU had an uncontained error (XID 95)"}

gpud, NVSentinel, sichek and the scripts of a site differ in names and agree in form. Objects may stand one a line,
among other lines, or as text inside a string. What such an agent advises is not read. A value of a name that is a fault
by itself counts as well (`named_values`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from topodiag.evidence.host.named_columns import judged
from topodiag.evidence.host.named_values import fault_of_value, words_of_name
from topodiag.evidence.host.part_states import not_said
from topodiag.evidence.host.reasons import part_of
from topodiag.evidence.host.told import told_of
from topodiag.evidence.host.told_xids import told_xids
from topodiag.evidence.host.verdict_lines import topic_of
from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import Telling, event
from topodiag.model.busid import normalise_bus_id
from topodiag.model.system import TOLD, TOLD_OF, KernelEvent
from topodiag.model.topics import Topic

MAX_CHARS = 1 << 20
MAX_DEPTH = 24
MAX_EVENTS = 50
MAX_LINES = 5000
MAX_XID_LINE = 16_384

_VERDICTS = frozenset({"health", "status", "state", "result", "verdict", "outcome", "overall health", "health status",
                       "health state", "check result", "conclusion", "severity"})  # fmt: skip
_ILL = frozenset({"unhealthy", "abnormal", "fail", "failed", "failure", "error", "critical", "fatal", "degraded",
                  "faulty", "fault", "bad", "lost", "down", "not ok", "nok"})  # fmt: skip
_GOOD_NAMES = frozenset({"healthy", "is healthy", "ok", "passed", "pass", "success"})
_ILL_NAMES = frozenset({"unhealthy", "is unhealthy", "is fatal", "fatal", "failed"})
_SAYS = frozenset({"reason", "message", "msg", "detail", "details", "description", "error", "errors", "error name",
                   "error code", "errorcode", "warning", "output", "stdout", "summary"})  # fmt: skip
_IS_NAME = frozenset({"component", "name", "check", "check name", "checkname", "checker", "item", "title", "test",
                      "type", "component class"})  # fmt: skip
_MARK = re.compile(
    r"[Uu]nhealthy|abnormal|\"\w{0,20}(?:[Ff]ailed|[Ff]atal|[Dd]egraded)\\{0,3}\"|\bFAIL|[Ff]ail(?:ed|ure)?\\{0,3}\""
    r"|\"(?:[Ee]rror|[Cc]ritical|down|lost|DOWN|LOST|ERROR|CRITICAL)\\{0,3}\""
    r"|(?:[Hh]ealthy|\bok|passed)\\{0,3}\"\s{0,4}:\s{0,4}false|[Ff]atal\\{0,3}\"\s{0,4}:\s{0,4}true"
    r"|[Uu]ncorrect|[Ss]lowdown|[Tt]hrottl|[Rr]emap|_dbe|_DBE|[Rr]etired|\"\w{0,30}(?:expected|wanted)\"|[Cc]lock|CLOCK|_mhz\b|MHz"
    r"|\"(?:level|lvl|severity)\\{0,3}\"\s{0,4}:\s{0,4}\\{0,3}\"(?:[Ww]arn|WARN|[Ee]rr|ERR)"
)
"""A text without any of these holds no verdict that is ill."""
_LEVEL = re.compile(r"\A(?:warn(?:ing)?|err(?:or)?|crit(?:ical)?|fatal|alert|emerg(?:ency)?)\Z", re.IGNORECASE)
"""Levels by which a program logs that something is wrong."""
_PLAY = re.compile(r"(?:fatal|failed): \[[^\]\n]{1,253}\].{0,80}(?:FAILED|UNREACHABLE)! => \Z")
"""What Ansible writes before the result of a task that failed."""
_HARDWARE = re.compile(r"^(?:HW|Hardware)_?(?:Thermal|PowerBrake|Power_Brake)?_?Slowdown$", re.IGNORECASE)
"""Of Redfish's ThrottleReasons and the like: reasons that are not the driver's own choice."""
_OWN_FORMS = re.compile(r"\A\s{0,64}\{\s{0,64}\"(?:schema|schema_version|format|nccl_version)\"|\"DCGM ")
"""JSON that has a reader of its own."""


@dataclass(frozen=True, slots=True)
class Ill:
    """What an object says is ill: the fault, "" for none that a check judges, and the words."""

    fault: str
    text: str


class HealthJson(Telling):
    """Verdicts of health agents in JSON."""

    kind = "health-json"
    speaks_of = frozenset({Topic.SERVICES})
    trust = 30
    a_piece = "an agent's word, without what it looked at"

    def recognises(self, head: str) -> bool:
        return any(True for _, ill in _verdicts(head) if ill.fault) or bool(_xids(head, Blob("", b"")))

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed: Parsed[KernelEvent] = Parsed()
        parsed.lines = blob.data.count(b"\n") + 1
        seen: set[Ill] = set()
        for number, ill in _verdicts(blob.text):
            if ill not in seen and len(parsed.records) < MAX_EVENTS:
                seen.add(ill)
                kind = f"{TOLD_OF}{ill.fault}" if ill.fault else TOLD
                parsed.records.append(event(kind, ill.text, blob, number, ill.text))
        parsed.records += _xids(blob.text, blob)[: MAX_EVENTS - len(parsed.records)]
        return parsed


def _verdicts(text: str) -> Iterator[tuple[int, Ill]]:
    """Each ill verdict of a text with the line on which its object begins, or its words stand."""
    if _MARK.search(text) is None or _OWN_FORMS.search(text[:4096]) is not None:
        return
    whole = _decoded(text) if text.lstrip()[:1] in ("{", "[") and len(text) <= MAX_CHARS else None
    if whole is not None:
        lines = text.split("\n")
        for ill in _ill_of(whole):
            yield _line_of(ill, lines), ill
        return
    for number, line in enumerate(text.split("\n")[:MAX_LINES], 1):
        begin = line.find("{")
        if 0 <= begin <= 200 and _MARK.search(line) is not None and (found := _decoded(line[begin:])) is not None:
            ills = _ill_of(found)
            if not ills and isinstance(found, dict) and _PLAY.match(line[:begin]):
                ills = [_said(found, ())]
            for ill in ills:
                yield number, ill


_XID_SAID = re.compile(
    r"\"(?:reason|message|msg|detail|details|description|error|summary)\\{0,3}\"\s{0,4}:\s{0,4}\\{0,3}\""
    r"([^\"\\]{0,200}\bxid\b[^\"\\]{0,200})",
    re.IGNORECASE,
)
"""A member of an event in whose words an Xid stands; what an agent advises has other names."""


def _xids(text: str, blob: Blob) -> list[KernelEvent]:
    """Xids that an agent keeps among its events: `"message": "xid 119 detected by dmesg"`."""
    if text.lstrip()[:1] not in ("{", "[") or _OWN_FORMS.search(text[:4096]) is not None or "xid" not in text.lower():
        return []
    lines = text.split("\n")[:MAX_LINES]
    found = [_XID_SAID.findall(line[:MAX_XID_LINE]) for line in lines]
    words = ["; ".join(each for each in said if "(XID " not in each) for said in found]  # those `kernel_log` reads
    made = []
    for each in told_xids(words):
        origin = blob.origin(each.line, lines[each.line - 1])
        bus = normalise_bus_id(each.bus_id) if each.bus_id is not None else None
        made.append(KernelEvent("xid", each.text, origin, None, bus, each.code, of_log=False))
    return made


def _decoded(text: str) -> object | None:
    try:
        found = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return found if isinstance(found, (dict, list)) else None


def _line_of(ill: Ill, lines: Sequence[str]) -> int:
    """The line on which the last words of a verdict stand, else the first."""
    last = json.dumps(ill.text.rsplit(": ", 1)[-1][:60])[1:-1]
    return next((number for number, line in enumerate(lines, 1) if last in line), 1)


def _ill_of(value: object, names: tuple[str, ...] = (), depth: int = 0) -> list[Ill]:
    """The innermost verdicts below a value, or its own."""
    if depth > MAX_DEPTH:
        return []
    if isinstance(value, str):
        inside = _decoded(value) if value[:1] in ("{", "[") and len(value) <= MAX_CHARS else None
        return _ill_of(inside, names, depth + 1) if inside is not None else []
    if isinstance(value, list):
        return [ill for each in value for ill in _ill_of(each, names, depth + 1)] or _ill_rows(value)
    return _of_object(value, names, depth) if isinstance(value, dict) else []


def _ill_rows(values: Sequence[object]) -> list[Ill]:
    """Objects with the same members are rows of a table: those that differ from their siblings, or say a fault."""
    objects = [each for each in values if isinstance(each, dict)]
    keys = [key for key, held in objects[0].items() if isinstance(held, (int, float, str))] if objects else []
    if len(objects) < 2 or not keys or any(not set(keys) <= each.keys() for each in objects):
        return []
    rows = [(at, _short(each, keys), [str(each[key])[:60] for key in keys]) for at, each in enumerate(objects, 1)]
    return [Ill(cell.fault, cell.text) for cell in judged([words_of_name(key) for key in keys], rows)]


def _of_metric(metric: Mapping[str, object], value: Sequence[object]) -> list[Ill]:
    """A sample, or the last of a series, of the HTTP API of Prometheus."""
    last = value[-1]
    number = last[-1] if isinstance(last, list) and last else last
    where = " ".join(f"{key} {held}" for key, held in metric.items() if key in ("Hostname", "gpu", "instance", "node"))
    found = _valued(str(metric.get("__name__", "")), str(number), (where,))
    return [found] if found is not None else []


def _short(value: Mapping[str, object], keys: Sequence[str]) -> str:
    return ", ".join(f"{key} {value[key]}" for key in keys)[:300]


def _of_object(value: Mapping[str, object], names: tuple[str, ...], depth: int) -> list[Ill]:
    """What an object holds that is ill, else what it says of itself."""
    own = tuple(text for key, text in value.items() if isinstance(text, str) and words_of_name(key) in _IS_NAME)
    called = (*names, *own)
    below = [ill for each in value.values() for ill in _ill_of(each, called, depth + 1)]
    if below:
        return below
    metric, value_now = value.get("metric"), value.get("value") or value.get("values")
    if isinstance(metric, dict) and isinstance(value_now, list):
        return _of_metric(metric, value_now)
    valued = next((ill for key, each in value.items() if (ill := _valued(key, each, called))), None)
    if valued is not None:
        return [valued]
    if _is_ill(value) and _has_words(value, own):
        return [_said(value, called)]
    logged = _logged(value)
    return [logged] if logged is not None else []


def _logged(value: Mapping[str, object]) -> Ill | None:
    """What a program logs as a warning or worse, where the message, or its reason, says a fault by itself."""
    held = {words_of_name(key): each for key, each in value.items() if isinstance(each, str)}
    level = next((held[key] for key in ("level", "lvl", "severity", "log level") if key in held), "")
    if _LEVEL.match(level) is None:
        return None
    texts = [held[key] for key in ("msg", "message", "reason", "error", "err") if key in held]
    plain = [text for text in texts if not not_said(text)]  # a program logs each of its tries
    said = next((told for text in plain if (told := told_of(text)) is not None and told.fault), None)
    return Ill(said.fault, ": ".join(texts)[:300]) if said is not None else None


def _is_ill(value: Mapping[str, object]) -> bool:
    for key, each in value.items():
        name = words_of_name(key)
        worst = ("critical", "fatal") if name == "severity" else _ILL  # many log errors that harm nothing
        if isinstance(each, str) and name in _VERDICTS and each.strip().lower() in worst:
            return True
        if (each is False and name in _GOOD_NAMES) or (each is True and name in _ILL_NAMES):
            return True
    return False


def _has_words(value: Mapping[str, object], names: Sequence[str]) -> bool:
    return bool(names) or any(words_of_name(key) in _SAYS for key in value)


def _said(value: Mapping[str, object], names: Sequence[str]) -> Ill:
    """What an object says in its own words; by the names around it where these name no part."""
    texts = [
        " ".join(each.split()) for key, each in value.items() if isinstance(each, str) and words_of_name(key) in _SAYS
    ]
    texts += [
        each
        for key, held in value.items()
        if isinstance(held, list) and words_of_name(key) in _SAYS
        for each in held[:4]
        if isinstance(each, str)
    ]
    words = "; ".join(dict.fromkeys(text for text in texts if text))
    called = " ".join(dict.fromkeys(names))
    fault = part_of(words) or _by_name((*names, *texts)) or part_of(f"{words_of_name(called)} {words}")
    return Ill(fault, f"{called}: {words}"[:300] if words else called[:300])


def _by_name(names: Sequence[str]) -> str:
    """The part that the words of a check's name speak of, in any spelling: `PCIeACSNotClosed`."""
    told = next((said for name in names if (said := told_of(name) or topic_of(name, "ill")) is not None), None)
    return told.fault if told is not None else ""


def _valued(key: str, value: object, names: Sequence[str]) -> Ill | None:
    """A name that is a fault by its value, be it a number, a flag or a word."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        held = next((each for each in value[:20] if re.search("throttle", key, re.I) and _HARDWARE.search(each)), None)
        return Ill("gpu-clocks", f"{' '.join(names)} {key}: {held}".strip()[:300]) if held is not None else None
    if isinstance(value, (dict, list)) or value is None:
        return None
    said = {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
    fault = fault_of_value(key, said[:24]) if len(said) <= 24 else ""
    return Ill(fault, f"{' '.join(dict.fromkeys(names))} {key}: {said}".strip()[:300]) if fault else None


__all__ = ["HealthJson", "Ill"]
