"""Xid and SXid errors of the kernel log: the catalogue `xid.toml`, and what the text of a line adds to its number.

Judges no node: a number that is not in the catalogue answers None. Source: NVIDIA, Analyzing Xid Errors with the Xid
Catalog (docs.nvidia.com/deploy/xid-errors).
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import convert

from topodiag.lazy import dataclass, regex
from topodiag.words.own_data import own_data

_RECOVERY = regex(r"recovery action changed from [^()]{0,20}\(([^()]{1,40})\) to [^()]{0,20}\(([^()]{1,40})\)", re.I)
_NVLINK = regex(
    r"\b([A-Z][A-Z0-9_]{2,20})(?:/[A-Z0-9_]{2,24})? {1,4}(Non-?fatal|Fatal)\b"
    r"[^()\n]{0,40}?\bLink {1,4}(-?[0-9]{1,3})[^()\n]{0,10}(?:\((0x[0-9a-f]{1,8}) (0x[0-9a-f]{1,8})\b)?",
    re.IGNORECASE,
)
_LINK = regex(r"\b(?:Link|link) {0,2}(-?[0-9]{1,3})\b")
_SXID_WORD = regex(r"\b(Non-?fatal|Fatal)\b", re.IGNORECASE)
_PROCESS = regex(r"\bpid='?([0-9]{1,10})'?, name=([^\s,]{1,80})")


@dataclass(frozen=True, slots=True)
class Xid:
    """One number of the catalogue. `severity` is `error`, `warning`, `info`, or `by-text` where the line decides."""

    code: int
    name: str
    family: str
    severity: str
    side: str
    means: str
    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sxid:
    """One error of an NVSwitch."""

    code: int
    name: str
    severity: str
    means: str


_REPORT = "not fatal: support wants to know if it recurs"
_NOT_FATAL = "not fatal"


@dataclass(frozen=True, slots=True)
class NvlinkError:
    """What the line of an Xid 144 to 150 says: unit, link, severity by status word, and what that means in words.

    `if_again`: one such line asks for nothing, only its return does; `severity` is that of the return.
    """

    unit: str
    link: int | None
    severity: str
    words: str
    if_again: bool = False


@cache
def _xids() -> dict[int, Xid]:
    actions = own_data("hardware/xid")["action"]
    return {
        code: convert({**row, "code": code, "actions": actions[row["action"]]}, Xid)
        for row in own_data("hardware/xid")["xid"]
        for code in row["codes"]
    }


@cache
def _sxids() -> dict[int, Sxid]:
    return {
        code: Sxid(code, row["name"], row["severity"], row["means"])
        for row in own_data("hardware/xid")["sxid"]
        for code in row["codes"]
    }


def xid(code: int) -> Xid | None:
    """What an Xid means, or None where the catalogue has no such number."""
    return _xids().get(code)


def sxid(code: int) -> Sxid | None:
    """What an SXid means, or None where the catalogue has no such number."""
    return _sxids().get(code)


def sxid_severity(code: int, text: str) -> str:
    """The severity of an SXid line: by the word Fatal or Non-fatal in it, else by the catalogue, else `warning`."""
    known = sxid(code)
    match = _SXID_WORD.search(text)
    if match is None:
        return known.severity if known is not None else "warning"
    if match[1].lower() == "fatal":
        return "error"
    return known.severity if known is not None and known.severity == "info" else "warning"


def link_of(text: str) -> int | None:
    """The number of the NVLink that a line names, or None."""
    match = _LINK.search(text)
    return int(match[1]) if match is not None and not match[1].startswith("-") else None


def process_of(text: str) -> tuple[str, str] | None:
    """Pid and name of the program that an Xid line names; None where it names none (`'<unknown>'`)."""
    match = _PROCESS.search(text)
    return (match[1], match[2]) if match is not None else None


def recovery_of(text: str) -> tuple[str, str] | None:
    """From which recovery action to which one an Xid 154 line says that the GPU went, in lower case."""
    match = _RECOVERY.search(text)
    return (match[1].lower(), match[2].lower()) if match is not None else None


def nvlink_of(code: int, text: str) -> NvlinkError | None:
    """The unit, link and severity of an Xid 144 to 150 by its status word; None for a line of another form."""
    match = _NVLINK.search(text)
    if match is None or not 144 <= code <= 150:
        return None
    unit, fatal = match[1].upper(), match[2].lower() == "fatal"
    link = None if match[3].startswith("-") else int(match[3])
    severity, words = _by_status(code, unit, int(match[5], 16) if match[5] else None, fatal)
    return NvlinkError(unit, link, severity, words, if_again=words in (_REPORT, _NOT_FATAL) and not fatal)


def _by_status(code: int, unit: str, status: int | None, fatal: bool) -> tuple[str, str]:
    """Severity and words. A status word that the table does not hold leaves the line's own word, Fatal or Nonfatal."""
    row = next(
        (row for row in own_data("hardware/xid")["nvlink"] if row["xid"] == code and unit.startswith(row["unit"])), None
    )
    if status and row is not None:
        for key, severity, words in (
            ("reset", "error", "fatal: the link is lost until the GPU is reset"),
            ("program", "warning", "a program was stopped; Xid 154 says what follows"),
            ("report", "warning", _REPORT),
            ("ignore", "info", "not fatal, and nothing follows from it"),
        ):
            if any(status & bit for bit in row[key]):
                return severity, words
    if unit == "NETIR_BER_EVENT":
        return "warning", "the bit error rate of the link is high: look at signal, cable and connectors"
    if fatal:
        return "error", "fatal: the link is lost until the GPU is reset"
    return ("info", "not fatal, and nothing follows from it") if code == 149 else ("warning", _NOT_FATAL)
