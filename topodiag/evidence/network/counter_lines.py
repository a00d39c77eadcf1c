"""Counters of several ports, each line with the port's name before the counter's, as a loop of a shell prints them.

    mlx5_0 link_downed 0
    rdma2      link_down_events_phy: 41
    host7 mlx5_3/1: symbol_error = 8123

Only names of counters that are known, and two ports at least that call themselves so. Format: none,
`for d in ..; do ..; done`.
"""

from __future__ import annotations

from topodiag.evidence.interface import MAX_LINE, to_int
from topodiag.evidence.page import OfPage, Page
from topodiag.words.own_data import patterns

MAX_DEVICES = 1024
_LIKE = patterns("evidence/network/lines", "counters")
_OTHERWISE = {"symbol_errors": "symbol_error", "rx_crc_err_phy": "rx_crc_errors_phy"}


class CounterLines(OfPage):
    """Error counters by port."""

    def read_page(self, page: Page) -> None:
        rows = [(line, match) for line in page.lines() if (match := _LIKE["line"].match(line.text[:MAX_LINE]))]
        if 1 < len({match[1] for _, match in rows}) <= MAX_DEVICES:
            for line, match in rows:
                port = page.draft.nic(rdma=match[1]).child("port", 1)
                line.count(port, _OTHERWISE.get(match[2], match[2]), to_int(match[3], low=0))
