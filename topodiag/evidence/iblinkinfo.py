"""A row of `iblinkinfo`: one active link from one of its ends, for the cluster that links make and for how they are.

    0x0c42a103002f1b2c   41  1[  ] ==( 2X 106.25 Gbps Active/  LinkUp)==>  12 17[  ] "leaf-03" ( Could be 4X)

With `--line` a row names its own end behind the GUID. Format: rdma-core, infiniband-diags/iblinkinfo.c (print_port).
"""

from __future__ import annotations

import re

from topodiag.lazy import dataclass, regex

_ROW = regex(
    r'\s{0,40}(?:0x[0-9a-f]{1,16}\s{1,40}(?:"([^"]{0,200})"\s{1,40})?)?(\d{1,6})\s{1,20}(\d{1,4})'
    r"\[[^\]]{0,4}\] ==\(\s{0,10}(\d{1,2})X\s{1,20}([\d.]{1,12}) Gbps[^)/]{0,20} Active/\s{0,4}LinkUp\)==>\s{1,20}"
    r'(?:0x[0-9a-f]{1,16}\s{1,20})?(\d{1,6})\s{1,20}(\d{1,4})\[[^\]]{0,4}\] "([^"]{0,200})"(?:\s{0,4}\(([^()]{0,80}))?',
    re.ASCII,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LinkRow:
    """`name` is None where the row does not tell its own end, `speed` that of a lane in Gb/s as printed, `peer` the
    description of the other end, `could` what the tool says of both ends, None where the row was cut before it."""

    name: str | None
    lid: str
    port: int
    lanes: int
    speed: str
    peer_lid: str
    peer_port: int
    peer: str
    could: str | None


def link_row(text: str) -> LinkRow | None:
    """The row that a line is, None for all others."""
    found = _ROW.match(text)
    if found is None:
        return None
    name, lid, port, lanes, speed, peer_lid, peer_port, peer, could = found.groups()
    name = name.strip() if name is not None else None
    return LinkRow(name, lid, int(port), int(lanes), speed, peer_lid, int(peer_port), peer.strip(), could)
