"""`ib_write_bw` and its kin (perftest): the device and the link layer that a test between two machines used, and the
bandwidth that it reached.

                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx5_0
 Link type       : Ethernet
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000           0.00               391.52               0.746765

What a test measured is no fact of the port: it is one test's, and of two machines. Tests in both directions at once
count both. Format: perftest 4.5 to 24 (`MB/sec` are 2^20 bytes: src/perftest_resources.c, print_report_bw).

`iperf3` (and iperf 2) between two hosts: packets that TCP sent again, and a rate far below that of the interface.

    [ ID] Interval           Transfer     Bitrate         Retr
    [  5]   0.00-10.00  sec   240 MBytes  201 Mbits/sec  8113             sender
    [SUM]   0.00-10.00  sec   115 GBytes  98.9 Gbits/sec    0             sender

The rate of one TCP stream depends on the host, so that it counts only where it is a tenth of the interface's, whose
speed stands in the same text (`ethtool IF`). Format: iperf 3.1 to 3.17, src/iperf_locale.c; `MBytes` are 2^20 bytes.

A list of pairs of hosts with the bandwidth between them, as people and scripts print it: which pairs fall short.

    g01-g09       391.8          g01 -> g09: 391.8 Gb/s          g01,g09,391.8
    g02-g10       196.1

Two thirds of the pairs must agree within a tenth, and say what the path can do; a pair counts that stays below three
quarters of it.

Tests of perftest whose pair is known are measured runs of two hosts, as those of nccl-tests are: a line above names the
pair (`### g01 -> g09: ib_write_bw`), or the name of the file (`g01-g09.txt`).

Format: nobody's; a unit stands behind the number, or in a line above.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import Cells, Line, Page, RdmaRecord, fill_rdma
from topodiag.evidence.sentences import MAX_LINE, Reporting, report
from topodiag.lazy import regex
from topodiag.model.bench import BenchDevice, BenchRow, BenchRun, Timing
from topodiag.model.events import Event, Trust
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.model.topics import Topic
from topodiag.words.fold import few, plural
from topodiag.words.units import in_gbps

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


_IPERF_HEAD = regex(r"^[ \t>|]{0,20}\[ ?ID\] Interval {1,20}Transfer {1,20}(?:Bitrate|Bandwidth)\b", re.M)
_TOTAL = regex(
    r"\[(?P<stream>SUM| {0,3}\d{1,4})\] {1,6}[\d.]{1,10}-[\d.]{1,10} {1,4}sec {1,6}(?P<moved>\d{1,9}(?:\.\d{1,4})?)"
    r" (?P<of>[KMGT]?)Bytes {1,6}(?P<rate>\d{1,9}(?:\.\d{1,4})?) (?P<unit>[KMGT]?)bits/sec"
    r"(?: {1,20}(?P<again>\d{1,12}))?"
    r" {1,30}(?:sender|receiver)"
)
_INTERVAL = regex(
    r"\[ {0,3}(?P<stream>\d{1,4})\] {1,6}[\d.]{1,10}-[\d.]{1,10} {1,4}sec {1,6}(?P<moved>[\d.]{1,10}) [KMGT]?Bytes"
    r" {1,6}[\d.]{1,10} [KMGT]?bits/sec {1,20}\d{1,12} {1,12}(?P<window>[\d.]{1,6}) KBytes\s*$"
)
ONE_JUMBO_KB = (7.5, 9.3)
"""A window of one segment in frames of 8000 to 9216 bytes: TCP has lost all before it, and tries with one again."""
STILL = 2
"""Seconds without a byte, on a connection that stands, from which on it is called stuck."""
_SPEED = regex(r"\bSpeed: {0,4}(\d{3,7})Mb/s")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
SEGMENT = 1448
"""Bytes of data in a segment of TCP on Ethernet: in larger frames there are fewer, and the share that is lost grows."""
MANY_SHARE = 0.005
MANY = 1000
"""Segments sent again from which on a path is called lossy: congestion control on a shared path loses one in ten
thousand."""
SLOW_SHARE = 0.1


class Iperf(Reporting):
    """Losses and rates that iperf3 measured."""

    kind = "iperf"
    speaks_of = frozenset({Topic.INTERFACES})
    trust = 50
    a_piece = "a test between two hosts"

    def recognises(self, head: str) -> bool:
        return _IPERF_HEAD.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        speeds = [int(found[1]) / 1000 for found in _SPEED.finditer(blob.text)]
        best: tuple[float, int, str] | None = None
        summed = "[SUM]" in blob.text
        for number, line in blob.lines():
            parsed.lines = number
            found = _TOTAL.search(line[:MAX_LINE])
            if found is None or (summed and found["stream"] != "SUM"):
                continue
            said = " ".join(line.split())[:200]
            segments = float(found["moved"]) * 1024 ** _POWERS[found["of"]] / SEGMENT
            again = int(found["again"] or 0)
            if again >= MANY and again > MANY_SHARE * segments:
                parsed.records.append(
                    report("network.tcp_loss", f"iperf: {said}", blob, number, line, trust=Trust.PERSON)
                )
            rate = float(found["rate"]) * 1000 ** _POWERS[found["unit"]] / 1e9
            best = max(best or (rate, number, said), (rate, number, said))
        parsed.records += _stuck(blob)
        if best is not None and speeds and 0 < best[0] < SLOW_SHARE * min(speeds):
            words = f"iperf: {in_gbps(best[0])} over an interface of {in_gbps(min(speeds))}: {best[2]}"
            parsed.records.append(report("network.tcp_slow", words, blob, best[1], best[2], trust=Trust.PERSON))
        return parsed


def _stuck(blob: Blob) -> list[Event]:
    """A connection that stands, since small packets pass, and that carries nothing in large frames: somewhere between
    its ends frames of that size are dropped."""
    still: dict[str, int] = {}
    for number, line in blob.lines():
        found = _INTERVAL.search(line[:MAX_LINE])
        if found is None:
            continue
        one = ONE_JUMBO_KB[0] <= float(found["window"]) <= ONE_JUMBO_KB[1]
        still[found["stream"]] = still.get(found["stream"], 0) + 1 if one and float(found["moved"]) == 0 else 0
        if still[found["stream"]] >= STILL:
            said = f"iperf: a connection stands, and in large frames no byte comes through: {' '.join(line.split())}"
            return [report("network.mtu", said[:300], blob, number, line, trust=Trust.PERSON)]
    return []


_HOST = r"(?=[A-Za-z0-9._]{0,40}[A-Za-z])(?=[A-Za-z._]{0,40}\d)[A-Za-z0-9][A-Za-z0-9._]{1,62}"
_NAME = r"(?=[A-Za-z0-9._-]{0,40}\d)[A-Za-z](?:[A-Za-z0-9._]|-(?!-|>)){1,62}"
_PAIR = regex(
    rf"[\s|>*]{{0,8}}(?P<a>{_HOST})(?:\s{{0,3}}(?:<-{{1,2}}>|-{{1,2}}>|<=>|=>|-|–|→|↔|,|\||\bto\b|\bvs\b)\s{{0,3}}|\s{{1,20}})"
    rf"(?P<b>{_HOST})\s{{0,3}}[:,=|]?\s{{0,20}}(?:(?:bw|busbw|bandwidth|avg|BW|rate)\s{{0,3}}[:=]?\s{{0,3}})?"
    r"(?P<rate>\d{1,4}\.\d{1,4}|\d{2,4})\s{0,3}(?P<unit>G(?:i?B|b)(?:it)?(?:ps|/s(?:ec)?))?\s{0,3}(?:[|,#(].{0,80}|\b(?:ok|OK|low|LOW|slow|SLOW|FAIL|PASS)\b.{0,20})?$"
)
_UNIT = regex(r"(?<![A-Za-z])G(?:i?B|b)(?:it)?(?:ps|/s)|(?:bus|alg)bw|\bbandwidth\b", re.IGNORECASE)
LEAST = 5
AGREE = 0.1
LOW = 0.75
MOST_LOW = 0.45
"""Pairs that fall short: more of them, and nobody knows what the path can do."""
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


class PairRates(Reporting):
    """Pairs of hosts that carry far less than the others of a list."""

    kind = "pair-rates"
    speaks_of = frozenset({Topic.INTERFACES})
    trust = 30
    a_piece = "a list of pairs"

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is None and _UNIT.search(head) is not None and len(_rows(head.split("\n"))) >= LEAST

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        lines = [line for _, line in blob.lines()]
        parsed.lines = len(lines)
        rows = _rows(lines)
        usual = median(rate for _, _, rate in rows) if rows else 0.0
        low = [(number, pair, rate) for number, pair, rate in rows if rate < LOW * usual]
        fair = [rate for _, _, rate in rows if rate >= (1 - AGREE) * usual]
        if low and len(low) <= MOST_LOW * len(rows) and len(low) + len(fair) == len(rows):
            shown = few([f"{a}-{b} {rate:g}" for _, (a, b), rate in low])
            others = plural(len(fair), "other pair carries", "other pairs carry")
            words = f"{shown}, while {others} about {usual:g}{_ends(low, rows)}"
            number = low[0][0]
            parsed.records.append(report("network.pairs", words, blob, number, lines[number - 1], trust=Trust.PERSON))
        return parsed


def _rows(lines: list[str]) -> list[tuple[int, tuple[str, str], float]]:
    """Line number, the two hosts, what was measured between them."""
    made = []
    for number, line in enumerate(lines, 1):
        found = _PAIR.match(line) if len(line) < min(MAX_LINE, 300) else None
        if found is not None and found["a"] != found["b"]:
            made.append((number, (found["a"], found["b"]), float(found["rate"])))
    return made


def _ends(low: list[tuple[int, tuple[str, str], float]], rows: list[tuple[int, tuple[str, str], float]]) -> str:
    """Whether one host is an end of all pairs that fall short, and of no other one."""
    ends = set(low[0][1]).intersection(*(pair for _, pair, _ in low)) if len(low) > 1 else set()
    places = {number for number, _, _ in low}
    own = [host for host in sorted(ends) if not any(host in pair for number, pair, _ in rows if number not in places)]
    return f": {own[0]} is an end of each of them, and of no other pair" if len(own) == 1 else ""
