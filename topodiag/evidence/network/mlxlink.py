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

from itertools import pairwise

from topodiag.evidence.draft import UNNAMED_NIC, Entity
from topodiag.evidence.fabric_links import LANE_GBPS
from topodiag.evidence.interface import to_int
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.words.own_data import own_data

_FIRST = "Operational Info"
_SECTIONS = (_FIRST, "Troubleshooting Info", "Module Info", "Physical Counters and BER Info")
_STATES = {"polling": "Polling", "disable": "Disabled", "disabled": "Disabled", "sleep": "Sleep"}
"""States of mlxlink that the kernel tells as a logical one, down, and a physical one."""
_OF_SIGNAL = ("signal integrity", "high ber", "ber is high")
"""In its recommendations that blame the signal; others explain why a link is down, which its state says."""
_AFTER_CORRECTION = {"Effective Physical BER": "effective_ber", "Symbol BER": "symbol_ber"}
_Rows = dict[str, tuple[Line, str]]


class Mlxlink(OfPage):
    """State, rate and counters of a port from `mlxlink`."""

    def read_page(self, page: Page) -> None:
        device, above = "", ""
        blocks: list[tuple[str, _Rows]] = []
        for line in page.lines():
            text = line.bare
            asked = pairwise(text.replace("=", " ").split()) if "mlxlink" in text else ()
            if given := next((device for option, device in asked if option in ("-d", "--device")), ""):
                name = given.rpartition("/")[2]
                device = "" if name.startswith("mt") or ":" in name else words.device_name(name) or ""
            elif above in _SECTIONS and text.startswith("------") and (above == _FIRST or not blocks):
                blocks.append((device, {}))
            elif blocks and ":" in text:
                key, _, value = text.partition(":")
                blocks[-1][1].setdefault(key.strip(), (line, value.strip()))
            above = text
        for name, rows in blocks:
            page.parsed.records.extend(line.number for line, _ in rows.values())
            if name or len(blocks) == 1:
                page.begin()
                _offer(page.draft.nic(rdma=name or UNNAMED_NIC).child("port", 1), rows)


def _offer(port: Entity, rows: _Rows) -> None:
    counters = own_data("evidence/network/counters")["mlxlink"]
    lane_gbps, sum_gbps = None, None
    for name, (line, value) in rows.items():
        if name == "State" and (physical := _STATES.get(value.lower())) is not None:
            line.offer(port, "state", "DOWN")
            line.offer(port, "phys_state", physical)
        elif name == "State":
            words.offer_cell(line, port, "state", value)
        elif name == "Physical state" and words.phys_state(value) is not None:
            # Of an Ethernet port it is that of its negotiation (ETH_AN_FSM_ENABLE), no word of the kernel.
            words.offer_cell(line, port, "phys_state", value)
        elif name == "Speed":
            generation, digits = value.removeprefix("IB-"), value.partition("G")[0]
            lane_gbps = LANE_GBPS.get(generation)
            if lane_gbps is not None:
                line.offer(port, "link_layer", "InfiniBand")
            elif digits.isdecimal():
                sum_gbps = float(digits) or None
                line.offer(port, "link_layer", "Ethernet")
        elif name == "Width" and (lanes := to_int(value, low=1)) is not None:
            line.offer(port, "lanes", lanes)
            line.offer(port, "rate_gbps", lane_gbps * lanes if lane_gbps else sum_gbps, "no speed that is known")
        elif name == "Recommendation" and any(word in value.lower() for word in _OF_SIGNAL):
            line.offer(port, "signal", value[:100])
        elif name in _AFTER_CORRECTION:
            line.offer(port, _AFTER_CORRECTION[name], value[:20])
        elif name in counters:
            line.count(port, counters[name], to_int(value, low=0))
