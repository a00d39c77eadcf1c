"""`ib_write_bw` and its kin (perftest): the device and the link layer that a test between two machines used, and the
bandwidth that it reached.

                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx5_0
 Link type       : Ethernet
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000           0.00               391.52               0.746765

What a test measured is no fact of the port: it is one test's, and of two machines. Tests in both directions at once
count both. Format: perftest 4.5 to 24 (`MB/sec` are 2^20 bytes: src/perftest_resources.c, print_report_bw).

Tests that each stand below a line that names their pair (`### g01 -> g09: ib_write_bw`) are a list of pairs of hosts:
which of them fall short. Two thirds of the pairs must agree within a tenth, and say what the path can do; a pair counts
that stays below three quarters of it. Of two tests the faster one says what the same port can do.
"""

from __future__ import annotations

import re
from statistics import median

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import Cells, Line, Page, RdmaRecord, RdmaSource
from topodiag.evidence.sentences import MAX_LINE, Reporting, report
from topodiag.lazy import regex
from topodiag.model.events import Event, Trust
from topodiag.model.topics import Topic
from topodiag.words.fold import few, plural

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


def _keep_best(line: Line, facts: Cells, size: int, gbps: float) -> None:
    """Of the rows with whole messages the fastest is what the test reached."""
    kept = facts.get("tested_gbps")
    if kept is not None and isinstance(kept.value, float) and kept.value < gbps:
        del facts["tested_gbps"]
    if size >= WHOLE and gbps > 0:
        line.put(facts, "tested_gbps", gbps)


_NAME = r"(?=[A-Za-z0-9._-]{0,40}\d)[A-Za-z](?:[A-Za-z0-9._]|-(?!-|>)){1,62}"
LEAST = 5
AGREE = 0.1
LOW = 0.75
MOST_LOW, MOST_OF_FEW = 0.45, 0.5
"""Pairs that fall short: more of them, and nobody knows what the path can do."""
_TITLE = regex(
    rf"[\s#=*$>|-]{{0,12}}(?P<a>{_NAME})\s{{0,3}}(?:<-{{1,2}}>|-{{1,2}}>|<=>|=>|→|↔|\bto\b|\bvs\b)\s{{0,3}}(?P<b>{_NAME})\b"
)
TITLE_ABOVE = 8
"""Lines between the title of a test and its own head."""
_Tested = tuple[int, tuple[str, str], float]
"""Line number, the two hosts, what was measured between them."""


class PairRates(Reporting):
    """Pairs of hosts that carry far less than the others that were tested."""

    kind = "pair-rates"
    speaks_of = frozenset({Topic.INTERFACES})
    trust = 30
    a_piece = "a list of pairs"

    def recognises(self, head: str) -> bool:
        return _shows_bandwidth(head) and bool(_tested(head.split("\n")))

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        lines = [line for _, line in blob.lines()]
        rows = _tested(lines) if _shows_bandwidth(blob.text) else []
        rates = [rate for _, _, rate in rows]
        # The middle of many is what the path can do, and the best of a few.
        usual = (median(rates) if len(rates) >= LEAST else max(rates)) if rates else 0.0
        low = [(number, pair, rate) for number, pair, rate in rows if rate < LOW * usual]
        fair = [rate for rate in rates if rate >= (1 - AGREE) * usual]
        most = MOST_LOW if len(rows) >= LEAST else MOST_OF_FEW
        if low and len(low) <= most * len(rows) and len(low) + len(fair) == len(rows):
            shown = few([f"{a}-{b} {rate:g}" for _, (a, b), rate in low])
            others = plural(len(fair), "other pair carries", "other pairs carry")
            words = f"{shown}, while {others} about {usual:g}{_ends(low, rows)}"
            number = low[0][0]
            parsed.records.append(report("network.pairs", words, blob, number, lines[number - 1], trust=Trust.PERSON))
        return parsed


def _shows_bandwidth(text: str) -> bool:
    return _MARK.search(text) is not None and _HEAD.search(text) is not None


def _tested(lines: list[str]) -> list[_Tested]:
    """Tests of perftest below titles that name their pairs: the best average of each."""
    made: dict[tuple[str, str], tuple[int, float]] = {}
    titled, pair = -TITLE_ABOVE, None
    for number, line in enumerate(lines, 1):
        title = _TITLE.match(line) if len(line) < MAX_LINE else None
        if title is not None and title["a"] != title["b"]:
            titled, pair = number, (title["a"], title["b"])
        elif _MARK.match(line) and number - titled > TITLE_ABOVE:
            pair = None
        elif pair is not None and (rate := _average_gbps(line)) > made.get(pair, (0, 0.0))[1]:
            made[pair] = number, rate
    return [(number, pair, rate) for pair, (number, rate) in made.items()] if len(made) > 1 else []


def _average_gbps(line: str) -> float:
    """The average of a row with whole messages, in the unit of its test; 0 for any other line."""
    row = _ROW.match(line)
    return float(row[2]) if row is not None and int(row[1]) >= WHOLE else 0.0


def _ends(low: list[_Tested], rows: list[_Tested]) -> str:
    """Whether one host is an end of all pairs that fall short, and of no other one."""
    ends = set(low[0][1]).intersection(*(pair for _, pair, _ in low)) if len(low) > 1 else set()
    places = {number for number, _, _ in low}
    own = [host for host in sorted(ends) if not any(host in pair for number, pair, _ in rows if number not in places)]
    return f": {own[0]} is an end of each of them, and of no other pair" if len(own) == 1 else ""
