"""`ib_write_bw` and its kin (perftest): the device and the link layer that a test between two machines used.

                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx5_0
 Link type       : Ethernet

What a test measured is no fact of the port: it is one queue pair's, and of two machines. Format: perftest 4.5 to 24.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import Page, RdmaRecord, fill_rdma
from topodiag.model.topics import Topic

_MARK = re.compile(
    r"^[ \t>|]{0,60}(?:RDMA_Write|RDMA_Read|Send|Write|Read|Atomic\w{0,20})\b.{0,30} (?:BW|Latency) Test\s*$", re.M
)
_DEVICE = re.compile(r"\bDevice {1,20}: (\S{1,63})")
_LAYER = re.compile(r"\bLink type {1,20}: (IB|Ethernet)\b")


class Perftest(Source[RdmaRecord]):
    """Devices that a test of perftest used."""

    kind = "rdma-perftest"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    trust = 55

    def told(self, parsed: Parsed[RdmaRecord]) -> frozenset[Topic]:
        """Nothing as a whole: a test names the device that it was given."""
        return frozenset()

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None and _DEVICE.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        page = Page(blob, parsed)
        record: RdmaRecord | None = None
        for line in page.lines():
            device, layer = _DEVICE.search(line.text), _LAYER.search(line.text)
            if device is not None and (name := words.device_name(device[1])) is not None:
                record = RdmaRecord(name, line.number)
                record.port(1, line.number)
                parsed.records.append(record)
            if layer is not None and record is not None:
                line.put(record.port(1, line.number).facts, "link_layer", words.link_layer(layer[1]))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_rdma(blob, record, draft)
