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

from collections.abc import Iterable, Sequence
from dataclasses import field

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import MAX_LINE, Blob, to_float
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.lazy import dataclass
from topodiag.model.bench import BenchDevice, BenchRow, BenchRun, Timing
from topodiag.words.own_data import patterns

_VERBS = ("RDMA_Write", "RDMA_Read", "Send", "Write", "Read", "Atomic")
_ONE_WAY = tuple(f"{verb} BW Test" for verb in _VERBS[:-1])
WHOLE = 65536
"""Bytes of a message from which on the rate of messages no longer limits a test: perftest's own default."""
_GBPS = {"Gb": 1.0, "MB": 8 * 2**20 / 1e9, "MiB": 8 * 2**20 / 1e9}


@dataclass(slots=True)
class _Test:
    """One test: the two hosts of a title right above it, what its head says, and its rows: the line, bytes and Gb/s."""

    line: Line
    one_way: bool
    hosts: tuple[str, ...]
    device: str = ""
    layer: str = ""
    gbps: float = 0.0
    """What one of the unit of its table is; 0 where the table has not begun."""
    rows: list[tuple[Line, int, float]] = field(default_factory=list)


def _tests(lines: Iterable[Line]) -> list[_Test]:
    tests: list[_Test] = []
    titled, hosts = -TITLE_ABOVE, tuple[str, ...]()
    for line in lines:
        title = _LIKE["title"].match(line.text) if len(line.text) < MAX_LINE else None
        if title is not None and title["a"] != title["b"]:
            titled, hosts = line.number, title.group("a", "b")
        text, cells = line.bare, line.bare.split()
        if text.startswith(_VERBS) and text.endswith((" BW Test", " Latency Test")):
            near = line.number - titled <= TITLE_ABOVE
            tests.append(_Test(line, text in _ONE_WAY, hosts if near else ()))
            titled = -TITLE_ABOVE
        if not tests:
            continue
        test = tests[-1]
        if device := _value_of(text, "Device"):
            test.device = words.device_name(device) or ""
        test.layer = _value_of(text, "Link type") or test.layer
        if text.startswith("#bytes"):
            test.gbps = _GBPS.get(text.partition("BW average")[2].lstrip(" [").partition("/sec")[0], 0.0)
        elif test.gbps:
            numbers = [number for cell in cells if (number := to_float(cell)) is not None]
            if len(numbers) == len(cells) == 5:
                test.rows.append((line, int(numbers[0]), numbers[3] * test.gbps))
    return tests


def _value_of(text: str, name: str) -> str:
    """The word behind `name   : `, "" where the line has no such name."""
    _, named, rest = text.partition(name)
    colon, _, value = rest.strip().partition(" ")
    return value.split()[0] if named and colon == ":" and value.strip() else ""


class Perftest(OfPage):
    """Devices that a test of perftest used."""

    def read_page(self, page: Page) -> None:
        for test in _tests(page.lines()):
            if not test.device:
                continue
            page.begin()
            port = page.draft.nic(rdma=test.device).child("port", 1)
            test.line.offer(port, "link_layer", words.link_layer(test.layer))
            # Of the rows with whole messages the fastest is what the test reached.
            whole = [row for row in test.rows if row[1] >= WHOLE and row[2] > 0] if test.one_way else []
            for line, _, gbps in sorted(whole, key=lambda row: -row[2])[:1]:
                line.offer(port, "tested_gbps", gbps)


def pair_runs(text: str, source: str, hosts: Sequence[str] = ()) -> tuple[BenchRun, ...]:
    """The tests of bandwidth in a text as runs of two hosts: those that a line above a test names, else `hosts`, else
    those of the file's name; a test without is left. Sizes in bytes, GB/s."""
    named = _LIKE["pair_file"].search(source.rpartition("/")[2])
    known = tuple(hosts) or (named.group("a", "b") if named is not None else ())
    bench_runs = []
    for test in _tests(Page(Blob(source, text.encode("utf-8", "replace")), NodeDraft()).lines()):
        ends = test.hosts or known
        if len(ends) == 2 and test.rows:
            rows = tuple(
                BenchRow(size, out_of_place=Timing(algbw_gbs=gbps / 8, busbw_gbs=gbps / 8), origin=line.origin)
                for line, size, gbps in test.rows
            )
            devices = tuple(BenchDevice(rank, host, -1) for rank, host in enumerate(ends))
            title = " ".join(test.line.text.split())
            bench_runs.append(
                BenchRun(title, rows, devices, 2, program="perftest", source=source, origin=test.line.origin)
            )
    return tuple(bench_runs)


_LIKE = patterns("evidence/network/lines", "perftest")
TITLE_ABOVE = 8
"""Lines between the title of a test and its own head."""
