"""TransferBench (p2p, a2a) and rocm-bandwidth-test: what copies between every two GPUs reached.

    Unidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)
     SRC+EXE\\DST    CPU 00       GPU 00   GPU 01
      GPU 00  ->      54.32      2954.73    48.38

    SRC\\DST  GPU 00     GPU 01        STotal      Actual
    GPU 00         N/A     47.318     330.545     328.021

    Inter-Device Numa Distance              Unidirectional copy peak bandwidth GB/s
    D/D       0         1                   D/D       0           1
    1         20        0                   1         N/A         46.2

The first table of one direction counts. rocm-bandwidth-test numbers CPUs and GPUs together; its `Device:` lines say
which are GPUs. Format: TransferBench 1.5 to 1.66 (Presets/PeerToPeer.hpp, AllToAll.hpp), rocm-bandwidth-test 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from topodiag.evidence.amd.links import PCIE
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.lazy import dataclass, regex
from topodiag.model.maker import XGMI
from topodiag.model.topics import Topic
from topodiag.words.dialect import Maker

MAX_LINE = 4000
MAX_GPUS = 256
MAX_RECORDS = 20_000
XGMI_DISTANCE = 15
"""The NUMA distance of a pair that xGMI joins directly."""
_MARK = regex(r"^[ \t>|]{0,20}(?:TransferBench v\d|RocmBandwidthTest Version: \d)", re.MULTILINE)
_TITLE = regex(r"(Unidirectional|Bidirectional) copy (?:peak )?bandwidth GB/s", re.IGNORECASE)
_DISTANCE = regex(r"Inter-Device Numa Distance")
_OTHER = regex(r"Inter-Device|Device:|Averages|Aggregate")
_HEAD = regex(r"SRC\S{0,8}\s{1,40}((?:[CG]PU \d{1,3}(?:\s{1,20}|$)){1,255})(?:STotal|$)")
_ROW = regex(r"([CG])PU (\d{1,3})(?:\s{1,4}->)?\s{1,40}(\S{1,12}(?:\s{1,40}\S{1,12}){0,255})\s*\Z")
_DEVICE = regex(
    r"Device: (\d{1,3}),\s{1,4}(\S.{0,80}?)(?:,\s{1,4}GPU-\S{1,40},\s{1,4}([0-9a-f]{1,2}:[0-9a-f]{1,2}\.\d))?\s*\Z"
)
_DD_HEAD = regex(r"D/D\s{1,20}\d{1,3}(?:\s{1,40}\d{1,3}){0,255}\s*\Z")
_DD_ROW = regex(r"(\d{1,3})\s{1,40}(\S{1,12}(?:\s{1,40}\S{1,12}){0,255})\s*\Z")


@dataclass(frozen=True, slots=True)
class CopyRecord:
    """What a copy from a GPU to another reached in GB/s, what joins the two, or the name and bus id of one."""

    gpu: int
    line: int
    text: str
    peer: int = -1
    gbs: float = 0.0
    word: str = ""
    name: str = ""
    bus_id: str = ""


class AmdCopyTests(Source[CopyRecord]):
    """Bandwidths between GPUs."""

    kind = "amd-copy-test"
    maker = Maker.AMD
    speaks_of = frozenset({Topic.GPUS})
    trust = 55
    a_piece = "ROCR_VISIBLE_DEVICES may hide others"

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[CopyRecord]:
        parsed: Parsed[CopyRecord] = Parsed(partial=True)
        for record in _records(blob):
            if len(parsed.records) < MAX_RECORDS and max(record.gpu, record.peer) < MAX_GPUS:
                parsed.records.append(record)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[CopyRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            origin = blob.origin(record.line, record.text)
            here = draft.gpu(index=record.gpu, bus_id=record.bus_id or None)
            here.offer("name", record.name or None, origin)
            if record.peer >= 0:
                there = draft.gpu(index=record.peer)
                if record.word:
                    draft.pair("smi", here, there, record.word, origin)
                else:
                    draft.pair("copies", here, there, f"{record.gbs:g}", origin)


# Complexity 24: one line after the other, and each kind of line is met once.
def _records(blob: Blob) -> Iterator[CopyRecord]:
    devices: dict[int, int] = {}
    table, taken, columns = "", False, list[str]()
    for number, whole in blob.lines():
        line = whole[:MAX_LINE].strip(" \t>|")
        if device := _DEVICE.match(line):
            if device[3]:
                gpu = devices[int(device[1])] = len(devices)
                bus, rest = device[3].split(":")
                slot, function = rest.split(".")
                place = f"0000:{int(bus, 16):02x}:{int(slot, 16):02x}.{function}"
                yield CopyRecord(gpu, number, line, name=device[2], bus_id=place)
        elif _DISTANCE.search(line):
            table = "distance"
        elif title := _TITLE.search(line):
            table, taken = ("copies" if title[1].lower() == "unidirectional" and not taken else ""), True
        elif head := _HEAD.match(line):
            columns = re.findall(r"[CG]PU \d{1,3}", head[1])
            table, taken = "copies" if table == "copies" or not taken else table, True
        elif _OTHER.match(line):
            table = ""
        elif table == "copies" and columns and (row := _ROW.match(line)):
            if row[1] == "G":
                for column, cell in zip(columns, row[3].split(), strict=False):
                    peer, gbs = int(column[4:]), _number(cell)
                    if column.startswith("G") and peer != int(row[2]) and gbs:
                        yield CopyRecord(int(row[2]), number, line, peer, gbs)
        elif devices and table and not _DD_HEAD.match(line) and (row := _DD_ROW.match(line)):
            yield from _of_devices(table, devices, int(row[1]), row[2].split(), (number, line))


def _of_devices(
    table: str, devices: dict[int, int], row: int, cells: list[str], at: tuple[int, str]
) -> Iterator[CopyRecord]:
    for column, cell in enumerate(cells):
        value = _number(cell)
        if row not in devices or column not in devices or row == column or not value:
            continue
        if table == "copies":
            yield CopyRecord(devices[row], *at, devices[column], value)
        else:
            word = XGMI if value == XGMI_DISTANCE else PCIE
            yield CopyRecord(devices[row], *at, devices[column], word=word)


def _number(cell: str) -> float:
    return float(cell) if re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,6})?", cell) else 0.0
