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
from topodiag.lazy import dataclass
from topodiag.words.own_data import own_data, patterns

LANE_GBPS: dict[str, float] = {name: gbps for gbps, name in own_data("evidence/network/words")["speeds"].values()}
"""Gb/s of data in a lane by generation, as the tools round it."""
_LIKE = patterns("evidence/network/lines", "fabric_links")


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
        elif switch is not None and (row := _LIKE["peer"].match(text)) is not None:
            here = End(switch[1], switch[2].strip(), int(row[1]), True)
            peer = End(row[3], row[5].strip(), int(row[4]), row[2] == "S")
            runs = f"{row[6]}x{row[7]}" if row[6] else ""
            yield FabricLink(line, text, here, peer, runs, int(row[6] or 0) * LANE_GBPS.get(row[7], 0.0))


def listed_links(blob: Blob) -> Iterator[FabricLink]:
    """The links of an `iblinkinfo`, from the end of each row."""
    name, of_switch = "", False
    for line, whole in blob.lines():
        text = whole[:MAX_LINE].strip(MARGIN)
        section, row = _LIKE["section"].match(text), _LIKE["row"].match(text)
        if section is not None:
            name, of_switch = section[2].strip(' "'), section[1] == "Switch"
        elif row is not None:
            own = row["name"]
            here = End(row["lid"], own.strip() or name if own else name, int(row["port"]), None if own else of_switch)
            peer = End(row["peer_lid"], row["peer"].strip(), int(row["peer_port"]), None)
            gbps = int(row["lanes"]) * (to_float(row["speed"]) or 0.0)
            yield FabricLink(line, text, here, peer, f"{row['lanes']}X {row['speed']} Gbps", gbps, row["could"])
