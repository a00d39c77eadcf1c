"""`ib_write_bw` and its kin (perftest): the device and the link layer that a test between two machines used, and the
bandwidth that it reached.

                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx5_0
 Link type       : Ethernet
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000           0.00               391.52               0.746765

What a test measured is no fact of the port: it is one test's, and of two machines. Tests in both directions at once
count both. Format: perftest 4.5 to 24 (`MB/sec` are 2^20 bytes: src/perftest_resources.c, print_report_bw).
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import Cells, Line, Page, RdmaRecord, fill_rdma
from topodiag.lazy import regex
from topodiag.model.topics import Topic

_MARK = regex(
    r"^[ \t>|]{0,60}(?:RDMA_Write|RDMA_Read|Send|Write|Read|Atomic\w{0,20})\b.{0,30} (?:BW|Latency) Test\s*$", re.M
)
_DEVICE = regex(r"\bDevice {1,20}: (\S{1,63})")
_ONE_WAY = regex(r"(?:RDMA_Write|RDMA_Read|Send|Write|Read) BW Test\s*$")
_HEAD = regex(r"#bytes\s{1,20}#iterations\s{1,20}BW peak ?\[(Gb|MB|MiB)/sec\]\s{1,20}BW average ?\[(?:Gb|MB|MiB)/sec\]")
_ROW = regex(r"\s{0,8}(\d{1,12})\s{1,40}\d{1,12}\s{1,40}-?[\d.]{1,20}\s{1,40}(\d{1,8}\.\d{1,8})\s{1,40}[\d.]{1,20}\s*$")
WHOLE = 65536
"""Bytes of a message from which on the rate of messages no longer limits a test: perftest's own default."""
_GBPS = {"Gb": 1.0, "MB": 8 * 2**20 / 1e9, "MiB": 8 * 2**20 / 1e9}
_LAYER = regex(r"\bLink type {1,20}: (IB|Ethernet)\b")


class Perftest(Source[RdmaRecord]):
    """Devices that a test of perftest used."""

    kind = "rdma-perftest"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    trust = 55
    a_piece = "a test names the device that it was given"

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None and _DEVICE.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        page = Page(blob, parsed)
        record: RdmaRecord | None = None
        one_way, unit = False, ""
        for line in page.lines():
            device, layer = _DEVICE.search(line.text), _LAYER.search(line.text)
            if device is not None and (name := words.device_name(device[1])) is not None:
                record = RdmaRecord(name, line.number)
                record.port(1, line.number)
                parsed.records.append(record)
            if _MARK.match(line.text) is not None:
                one_way, unit = _ONE_WAY.search(line.text) is not None, ""
            elif (head := _HEAD.search(line.text)) is not None:
                unit = head[1] if one_way else ""
            elif unit and record is not None and (row := _ROW.match(line.text)) is not None:
                _keep_best(line, record.port(1, line.number).facts, int(row[1]), float(row[2]) * _GBPS[unit])
            if layer is not None and record is not None:
                line.put(record.port(1, line.number).facts, "link_layer", words.link_layer(layer[1]))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RdmaRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_rdma(blob, record, draft)


def _keep_best(line: Line, facts: Cells, size: int, gbps: float) -> None:
    """Of the rows with whole messages the fastest is what the test reached."""
    kept = facts.get("tested_gbps")
    if kept is not None and isinstance(kept.value, float) and kept.value < gbps:
        del facts["tested_gbps"]
    if size >= WHOLE and gbps > 0:
        line.put(facts, "tested_gbps", gbps)


def shows_bandwidth(text: str) -> bool:
    """Whether a text holds a test of bandwidth."""
    return _MARK.search(text) is not None and _HEAD.search(text) is not None


def begins(line: str) -> bool:
    """Whether a test begins on this line."""
    return _MARK.match(line) is not None


def average_gbps(line: str) -> float:
    """The average of a row with whole messages, in the unit of its test; 0 for any other line."""
    row = _ROW.match(line)
    return float(row[2]) if row is not None and int(row[1]) >= WHOLE else 0.0


__all__ = ["Perftest", "average_gbps", "begins", "shows_bandwidth"]
