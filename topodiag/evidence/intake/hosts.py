"""Of which host a text of a node's tools is: by what it says itself, never by guessing."""

from __future__ import annotations

import re

from topodiag.evidence.interface import Blob
from topodiag.evidence.signatures.wrappers import of_one_host
from topodiag.lazy import regex
from topodiag.words.own_data import own_data, patterns

_HOSTS = tuple(patterns("evidence/intake/hosts", "host", re.M).values())
_SERIALS = tuple(
    (row["kind"], row["holds"], regex(row["pattern"], re.M)) for row in own_data("evidence/intake/hosts")["serial"]
)
_NOBODY = {"localhost", "localhost.localdomain", "host", "node", "ubuntu", "(none)", "error", "warning", "note"}
_MOST_IDS = 400


def host_of_text(blob: Blob) -> str:
    """The host that a text names as its own, "" where it names none or several."""
    text = blob.text
    label, _ = of_one_host(text)
    if label and not label.isdecimal():
        return label
    names = {match[1] for pattern in _HOSTS for match in pattern.finditer(text)}
    named = {name for name in names if name.lower() not in _NOBODY}
    short = {name.split(".", 1)[0] for name in named}
    return min(named, key=len) if len(short) == 1 else ""


def host_of_log(head: bytes) -> str:
    """The host of the first record of NCCL's log, "" without one."""
    from topodiag.evidence.nccl_log.grammar.prefix import RECORD  # noqa: PLC0415 - where there is such a log

    match = RECORD.search(head.decode("utf-8", "replace"))
    return match[1] if match else ""


def ids_of_text(text: str) -> frozenset[tuple[str, str]]:
    """What only one machine has, as (device, serial): UUIDs of its GPUs, GUIDs of its adapters. Two texts that share a
    serial are of one host; two that give one device different serials are not."""
    return frozenset((device, serial) for _, device, serial in serials_of_text(text))


def serials_of_text(text: str, most: int = _MOST_IDS) -> list[tuple[int, str, str]]:
    """The same with the place of each in the text, in no order, where a serial stands first; at most so many."""
    counts: dict[tuple[str, str], int] = {}
    for kind, literal, pattern in _SERIALS:
        for match in pattern.finditer(text) if literal in text else ():
            serial = match[2].removeprefix("0x").replace(":", "").lower()
            counts.setdefault((f"{kind} {match[1].lower()}" if kind else "", serial), match.start())
            if len(counts) >= most:
                break
    return [(place, device, serial) for (device, serial), place in counts.items()]
