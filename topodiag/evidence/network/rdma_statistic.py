"""`rdma statistic show` of iproute2: the hw_counters of RDMA ports.

    link mlx5_0/1 rx_write_requests 12 out_of_sequence 41002 local_ack_timeout_err 2705

With `-p` the counters stand on lines of their own below the port. Format: iproute2, rdma/stat.c.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import MAX_PORT, Line, Page, PortRecord, RdmaRecord, fill_rdma
from topodiag.lazy import regex
from topodiag.model.topics import Topic

_MARGIN = " \t>|"
_PORT = regex(r"(?:link|[0-9]{1,5}/[0-9]{1,5}:)\s{1,8}([^\s/]{1,64})/([0-9]{1,3}):?(?:\s{1,8}(.*))?\Z")
_NAME = regex(r"[a-z][a-z0-9_]{2,60}")
_COUNT = regex(r"[0-9]{1,20}")
_MARK = regex(
    r"^[ \t>|]{0,20}(?:link|[0-9]{1,5}/[0-9]{1,5}:)[ \t]{1,8}[^\s/]{1,64}/[0-9]{1,3}:?\s{1,12}"
    r"(?:rx_|tx_|out_of_|active_|resp_|req_|rnr_|duplicate_|packet_|local_ack)[a-z0-9_]{1,50} [0-9]",
    re.MULTILINE,
)


class RdmaStatistic(Source[RdmaRecord]):
    """Counters of ports from `rdma statistic show`."""

    kind = "rdma-statistic"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    trust = 65

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed(partial=True)
        page = Page(blob, parsed)
        port: PortRecord | None = None
        for line in page.lines():
            text = line.text.strip(_MARGIN)
            head = _PORT.match(text)
            name = words.device_name(head[1]) if head else None
            if head and name and int(head[2]) <= MAX_PORT:
                record = RdmaRecord(name, line.number)
                parsed.records.append(record)
                port = record.port(int(head[2]), line.number)
                _take(line, port, head[3] or "")
            elif port is not None and not _take(line, port, text) and text:
                port = None
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_rdma(blob, record, draft)


def _take(line: Line, port: PortRecord, text: str) -> bool:
    """Keep the counters of a line of names and numbers; False where it is no such line."""
    cells = text.split()
    pairs = list(zip(cells[::2], cells[1::2], strict=False))
    if not pairs or not all(_NAME.fullmatch(name) and _COUNT.fullmatch(count) for name, count in pairs):
        return False
    for name, count in pairs:
        line.put(port.counters, name, int(count))
    return True


__all__ = ["RdmaStatistic"]
