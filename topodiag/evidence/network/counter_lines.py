"""Counters of several ports, each line with the port's name before the counter's, as a loop of a shell prints them.

    mlx5_0 link_downed 0
    rdma2      link_down_events_phy: 41
    host7 mlx5_3/1: symbol_error = 8123

Only names of counters that are known, and ports that call themselves so. Format: none, `for d in ..; do ..; done`.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source, to_int
from topodiag.evidence.network.network_records import Page, RdmaRecord, fill_rdma
from topodiag.lazy import regex
from topodiag.model.topics import Topic

MAX_LINE = 300
MAX_PORTS = 1024
_COUNTERS = (
    r"link_down(?:ed|_events(?:_phy)?)|link_error_recovery|symbol_errors?|port_rcv_errors|local_link_integrity_errors"
    r"|excessive_buffer_overrun_errors|port_xmit_discards|rx_(?:crc|symbol)_err(?:ors)?(?:_phy)?|rx_icrc_encapsulated"
    r"|out_of_sequence|packet_seq_err|local_ack_timeout_err|rx_discards_phy|req_transport_retries_exceeded"
)
_LINE = regex(
    r"\s{0,20}(mlx[45]_\d{1,3}|rdma\d{1,3}|ib\d{1,3}|hsn\d{1,2}|en[opsx]\w{1,12}|eth\d{1,3})(?:/(?:port)?\d{1,2}|:\d)?[\s:|,=-]{1,20}"
    rf"(?:port ?\d{{1,2}}[\s:|]{{1,8}})?({_COUNTERS})[\s:|,=]{{1,20}}(\d{{1,18}})\s{{0,20}}$"
)
_OTHERWISE = {"symbol_errors": "symbol_error", "rx_crc_err_phy": "rx_crc_errors_phy"}


class CounterLines(Source[RdmaRecord]):
    """Error counters by port."""

    kind = "counter-lines"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    trust = 50
    a_piece = "the counters that somebody asked for"

    def recognises(self, head: str) -> bool:
        if not re.search(_COUNTERS, head):
            return False
        return len({found[1] for line in head.split("\n") if (found := _LINE.match(line[:MAX_LINE]))}) > 1

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed(partial=True)
        page = Page(blob, parsed)
        devices: dict[str, RdmaRecord] = {}
        for line in page.lines():
            found = _LINE.match(line.text[:MAX_LINE])
            if found is not None and (found[1] in devices or len(devices) < MAX_PORTS):
                record = devices.setdefault(found[1], RdmaRecord(found[1], line.number))
                name = _OTHERWISE.get(found[2], found[2])
                line.put(record.port(1, line.number).counters, name, to_int(found[3], low=0))
        parsed.records.extend(devices.values())
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_rdma(blob, record, draft)
