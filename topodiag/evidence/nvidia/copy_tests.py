"""p2pBandwidthLatencyTest of CUDA's samples, and nvbandwidth: the GPUs that copies ran between, and who may reach whom.

    Device: 0, NVIDIA H100 80GB HBM3, pciBusID: 18, pciDeviceID: 0, pciDomainID:0
    Device=0 CANNOT Access Peer Device=1

    Device 0: NVIDIA RTX A6000 (00000000:01:00)

    memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
               0         1         2
     0       N/A    387.35     25.11

CUDA numbers devices by itself, so that only the bus id says which GPU one is. Where a text has the tables alone, the
numbers stand for nvidia-smi's: with equal GPUs and all of them visible they are the same (CUDA C++ Programming Guide,
CUDA_DEVICE_ORDER). The first table of copies in one direction counts, and the first of copies from the host; latencies
and both directions at once are left out. Format: cuda-samples 10 to 13 (numbers in hexadecimal), nvbandwidth 0.5 and
later.

`gpu_burn`: what each GPU calculates, side by side, and which of them makes errors.

    100.0%  proc'd: 5120 (49210 Gflop/s) - 1811 (17432 Gflop/s)   errors: 0 - 0   temps: 71 C - 89 C
    GPU 1: FAULTY

The last line of a run counts. A GPU far below the others, all of them under the same load, fell short in a test.
Format: wilicc/gpu-burn, gpu_burn-drv.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.nvidia.dcgm import FAILED
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import normalise_bus_id
from topodiag.model.topics import Topic

MAX_LINE = 400
MAX_RECORDS = 20_000
_HEX = r"([0-9a-fA-F]{1,4})"
_SAMPLE = regex(
    rf"^Device: ([0-9]{{1,3}}), (\S.{{0,80}}?), pciBusID: {_HEX}, pciDeviceID: {_HEX}, pciDomainID: ?{_HEX}\s*$"
)
_NVBANDWIDTH = regex(r"^Device ([0-9]{1,3}): (\S.{0,80}?) \(([0-9a-fA-F]{8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})\)\s*$")
_ACCESS = regex(r"^Device=([0-9]{1,3}) (CAN|CANNOT) Access Peer Device=([0-9]{1,3})\s*$")
_MARK = regex(
    r"^[ \t>|]{0,20}(?:\[P2P \(Peer-to-Peer\) GPU Bandwidth Latency Test\]|nvbandwidth Version: v[0-9]"
    r"|Device: [0-9]{1,3}, [^\n]{1,80}, pciBusID: |memcpy (?:CE|SM) [CG]PU\(row\) (?:->|<-) GPU\(column\) bandwidth"
    r"|(?:Unid|Bid)irectional P2P=(?:Enabled|Disabled) Bandwidth|P2P Connectivity Matrix)",
    re.MULTILINE,
)
_NUMBERS = r"(?:\s{1,16}(?:N/A|[0-9]{1,6}(?:\.[0-9]{1,4})?)){1,64}"
_HEAD = regex(r"(?:D\\D\s{0,8})?[0-9]{1,3}(?:\s{1,16}[0-9]{1,3}){0,63}\s*$")
_ROW = regex(rf"([0-9]{{1,3}})({_NUMBERS})\s*$")
_TITLES = (
    (regex(r"memcpy (?:CE|SM) GPU\(row\) (?:->|<-) GPU\(column\) bandwidth \(GB/s\)"), "gpus"),
    (regex(r"memcpy (?:CE|SM) CPU\(row\) -> GPU\(column\) bandwidth \(GB/s\)"), "host"),
    (regex(r"Unidirectional P2P=Enabled Bandwidth .{0,20}Matrix \(GB/s\)"), "gpus"),
)
_BOTH_WAYS = regex(r"Bidirectional P2P=Enabled Bandwidth .{0,20}Matrix \(GB/s\)")
"""Counts, by half, where a text has no table of one direction."""
_ONE_WAY = "Unidirectional P2P=Enabled"
_OTHER_TITLE = regex(r"matri|memcpy|SUM |Running |bidirectional|latency|CPU=|GPU=", re.IGNORECASE)
_REACHES = "OK"
"""That CUDA lets a device reach another's memory, in the words of `nvidia-smi topo -p2p`. Why it does not let it has
several words there, and none here."""


@dataclass(frozen=True, slots=True)
class CopyRecord:
    """A device with name and bus id, or (`peer` from 0) whether it may reach a peer."""

    device: int
    line: int
    text: str
    name: str = ""
    bus_id: str = ""
    peer: int = -1
    access: str = ""
    copied: str = ""
    """`gpus` or `host` where `gbs` was measured, from the device to the peer or from the host."""
    gbs: float = 0.0


class CopyTests(Source[CopyRecord]):
    """GPUs, and access between them, from tests of copies."""

    kind = "cuda-copy-test"
    speaks_of = frozenset({Topic.GPUS})
    trust = 55
    a_piece = "CUDA_VISIBLE_DEVICES may hide others"

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[CopyRecord]:
        parsed: Parsed[CopyRecord] = Parsed(partial=True)
        for record in _records(blob):
            if len(parsed.records) < MAX_RECORDS:
                parsed.records.append(record)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[CopyRecord], draft: NodeDraft) -> None:
        named = {record.device: record.bus_id for record in parsed.records if record.bus_id}

        def gpu(device: int) -> Entity | None:
            bus_id = named.get(device)
            return draft.gpu(bus_id=bus_id) if bus_id else None if named else draft.gpu(index=device)

        for record in parsed.records:
            here, origin = gpu(record.device), blob.origin(record.line, record.text)
            if here is None:
                continue
            there = gpu(record.peer) if record.peer >= 0 else None
            if record.copied == "host":
                here.offer("host_copy_gbs", record.gbs, origin)
            elif record.copied and there is not None:
                draft.pair("copies", here, there, f"{record.gbs:g}", origin)
            elif record.name:
                here.offer("name", record.name, origin)
            elif record.access and there is not None:
                draft.pair("p2p:read", here, there, record.access, origin)


def _records(blob: Blob) -> Iterator[CopyRecord]:
    table, seen = "", set[str]()
    both = _ONE_WAY not in blob.text and _BOTH_WAYS.search(blob.text) is not None
    for number, whole in blob.lines():
        text = whole[:MAX_LINE].strip(" \t>|")
        if (found := _SAMPLE.match(text)) is not None:
            place = f"{int(found[5], 16):04x}:{int(found[3], 16):02x}:{int(found[4], 16):02x}.0"
            yield CopyRecord(int(found[1]), number, text, found[2], normalise_bus_id(place) or "")
        elif (found := _NVBANDWIDTH.match(text)) is not None:
            yield CopyRecord(int(found[1]), number, text, found[2], normalise_bus_id(f"{found[3]}.0") or "")
        elif (found := _ACCESS.match(text)) is not None:
            yield CopyRecord(
                int(found[1]), number, text, peer=int(found[3]), access=_REACHES if found[2] == "CAN" else ""
            )
        elif (title := _title(text, both=both)) is not None:
            table = "" if title in seen else title
            seen.add(title)
        elif table and not _HEAD.match(text) and (found := _ROW.match(text)) is not None:
            cells = _row(table, int(found[1]), found[2].split(), number, text)
            yield from (replace(each, gbs=each.gbs / 2) for each in cells) if both and table == "gpus" else cells


def _title(text: str, *, both: bool) -> str | None:
    """Which table begins here, empty for one that is left out, None where none begins."""
    known = next((kind for pattern, kind in _TITLES if pattern.search(text)), None)
    if known is None and both and _BOTH_WAYS.search(text):
        known = "gpus"
    return "" if known is None and _OTHER_TITLE.search(text) else known


def _row(table: str, row: int, cells: list[str], number: int, text: str) -> Iterator[CopyRecord]:
    for column, cell in enumerate(cells):
        gbs = 0.0 if cell == "N/A" else float(cell)
        if table == "host" and row == 0 and gbs > 0:
            yield CopyRecord(column, number, text, copied=table, gbs=gbs)
        elif table == "gpus" and column != row and gbs > 0:
            yield CopyRecord(row, number, text, peer=column, copied=table, gbs=gbs)


MAX_GPUS = 256
GPU_BURN_MAX_LINE = 20_000
FEWEST = 3
"""GPUs that show what one of them would reach."""
SHARE = 0.7
"""Part of the others' pace below which one fell short: cards of a kind differ by a tenth."""
_PROGRESS = regex(r"\d{1,3}\.\d%\s{1,8}proc'd: ")
_PACE = regex(r"\((\d{1,9}) Gflop/s\)")
_ERRORS = regex(r"errors: (\d{1,12}(?: {1,3}(?:\(WARNING!\))? ?- \d{1,12}){0,255})")
_FAULTY = regex(r"\s{0,8}GPU (\d{1,3}): FAULTY\s*\Z")


