"""`ib_write_bw` and its kin (perftest): the device and the link layer that a test between two machines used, and the
bandwidth that it reached.

                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx5_0
 Link type       : Ethernet
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000           0.00               391.52               0.746765

What a test measured is no fact of the port: it is one test's, and of two machines. Tests in both directions at once
count both. Format: perftest 4.5 to 24 (`MB/sec` are 2^20 bytes: src/perftest_resources.c, print_report_bw).

Tests of perftest whose pair is known are measured runs of two hosts, as those of nccl-tests are: a line above names the
pair (`### g01 -> g09: ib_write_bw`), or the name of the file (`g01-g09.txt`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import Cells, Line, Page, RdmaRecord, RdmaSource
from topodiag.evidence.sentences import MAX_LINE
from topodiag.lazy import regex
from topodiag.model.bench import BenchDevice, BenchRow, BenchRun, Timing
from topodiag.model.provenance import MAX_QUOTE, Origin

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


class Perftest(RdmaSource):
    """Devices that a test of perftest used."""

    kind = "rdma-perftest"
    trust = 55
    a_piece = "a test names the device that it was given"

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        parsed: Parsed[RdmaRecord] = Parsed()
        page = Page(blob, parsed)
        record: RdmaRecord | None = None
        tested, one_way, unit = False, False, ""
        for line in page.lines():
            device, layer = _DEVICE.search(line.text), _LAYER.search(line.text)
            if tested and device is not None and (name := words.device_name(device[1])) is not None:
                record = RdmaRecord(name, line.number)
                record.port(1, line.number)
                parsed.records.append(record)
            if _MARK.match(line.text) is not None:
                tested, one_way, unit = True, _ONE_WAY.search(line.text) is not None, ""
            elif (head := _HEAD.search(line.text)) is not None:
                unit = head[1] if one_way else ""
            elif unit and record is not None and (row := _ROW.match(line.text)) is not None:
                _keep_best(line, record.port(1, line.number).facts, int(row[1]), float(row[2]) * _GBPS[unit])
            if layer is not None and record is not None:
                line.put(record.port(1, line.number).facts, "link_layer", words.link_layer(layer[1]))
        return parsed


def _keep_best(line: Line, facts: Cells, size: int, gbps: float) -> None:
    """Of the rows with whole messages the fastest is what the test reached."""
    kept = facts.get("tested_gbps")
    if kept is not None and isinstance(kept.value, float) and kept.value < gbps:
        del facts["tested_gbps"]
    if size >= WHOLE and gbps > 0:
        line.put(facts, "tested_gbps", gbps)


def pair_runs(text: str, source: str, hosts: Sequence[str] = ()) -> tuple[BenchRun, ...]:
    """The tests of bandwidth in a text as runs of two hosts: those that a line above a test names, else `hosts`, else
    those of the file's name; a test without is left. Sizes in bytes, GB/s."""
    made: list[tuple[BenchRun, list[BenchRow]]] = []
    named = _PAIR_FILE.search(source.rpartition("/")[2])
    known = tuple(hosts) or (named.group("a", "b") if named is not None else ())
    titled, pair, gbps = -TITLE_ABOVE, known, 0.0
    for number, line in enumerate(text.split("\n"), 1):
        title = _TITLE.match(line) if len(line) < MAX_LINE else None
        origin = Origin(source, number, line.strip()[:MAX_QUOTE])
        if title is not None and title["a"] != title["b"]:
            titled, pair = number, title.group("a", "b")
        elif (mark := _MARK.match(line)) is not None:
            ends = pair if number - titled <= TITLE_ABOVE else known
            pair, gbps, rows = known, 0.0, list[BenchRow]()
            if len(ends) == 2:
                devices = tuple(BenchDevice(rank, host, -1) for rank, host in enumerate(ends))
                test = BenchRun(
                    " ".join(mark[0].split()), (), devices, 2, program="perftest", source=source, origin=origin
                )
                made.append((test, rows))
        elif (head := _HEAD.search(line)) is not None:
            gbps = _GBPS[head[1]]
        elif gbps and made and (row := _ROW.match(line)) is not None:
            timing = Timing(algbw_gbs=float(row[2]) * gbps / 8, busbw_gbs=float(row[2]) * gbps / 8)
            made[-1][1].append(BenchRow(int(row[1]), out_of_place=timing, origin=origin))
    return tuple(replace(test, rows=tuple(rows)) for test, rows in made if rows)


_NAME = r"(?=[A-Za-z0-9._-]{0,40}\d)[A-Za-z](?:[A-Za-z0-9._]|-(?!-|>)){1,62}"
_TITLE = regex(
    rf"[\s#=*$>|-]{{0,12}}(?P<a>{_NAME})\s{{0,3}}(?:<-{{1,2}}>|-{{1,2}}>|<=>|=>|→|↔|\bto\b|\bvs\b)\s{{0,3}}(?P<b>{_NAME})\b"
)
_PAIR_FILE = regex(
    r"(?<![A-Za-z0-9])(?P<a>(?P<stem>[A-Za-z](?:[A-Za-z0-9_-]{0,40}[A-Za-z_-])?)\d{1,6})"
    r"(?:[-_](?:to|vs)[-_]|--|__|->|[-_+.,])(?P<b>(?P=stem)\d{1,6})(?!\d)"
)
"""Two nodes in the name of a file: the same letters and two numbers."""
TITLE_ABOVE = 8
"""Lines between the title of a test and its own head."""
