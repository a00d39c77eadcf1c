"""The head of a record, `host:pid:tid [dev] file:line (func) NCCL LEVEL `, found anywhere in a physical line.

SOURCE: NCCL src/debug.cc (ncclDebugLog) and src/include/debug.h of 2.3 and 2.4. Launchers put labels in
front (`srun -l`, `mpirun --tag-output`, torchrun, Ray, pdsh, container time stamps), so a head is searched for, and one
physical line can hold several records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isnan, nan

from topodiag.evidence.nccl_log.grammar import job_lines
from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.evidence.signatures import wrappers
from topodiag.evidence.signatures.engine import events_of_job
from topodiag.lazy import dataclass
from topodiag.words.colours import without_colours
from topodiag.words.own_data import own_data, patterns
from topodiag.words.unfilled import is_unfilled

_LIKE = patterns("evidence/nccl_log/grammar/prefix", "head", re.ASCII)
IDENTITY, RECORD, BARE = _LIKE["identity"], _LIKE["record"], _LIKE["bare"]
_HEADLESS = patterns("evidence/nccl_log/grammar/prefix", "headless", re.ASCII)
"""Lines of NCCL that have no head, by their kind."""
_LABEL_ENDS = ">:|)]-"
"""What a launcher's label ends with, in front of a record whose head was taken off: no word of prose does, and no
piece of a torn head."""
_MASKED_REACH = 600
_MOST_SENTENCE = 2000
"""Characters that are kept of a job's line: torch prints two fingerprints on one. Of a longer one both ends are, as
DeepSpeed prints how a process ended behind its whole command."""
_OWN_ENDS = ("exception", "loader", "exit", "crash", "fatal")
"""Ends of the process that prints the line, or of one that it started."""
_BRACKETS = "[]<>(){}\"'`"


@dataclass(frozen=True, slots=True)
class Record:
    """One record. `place` is the file and line of a warning; `label` the rank that a launcher put in front, as
    digits; `ts` seconds since the epoch as if the log's zone were UTC, NaN without a date."""

    host: str
    pid: int
    tid: int
    dev: int
    level: str
    message: str
    place: str = ""
    label: str = ""
    ts: float = nan


def clean(raw: bytes) -> str:
    """The text of a physical line without its end, colours and NULs. Bytes that are no UTF-8 become U+FFFD."""
    # Taken out of the bytes: what a NUL parts, of a character of several bytes, is joined as the extractors join it.
    return without_colours(raw.rstrip(b"\r\n")).decode("utf-8", "replace")


def records(text: str) -> Iterator[Record]:
    """The records of one clean line, in their order."""
    heads = RECORD.finditer(text) if "INFO" in text or "NCCL" in text or " WARN " in text else ()
    # A torn head can stand before the real one.
    pairs = [((_last_identity(text, *head.span(8)) if head[8] else None) or head, head) for head in heads]
    if not pairs:
        record = _without_plain_head(text)
        if record is not None:
            yield record
        return
    before = text[: pairs[0][0].start()]
    for index, (who, head) in enumerate(pairs):
        end = pairs[index + 1][0].start() if index + 1 < len(pairs) else len(text)
        message, following = text[head.end() : end], ""
        if index + 1 < len(pairs):
            message, following = wrappers.parted_at_end(message)
        level = head[5] or head[6] or (head[7] and "WARN") or head[9] or head[10]
        label, ts = label_of(before.rpartition("\r")[2][-300:]) if before else ("", nan)
        place = _place(head[7] or head[8], level)
        process, thread, dev = number(who[2]), number(who[3]), number(who[4])
        yield Record(who[1], process, thread, dev, level, _message(message), place, label, ts)
        before = following


def _without_plain_head(text: str) -> Record | None:
    """The record of a line whose head was masked or taken off; None for a line that holds none."""
    if "NCCL " not in text:
        return None
    level = _LIKE["any_level"].search(text)
    if level is None:
        return None
    before, message = text[: level.start()], _message(text[level.end() :])
    front = before[-_MASKED_REACH:]
    parts = _LIKE["masked"].search(front)
    if parts is not None and not _LIKE["clock"].search(parts[0]):
        host, process, thread, device = parts.groups()[:4] if parts[5] is None else parts.groups()[4:8]
        who = host.strip(_BRACKETS)[:255], _masked_number(process), _masked_number(thread)
        return Record(*who, number(device), level[1], message, parts[9] or "", *label_of(front[: parts.start()]))
    if bare := BARE.search(text):
        return Record("", -1, -1, number(bare[1]), bare[3], _message(text[bare.end() :]), bare[2] or "")
    loose = _LIKE["loose"].match(front)
    if loose is None or (loose[1].strip() and loose[1].rstrip()[-1] not in _LABEL_ENDS):
        return None
    if loose[3] and level[1] not in ("WARN", "ATTN"):
        return None  # an application's own talk: NCCL names a place in warnings only
    return Record("", -1, -1, number(loose[2]), level[1], message, loose[3] or "", *label_of(loose[1]))