@dataclass(frozen=True, slots=True)
class BurnedGpu:
    """A GPU that fell short, and in what."""

    index: int
    words: str
    line: int
    text: str


class GpuBurn(Source[BurnedGpu]):
    """GPUs that are slow or wrong under gpu_burn."""

    kind = "gpu-burn"
    speaks_of = frozenset({Topic.GPUS})
    trust = 50
    a_piece = "GPUs that did well are not named"

    def recognises(self, head: str) -> bool:
        return _PROGRESS.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[BurnedGpu]:
        parsed: Parsed[BurnedGpu] = Parsed(partial=True)
        last: tuple[int, str] | None = None
        for number, whole in blob.lines():
            line = whole[:GPU_BURN_MAX_LINE]
            faulty = _FAULTY.match(line)
            if faulty is not None and int(faulty[1]) < MAX_GPUS:
                parsed.records.append(BurnedGpu(int(faulty[1]), "gpu_burn calls it faulty", number, line))
            elif (at := _last_of(line)) is not None:
                last = number, at
        if last is not None:
            parsed.records += _of_progress(*last)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[BurnedGpu], draft: NodeDraft) -> None:
        for record in parsed.records:
            draft.gpu(index=record.index).offer(FAILED, (record.words,), blob.origin(record.line, record.text))


def _last_of(line: str) -> str | None:
    """The newest state on a line: the tool writes each over the one before."""
    begins = [found.start() for found in _PROGRESS.finditer(line)]
    return line[begins[-1] :] if begins else None


def _of_progress(number: int, text: str) -> list[BurnedGpu]:
    paces = [int(each) for each in _PACE.findall(text)][:MAX_GPUS]
    errors = _ERRORS.search(text)
    wrong = [int(each) for each in re.findall(r"\d{1,12}", errors[1])] if errors is not None else []
    made = [
        BurnedGpu(at, f"gpu_burn: {count} wrong results", number, text)
        for at, count in enumerate(wrong[:MAX_GPUS])
        if count
    ]
    if len(paces) >= FEWEST and (usual := median(paces)) > 0:
        made += [
            BurnedGpu(at, f"gpu_burn: {pace} Gflop/s, {usual:.0f} on its siblings", number, text)
            for at, pace in enumerate(paces)
            if pace < SHARE * usual
        ]
    return made
