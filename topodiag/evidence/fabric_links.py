"""Links of an InfiniBand fabric as `ibnetdiscover` and `iblinkinfo` print them, for the cluster that they make and for
how they run.

    Switch  41 "S-946dae0300aabbcc"  # "MF0;leaf-03:MQM9700/U1" enhanced port 0 lid 12 lmc 0
    [3]     "H-946dae0300112235"[1](946dae0300112235)   # "gpu-003 mlx5_0" lid 43 4xHDR

    CA: node07 mlx5_2:
          0x0c42a103002f1b2c   41  1[  ] ==( 2X 106.25 Gbps Active/  LinkUp)==>  12 17[  ] "leaf-03" ( Could be 4X)

With `iblinkinfo --line` a row names its own end behind the GUID. Formats: rdma-core, infiniband-diags/ibnetdiscover.c
(dump_topology) and iblinkinfo.c (print_port). Ports without a link are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from topodiag.evidence.interface import MAX_LINE, Blob, to_float
from topodiag.evidence.marks import SWITCH
from topodiag.evidence.page import MARGIN
from topodiag.lazy import dataclass, regex
from topodiag.words.own_data import own_data

LANE_GBPS: dict[str, float] = {name: gbps for gbps, name in own_data("evidence/network/words")["speeds"].values()}
"""Gb/s of data in a lane by generation, as the tools round it."""
_PEER = regex(
    r'\[(\d{1,4})\](?:\[ext \d{1,4}\])?\s{1,20}"([SH])-([0-9a-f]{1,16})"\[(\d{1,4})\](?:\([0-9a-fx]{1,18}\))?\s{0,40}'
    r'#\s{1,20}"([^"]{0,200})"(?: lid \d{1,6})?(?: (\d{1,2})x([A-Z]{2,4}\d{0,3}))?',
    re.ASCII,
)
_SECTION = regex(r"(Switch|CA|Rt):? {1,4}(?:0x[0-9a-f]{1,16} )?\s{0,20}(.{0,200}?):\s*\Z", re.ASCII)
_ROW = regex(
    r'\s{0,40}(?:0x[0-9a-f]{1,16}\s{1,40}(?:"(?P<name>[^"]{0,200})"\s{1,40})?)?(?P<lid>\d{1,6})\s{1,20}'
    r"(?P<port>\d{1,4})\[[^\]]{0,4}\] ==\(\s{0,10}(?P<lanes>\d{1,2})X\s{1,20}(?P<speed>[\d.]{1,12}) Gbps[^)/]{0,20}"
    r" Active/\s{0,4}LinkUp\)==>\s{1,20}(?:0x[0-9a-f]{1,16}\s{1,20})?(?P<peer_lid>\d{1,6})\s{1,20}"
    r'(?P<peer_port>\d{1,4})\[[^\]]{0,4}\] "(?P<peer>[^"]{0,200})"(?:\s{0,4}\((?P<could>[^()]{0,80}))?',
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class End:
    """One end of a link: the GUID or the LID of its device, its description ("" where unnamed), and the port."""

    number: str
    name: str
    port: int
    of_switch: bool | None
    """None where the row does not say it."""


@dataclass(frozen=True, slots=True)
class FabricLink:
    """An active link from one end, its line, and what it runs at: in the tool's words, and in Gb/s, 0 where unsaid."""

    line: int
    text: str
    here: End
    peer: End
    runs: str
    gbps: float
    could: str | None = None
    """What `iblinkinfo` says that both ends could do; None where the row does not say it."""


def discovered_links(blob: Blob) -> Iterator[FabricLink]:
    """The links of the switches in an `ibnetdiscover`."""
    switch: re.Match[str] | None = None
    for line, whole in blob.lines():
        text = whole[:MAX_LINE].strip(MARGIN)
        if text.startswith(("Switch", "Ca", "Rt", "vendid=")):
            switch = SWITCH.match(text)
        elif switch is not None and (row := _PEER.match(text)) is not None:
            here = End(switch[1], switch[2].strip(), int(row[1]), True)
            peer = End(row[3], row[5].strip(), int(row[4]), row[2] == "S")
            runs = f"{row[6]}x{row[7]}" if row[6] else ""
            yield FabricLink(line, text, here, peer, runs, int(row[6] or 0) * LANE_GBPS.get(row[7], 0.0))


def listed_links(blob: Blob) -> Iterator[FabricLink]:
    """The links of an `iblinkinfo`, from the end of each row."""
    name, of_switch = "", False
    for line, whole in blob.lines():
        text = whole[:MAX_LINE].strip(MARGIN)
        section, row = _SECTION.match(text), _ROW.match(text)
        if section is not None:
            name, of_switch = section[2].strip(' "'), section[1] == "Switch"
        elif row is not None:
            own = row["name"]
            here = End(row["lid"], own.strip() or name if own else name, int(row["port"]), None if own else of_switch)
            peer = End(row["peer_lid"], row["peer"].strip(), int(row["peer_port"]), None)
            gbps = int(row["lanes"]) * (to_float(row["speed"]) or 0.0)
            yield FabricLink(line, text, here, peer, f"{row['lanes']}X {row['speed']} Gbps", gbps, row["could"])
