"""A row of `iblinkinfo`: one active link from one of its ends, for the cluster that links make and for how they are.

    0x0c42a103002f1b2c   41  1[  ] ==( 2X 106.25 Gbps Active/  LinkUp)==>  12 17[  ] "leaf-03" ( Could be 4X)

With `--line` a row names its own end behind the GUID. Format: rdma-core, infiniband-diags/iblinkinfo.c (print_port).
"""

from __future__ import annotations

import re

from topodiag.lazy import regex

LINK_ROW = regex(
    r'\s{0,40}(?:0x[0-9a-f]{1,16}\s{1,40}(?:"(?P<name>[^"]{0,200})"\s{1,40})?)?(?P<lid>\d{1,6})\s{1,20}'
    r"(?P<port>\d{1,4})\[[^\]]{0,4}\] ==\(\s{0,10}(?P<lanes>\d{1,2})X\s{1,20}(?P<speed>[\d.]{1,12}) Gbps[^)/]{0,20}"
    r" Active/\s{0,4}LinkUp\)==>\s{1,20}(?:0x[0-9a-f]{1,16}\s{1,20})?(?P<peer_lid>\d{1,6})\s{1,20}"
    r'(?P<peer_port>\d{1,4})\[[^\]]{0,4}\] "(?P<peer>[^"]{0,200})"(?:\s{0,4}\((?P<could>[^()]{0,80}))?',
    re.ASCII,
)
"""`name` is None where the row does not tell its own end, `speed` that of a lane in Gb/s as printed, `peer` the
description of the other end, `could` what the tool says of both ends, None where the row was cut before it."""
