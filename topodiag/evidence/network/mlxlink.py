"""`mlxlink` of NVIDIA's firmware tools: state, rate and error counters of one port of an adapter.

    # mlxlink -d mlx5_5 -c
    State                              : Active
    Physical state                     : LinkUp
    Speed                              : IB-NDR
    Width                              : 4x
    Symbol Errors                      : 3114

The device stands in the command alone: without it the figures are of a port that nobody can name, and speak for it only
where no other adapter is known. Format: MFT 4.20 to
4.30, user manual, mlxlink utility.
"""

from __future__ import annotations

import re
from dataclasses import replace

from topodiag.evidence.draft import UNNAMED_NIC, NodeDraft
from topodiag.evidence.interface import Blob, Parsed, to_int
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import Line, Page, RdmaRecord, RdmaSource
from topodiag.lazy import dataclass, regex
from topodiag.words.own_data import own_data

_SECTION = r"(?:Operational|Troubleshooting|Module) Info|Physical Counters and BER Info"
_MARK = regex(rf"^[ \t>|]{{0,20}}(?:{_SECTION})\s{{1,4}}^[ \t>|]{{0,20}}-{{6,40}}\s*$", re.MULTILINE)
_PICKED = regex(r"^[ \t>|]{0,20}(?:Effective Physical BER|Symbol BER|Raw Physical BER)\s{1,40}: ", re.MULTILINE)
"""Lines that grep left of it."""
_HEAD = regex(rf"(?:{_SECTION})\Z")
_COMMAND = regex(r"\bmlxlink\b.{0,200}?\s-(?:d|-device)[ =](\S{1,64})")
_FIELD = regex(r"([A-Z][A-Za-z0-9 \[\]/().-]{1,40}?)\s*:\s(.{0,200})\Z")
_INFINIBAND = regex(r"(?:IB-)?(SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR)\Z")
_ETHERNET = regex(r"([0-9]{1,4})(?:GbE|G)(?:_[0-9]{1,2}X)?\Z")
_WIDTH = regex(r"([0-9]{1,2})x\Z", re.IGNORECASE)
_LANE_GBPS = {"SDR": 2.5, "DDR": 5.0, "QDR": 10.0, "FDR10": 10.0, "FDR": 14.0, "EDR": 25.0, "HDR": 50.0, "NDR": 100.0,
              "XDR": 200.0}  # fmt: skip
"""Gb/s of data in a lane, as the other tools round it."""

_STATES = {"polling": ("DOWN", "Polling"), "disable": ("DOWN", "Disabled"), "disabled": ("DOWN", "Disabled"),
           "sleep": ("DOWN", "Sleep")}  # fmt: skip
"""States of mlxlink that the kernel tells as a logical and a physical one."""
_SIGNAL = regex(r"[Ss]ignal [Ii]ntegrity|\b[Hh]igh BER\b|\bBER is high\b")
"""Of its recommendations those that blame the signal; others explain why a link is down, which its state says."""
_RATE_AFTER_CORRECTION = regex(r"(?:Effective Physical|Symbol) BER\Z")
_BER = regex(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)E([+-]?[0-9]{1,3})\Z", re.IGNORECASE)
MOST_BER = 1e-12
"""Bit errors that remain after correction, of a link that is well (IBTA's limit; MFT user manual, mlxlink)."""


@dataclass(slots=True)
class _Link:
    """The speed of the port that is being read, until its width is known."""

    record: RdmaRecord
    speed: str = ""


class Mlxlink(RdmaSource):
    """State, rate and counters of a port from `mlxlink`."""

    kind = "mlxlink"
    trust = 60
    a_piece = "it is asked for one port"

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None or _PICKED.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        page = Page(blob, parsed)
        device = ""
        link: _Link | None = None
        picked = _MARK.search(blob.text) is None
        for line in page.lines():
            text = line.bare
            command = _COMMAND.search(text)
            if command is not None:
                device = words.device_name(command[1].rpartition("/")[2]) or ""
                device = "" if device.startswith("mt") or ":" in device else device
                continue
            if text == "Operational Info" or (link is None and (_HEAD.match(text) or (picked and _FIELD.match(text)))):
                link = _Link(RdmaRecord(device, line.number))
                parsed.records.append(link.record)
            if link is not None and (field := _FIELD.match(text)) is not None:
                _read(page, line, link, field[1].strip(), field[2].strip())
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        if len(parsed.records) == 1 and not parsed.records[0].name:
            parsed.records[0] = replace(parsed.records[0], name=UNNAMED_NIC)
        super().fill(blob, parsed, draft)


def _read(page: Page[RdmaRecord], line: Line, link: _Link, name: str, value: str) -> None:
    port = link.record.port(1, line.number)
    if name == "State" and (pair := _STATES.get(value.lower())) is not None:
        line.put(port.facts, "state", pair[0])
        line.put(port.facts, "phys_state", pair[1])
    elif name == "State":
        page.read(line, value, port.facts, "state")
    elif name == "Physical state":
        # Of an Ethernet port it is that of its negotiation (ETH_AN_FSM_ENABLE), no word of the kernel.
        if words.phys_state(value) is not None:
            page.read(line, value, port.facts, "phys_state")
    elif name == "Speed":
        link.speed = value
        match = _INFINIBAND.match(value)
        line.put(port.facts, "link_layer", "InfiniBand" if match else "Ethernet" if _ETHERNET.match(value) else None)
        if match is not None:
            line.put(port.facts, "speed_name", match[1])
    elif name == "Width" and (width := _WIDTH.match(value)) is not None:
        line.put(port.facts, "lanes", int(width[1]))
        line.put(port.facts, "rate_gbps", _rate(link.speed, int(width[1])), "no speed that is known")
    elif name == "Recommendation" and _SIGNAL.search(value) is not None:
        line.put(port.facts, "signal", value[:100])
    elif _RATE_AFTER_CORRECTION.match(name) and (rate := _BER.match(value)) and "signal" not in port.facts:
        if float(f"{rate[1]}e{rate[2]}") > MOST_BER:
            line.put(port.facts, "signal", f"{name} {value}, and {MOST_BER:g} is the most of a link that is well")
    elif name in (names := own_data("evidence/network/counters")["mlxlink"]):
        line.put(port.counters, names[name], to_int(value, low=0))


def _rate(speed: str, lanes: int) -> float | None:
    """Gb/s over all lanes: of InfiniBand a generation, of Ethernet the sum itself."""
    match = _INFINIBAND.match(speed)
    if match is not None:
        return _LANE_GBPS[match[1]] * lanes
    whole = _ETHERNET.match(speed)
    return float(whole[1]) if whole is not None and int(whole[1]) > 0 else None