def _masked_number(text: str) -> int:
    """A process or thread whose number was masked: what digits are left of it (`PID1`), -1 without any."""
    digits = "".join(letter for letter in text if letter.isascii() and letter.isdigit())
    return number(digits) if digits else -1


def _last_identity(text: str, start: int, end: int) -> re.Match[str] | None:
    """Who prints by the last head in this part of a line."""
    return max(IDENTITY.finditer(text, start, end + 1), key=lambda who: who.start(), default=None)


def _place(middle: str | None, level: str) -> str:
    if not middle or level not in ("WARN", "ABORT"):
        return ""
    inner = _last_identity(middle, 0, len(middle))
    matched = _LIKE["place"].match(middle[inner.end() :] if inner else middle)
    return matched[1] if matched else ""


def _message(text: str) -> str:
    """What stands before a carriage return (a progress bar may follow) and without trailing blanks or labels."""
    cut = text.find("\r")
    if cut >= 0:
        text = text[:cut]
    if text.endswith((">:", ">: ")):
        text, _ = wrappers.parted_at_end(text)
    return text.rstrip()


def label_of(before: str) -> tuple[str, float]:
    """The rank that a launcher's labels name, as digits ("" without), and the clock of what stands before a head; NaN
    where there is none."""
    labels = wrappers.unwrap(f"{before}.")
    time_s = wrappers.without_clock(before)[1] if isnan(labels.time_s) else labels.time_s
    return str(labels.rank) if labels.rank >= 0 else "", time_s


def number(digits: str | None) -> int:
    """Bounded: an uninitialised device of NCCL before 2.23 can be any number. -1 for what is masked or not there."""
    return int(digits) if digits and len(digits) <= 18 and digits.lstrip("-").isdecimal() else -1


def application(text: str) -> tuple[str, dict[str, object]] | None:
    """The row of a line without a head that speaks of NCCL: (table, columns), None for all others."""
    if is_unfilled(text):
        return None
    if "CCL" in text or "ccl" in text or " version " in text or "|" in text:
        for kind, pattern in _HEADLESS.items():
            if (match := pattern.search(text)) is not None:
                return "text", {"kind": kind, "text": match[match.lastindex or 0].rstrip()}
    last = LAST_ERROR.search(text)
    if last is not None and wrappers.is_label(text[: last.start()]):
        label, ts = label_of(text[: last.start(1)])
        return "event", {"level": "APP", "place": "", "label": label, "text": last[1].rstrip(), "ts": ts}
    if not any(events_of_job(text, "nccl failure")):
        return _of_job(text)
    before, place, words = wrappers.parted_at_place(text)
    label, ts = label_of((before or text)[:300])
    label = label or wrappers.rank_of_torch(text)
    return "event", {"level": "APP", "place": place, "label": label, "text": words.strip()[:1000], "ts": ts}


def _shortened(sentence: str) -> str:
    """A sentence without its middle where it is too long."""
    half = _MOST_SENTENCE // 2 - 2
    return sentence if len(sentence) <= _MOST_SENTENCE else f"{sentence[:half]} … {sentence[-half:]}"


def _of_job(text: str) -> tuple[str, dict[str, object]] | None:
    """The row of a line that a job prints, behind whatever label; None for all others."""
    bare = wrappers.unwrap(text).text
    sentence = next((part for part in (text, bare) if job_lines.said_of(part) is not None), None)
    if sentence is None:
        return None
    kind, named = job_lines.said_of(sentence) or ("", {})
    if kind == "ended" and named.get("how") in _OWN_ENDS and wrappers.is_of_service(text):
        return None
    label, ts = label_of(text[:300])
    if bare.startswith(("slurmstepd:", "srun:")):  # of the job, in the output of whichever task
        label = ""
    label = job_lines.task_of(text) or label
    return "event", {"level": "APP", "place": "", "label": label, "text": _shortened(sentence.strip()), "ts": ts}


LAST_ERROR = compiled(f"({'|'.join(own_data('evidence/nccl_log/grammar/texts')['last_warning'])})$")
