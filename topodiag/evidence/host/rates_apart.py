"""Rates and widths of links that a line calls lower than they should be, in any tool's wording.

    effective link speed 100G is below the expected 400G            a port, 100 of 400
    GPU 6 trained at PCIe Gen1 x16 while all others are at Gen5     PCIe, gen 1 of 5
    LnkSta x8 instead of x16                                        PCIe, 8 of 16 lanes
    LnkCap: .., Width x4    LnkSta: .., Width x2 (downgraded)        PCIe, 2 of 4 lanes
    ens1np0 UP 400G, expected 400G                                  nothing: they are equal

Both values stand in one clause, in one unit, and a word says which of them should be. What a device could do and idles
below says nothing: lines of a tool's own fields are read by its reader.
"""

from __future__ import annotations

import re

from topodiag.evidence.host.part_states import Said

MAX_LINE = 600
_SHOULD = (
    r"(?:expect(?:ed|s|ing)?|should (?:be|run|have)|instead of|rather than|want(?:ed)?|required|minimum|nominal|while"
    r"|whereas|but (?:all|the) others?|capable of|below|less than|not)"
)
_UNITS: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("pcie", "gen {} of {}", re.compile(r"\b[Gg]en(?:eration)?[ :=-]{0,2}([1-7])\b")),
    (
        "pcie",
        "x{} of x{}",
        re.compile(r"(?<![\w.])(?:[xX](1|2|4|8|12|16|32)\b|(1|2|4|8|12|16|32)(?:[xX]\b| lanes?\b))"),
    ),
    ("pcie", "{} of {} GT/s", re.compile(r"(?<![\w.])(\d{1,2}(?:\.\d)?) ?GT/s")),
    (
        "rate",
        "{} of {} Gb/s",
        re.compile(r"(?<![\w.])(\d{1,4})(?:\.\d)? ?(?:G(?:b(?:it)?(?:/s(?:ec)?|ps)?|bE)?|Gigabit)\b(?!i?B)"),
    ),
    ("rate", "{} of {} Mb/s", re.compile(r"(?<![\w.])(\d{4,6}) ?Mb(?:it)?(?:/s|ps)")),
)
_PCIE = re.compile(r"\bPCI(?:e|-E)?\b|\bpcie?_|\bLnkSta\b|\bGPU\d{0,2}\b|\blanes?\b|\b(?:link )?width\b", re.IGNORECASE)
_PORT = re.compile(
    r"\b(?:NIC|HCA|port|link|interface|mlx[45]_\w{1,12}|rdma\w{1,8}|ib\d{1,2}|en[opsx]\w{2,12}|eth\d{1,3}|bond\w{1,8}|cable)"
    r"s?\b",
    re.IGNORECASE,
)
_BUS = re.compile(r"\bPCI|\bGPU\d{0,2}\b(?!-)|\bLnkSta|\bslot\b", re.IGNORECASE)
_FABRIC = re.compile(r"\b(?:HCA|leaf|spine|switch|IB|InfiniBand|[EHNX]DR|mlx[45]_\d{1,3}|port)\b", re.IGNORECASE)
"""Links of InfiniBand have widths, too."""
_BANDWIDTH = re.compile(
    r"\bbandwidth\b|\bbusbw\b|\balgbw\b|\bthroughput\b|\b(?:ib_)?(?:write|read|send)_bw\b|\bmemory\b|\bRAM\b", re.I
)
"""What a test measured is no rate of a link."""
_DENIED = re.compile(
    r"\b(?:if|when|should we|can be|may|might|could|supports?|up to|default|PASS(?:ED)?|OK|ok|fixed|resolved"
    r"|recovered)\b|\?\s*$"
)
_OVER = re.compile(
    r"\b(?:BER|bit error rate|symbol[ _]errors?|(?:CRC|FEC|link|port|rcv"
    r"|receive)[ _]errors?)\b[^.;]{0,20}?\b(\d[\d.]{0,12}(?:[eE][+-]?\d{1,3})?)"
    r" {0,3}(?:(?:is |are )?(?:above|over|beyond|greater than|exceeds|>)|\(?threshold:?) {0,3}(?:the )?"
    r"(?:threshold |limit |maximum )?(?:of )?(\d[\d.]{0,12}(?:[eE][+-]?\d{1,3})?)"
)
"""A count or a rate of errors with the most that it should be."""
_STATE_OF_LINK = re.compile(r"\bLnkSta:?[^\n]{0,60}?\bWidth x(\d{1,2})\b(?: ?\((\w{2,12})\))?")
_ABLE = re.compile(r"\bLnkCap:?[^\n]{0,80}?\bWidth x(\d{1,2})\b")
"""What lspci shows of a link, where somebody joined its lines. Speed alone rests with the device."""
_WORD = re.compile(rf"\b{_SHOULD}\b", re.IGNORECASE)
_LATER = re.compile(r"(?:capable of|while|whereas|but|below|less than|instead|rather|not)", re.IGNORECASE)


def slower_of(line: str) -> Said | None:
    """The link that a line says is slower or narrower than it should be; None where it says nothing of the kind."""
    if len(line) > MAX_LINE:
        return None
    over = _OVER.search(line)
    if over is not None and _number(over[1]) > _number(over[2]):
        return Said("network port", f"{over[1]}, at most {over[2]}", "link-errors")
    for word in _WORD.finditer(line):
        if _DENIED.search(line) is not None or _BANDWIDTH.search(line) is not None:
            return None
        for fault, words, unit in _UNITS:
            found = _pair(line, word, unit)
            part = _PCIE if fault == "pcie" else _PORT
            if found is not None and part.search(line) is not None:
                had, wanted = found
                of_bus = fault == "pcie" and not ("x" in words and _FABRIC.search(line) and not _BUS.search(line))
                kind = ("PCIe device", "pcie") if of_bus else ("network port", "link-slow")
                return Said(kind[0], words.format(had, wanted), kind[1])
    return None


def narrowed(line: str) -> Said | None:
    """The link that a line with lspci's words shows narrower than its device can do."""
    now = _STATE_OF_LINK.search(line[:MAX_LINE])
    if now is None:
        return None
    able = _ABLE.search(line[:MAX_LINE])
    if able is not None and 0 < int(now[1]) < int(able[1]):
        return Said("PCIe device", f"x{now[1]} of x{able[1]}", "pcie")
    return Said("PCIe device", f"x{now[1]} (downgraded)", "pcie") if now[2] == "downgraded" else None


def of_lspci(line: str) -> bool:
    """Whether a line shows the state of a PCIe link in lspci's words, of which `narrowed` tells all."""
    return "LnkSta" in line and _STATE_OF_LINK.search(line[:MAX_LINE]) is not None


def _number(text: str) -> float:
    try:
        return float(text.rstrip("."))
    except ValueError:
        return 0.0


def _pair(line: str, word: re.Match[str], unit: re.Pattern[str]) -> tuple[str, str] | None:
    """The value that is and the one that should be, where the first is the lower one."""
    before = list(unit.finditer(line, max(0, word.start() - 80), word.start()))
    behind = list(unit.finditer(line, word.end(), min(len(line), word.end() + 80)))
    if before and behind:
        had, wanted = _value(before[-1]), _value(behind[0])
    elif len(behind) > 1 and _LATER.fullmatch(word[0]) is None:
        wanted, had = _value(behind[0]), _value(behind[1])  # expected 400G, got 100G
    else:
        return None
    return (had, wanted) if float(had) < float(wanted) else None


def _value(found: re.Match[str]) -> str:
    return next(group for group in found.groups() if group)


__all__ = ["narrowed", "of_lspci", "slower_of"]
