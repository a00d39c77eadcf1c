"""Logs that a container's runtime or a collector wrapped, one JSON object a line: the text that the program wrote.

Docker's json-file driver, Fluent Bit and Fluentd, Cloud Logging, CloudWatch, journald and Loki each name the text and
its time in their own way. Lines that are no such object go through as they are. Line numbers stay those of the file: a
text of several lines stands on one, its ends as carriage returns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from topodiag.evidence.signatures.literals import parts_of_lines
from topodiag.lazy import regex
from topodiag.words.own_data import own_data

MENDED = JSON_LINES, WRAPPED_LINES, JOB_EVENTS = "json-lines", "wrapped-lines", "job-events"
"""Layers that mend lines of NCCL's for their reader: other lines are whole as they stand."""
MAX_LINE_BYTES = 1 << 20
"""A longer line is passed on in pieces, as it is: runtimes cut theirs at 16 KiB."""

MAX_DEPTH = 4
_WORDS = own_data("evidence/nccl_log/input/json_lines")
_LIKE = {name: regex(_WORDS[name]) for name in ("time", "near_times", "member")}
_VERDICT = regex(_WORDS["verdict"].encode())
_HEAD_LINES = 200


def looks_wrapped(head: bytes) -> bool:
    """Whether the first bytes of a file hold such lines: one with a record of NCCL, or most of the lines."""
    lines = [line for line in head.split(b"\n")[:_HEAD_LINES] if line.strip()]
    texts = [text for line in lines if (text := unwrapped(line)) is not None]
    return any(" NCCL " in text for text in texts) or len(texts) * 2 > len(lines)


def unwrapped(line: bytes) -> str | None:
    """The text inside, with its time in front where an error may be told; None where the line is no such object."""
    if line.lstrip()[:1] not in (b"{", b'"') or (b'"message"' not in line and _VERDICT.search(line) is not None):
        return None
    try:
        document = msgspec.json.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        document = _with_patience(line)
        if isinstance(document, str):
            return _one_line(document)
    if not isinstance(document, dict):
        return None
    text = next((document[key] for key in _WORDS["texts"] if isinstance(document.get(key), str)), None)
    if text is None or (" NCCL " not in text and _says_more(document)):
        return None
    text = _one_line(text)
    if _LIKE["near_times"].search(text):
        time = next((document[key] for key in _WORDS["times"] if isinstance(document.get(key), str)), "")
        stamp = _LIKE["time"].match(time)
        text = f"[{stamp[0]}] {text}" if stamp else text
    return text


def _says_more(document: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether an object inside has a message of its own: an event that an agent passes on, and no line of a program."""
    inner = [value for value in document.values() if isinstance(value, dict)] if depth < MAX_DEPTH else []
    return any(
        any(" " in text for key in _WORDS["texts"] if isinstance(text := value.get(key), str))
        or _says_more(value, depth + 1)
        for value in inner
    )


def _with_patience(line: bytes) -> object:
    """What the standard library makes of bytes that are no UTF-8, of NaN and the like; of a member by itself its text,
    None of anything else."""
    words = line.decode("utf-8", "replace").strip()
    try:
        if words.startswith("{"):
            return json.loads(words)
        member = _LIKE["member"].fullmatch(words)
        return str(json.loads(member[1])) if member else None
    except (ValueError, RecursionError):
        return None


def _one_line(text: str) -> str:
    return text.rstrip("\r\n").replace("\n", "\r")


def json_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The texts of wrapped lines, one a line, from blocks of any size."""
    for part in parts_of_lines(blocks, MAX_LINE_BYTES):
        yield b"\n".join(map(_unwrap, part.split(b"\n")))


def _unwrap(line: bytes) -> bytes:
    text = unwrapped(line)
    return line if text is None else text.encode("utf-8", "replace")
