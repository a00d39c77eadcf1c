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
and both directions at once are left out. `nvbandwidth -j` writes the same as JSON, a cell a line. Format: cuda-samples
10 to 13 (numbers in hexadecimal), nvbandwidth 0.5 and later.

`gpu_burn`: what each GPU calculates, side by side, and which of them makes errors.

    100.0%  proc'd: 5120 (49210 Gflop/s) - 1811 (17432 Gflop/s)   errors: 0 - 0   temps: 71 C - 89 C
    GPU 1: FAULTY

The last line of a run counts. A GPU far below the others, all of them under the same load, fell short in a test.
Format: wilicc/gpu-burn, gpu_burn-drv.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import MAX_GPUS, to_float, to_int
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.model.busid import normalise_bus_id
from topodiag.words.own_data import own_data, patterns

_LIKE = patterns("evidence/nvidia/lines", "copy_tests")
_ONE_WAY, _BOTH_WAYS = "Unidirectional P2P=Enabled", "Bidirectional P2P=Enabled Bandwidth "
"""The latter counts, by half, where a text has no table of one direction."""
_TABLES = own_data("evidence/nvidia/names")["copy-tests"]
_REACHES = "OK"
"""That CUDA lets a device reach another's memory, in the words of `nvidia-smi topo -p2p`. Why it does not let it has
several words there, and none here."""


class CopyTests(OfPage):
    """GPUs, and access between them, from tests of copies."""

    def read_page(self, page: Page) -> None:
        devices = _Devices(page.draft)
        table, seen, whole = "", set[str](), page.blob.text
        both = _ONE_WAY not in whole and _BOTH_WAYS in whole
        for line in _lines(page):
            text = line.text
            if (match := _LIKE["sample"].match(text) or _LIKE["nvbandwidth"].match(text)) is not None:
                devices.name(match, line)
            elif (access := text.partition(" Access Peer "))[1]:
                here, _, may = access[0].partition(" ")
                ends = [end.removeprefix("Device=") for end in (here, access[2])]
                page.mark(line.number)
                if may == "CAN" and all(end.isdecimal() for end in ends):
                    devices.pair("p2p:read", (ends[0], ends[1]), _REACHES, line)
            elif (title := _title(text, both=both)) is not None:
                table = "" if title in seen else title
                seen.add(title)
            elif table and _is_row(cells := text.split()):
                page.mark(line.number)
                for column, gbs in _copies(table, cells):
                    if table != "host":
                        devices.pair("copies", (cells[0], column), f"{gbs / 2 if both else gbs:g}", line)
                    elif (gpu := devices.gpu(column)) is not None:
                        line.put(gpu, host_copy_gbs=gbs)


def _lines(page: Page) -> Iterator[Line]:
    """The lines of a text. In nvbandwidth's JSON the cells of a row stand one below the other: each row as one line."""
    row, cells = 0, list[str]()
    for line in page.bare_lines():
        if (cell := _LIKE["json_cell"].fullmatch(line.text)) is not None:
            cells.append(cell[1])
        elif cells:
            yield Line(page, line.number, f"{row} {' '.join(cells)}")
            row, cells = row + 1, []
        elif line.text.endswith('" :'):  # the name of a list
            row = 0
        else:
            yield line


class _Devices:
    """The devices of a text: those that it names by their bus id alone, where it names any, else nvidia-smi's."""

    def __init__(self, draft: NodeDraft) -> None:
        self._draft = draft
        self._named: dict[int, Entity] = {}

    def name(self, match: re.Match[str], line: Line) -> None:
        line.page.mark(line.number)
        bus_id = normalise_bus_id(_place(match))
        if bus_id is not None and len(self._named) < MAX_GPUS:
            self._named[int(match[1])] = self._draft.gpu(bus_id=bus_id)
            line.put(self._named[int(match[1])], name=match[2])

    def gpu(self, device: str) -> Entity | None:
        return self._named.get(int(device)) if self._named else self._draft.gpu(index=int(device))

    def pair(self, table: str, devices: tuple[str, str], word: str, line: Line) -> None:
        here, there = map(self.gpu, devices)
        if here is not None and there is not None:
            line.pair(table, word, here, there)


def _place(match: re.Match[str]) -> str:
    if match.re.groups == 3:
        return f"{match[3]}.0"
    return f"{int(match[5], 16):04x}:{int(match[3], 16):02x}:{int(match[4], 16):02x}.0"


def _title(text: str, *, both: bool) -> str | None:
    """Which table begins here, empty for one that is left out, None where none begins."""
    known = next((kind for *words, kind in _TABLES["titles"] if all(word in text for word in words)), None)
    if known is None and both and _BOTH_WAYS in text:
        known = "gpus"
    return "" if known is None and any(word in text.lower() for word in _TABLES["others"]) else known


def _is_row(cells: list[str]) -> bool:
    """Whether cells are a device and what it copied: a header has whole numbers alone."""
    known = all(cell == "N/A" or to_float(cell) is not None for cell in cells)
    return known and len(cells) > 1 and cells[0].isdecimal() and not all(map(str.isdecimal, cells))


def _copies(table: str, cells: list[str]) -> Iterator[tuple[str, float]]:
    """The columns of a row in which something was copied, and GB/s; of the host the first row counts."""
    own = int(cells[0])
    for column, cell in enumerate(cells[1:]):
        gbs = to_float(cell) or 0.0
        if gbs > 0 and (own == 0 if table == "host" else column != own):
            yield str(column), gbs


GPU_BURN_MAX_LINE = 20_000
FEWEST = 3
"""GPUs that show what one of them would reach."""
SHARE = 0.7
"""Part of the others' pace below which one fell short: cards of a kind differ by a tenth."""
_PROGRESS = "proc'd: "


class GpuBurn(OfPage):
    """GPUs that are slow or wrong under gpu_burn."""

    def read_page(self, page: Page) -> None:
        last: Line | None = None
        for line in page.cut_lines(GPU_BURN_MAX_LINE):
            text = line.text.strip()
            faulty = text.removeprefix("GPU ").removesuffix(": FAULTY")
            if text.endswith(": FAULTY") and (gpu := to_int(faulty, low=0, high=MAX_GPUS - 1)) is not None:
                line.put(page.draft.gpu(index=gpu), failed_tests=("gpu_burn calls it faulty",))
            elif _PROGRESS in line.text:
                # The tool writes over the state before.
                last = Line(page, line.number, line.text.rpartition(_PROGRESS)[2])
        if last is not None:
            for index, words in _of_progress(last.text):
                last.put(page.draft.gpu(index=index), failed_tests=(words,))


def _of_progress(text: str) -> Iterator[tuple[int, str]]:
    """The GPUs that fell short, and in what."""
    paces = [int(pace) for pace in _LIKE["pace"].findall(text)][:MAX_GPUS]
    wrong = re.findall(r"\d{1,12}", text.partition("errors:")[2].partition("temps:")[0])[:MAX_GPUS]
    for index, count in enumerate(map(int, wrong)):
        if count:
            yield index, f"gpu_burn: {count} wrong results"
    usual = median(paces) if len(paces) >= FEWEST else 0
    for index, pace in enumerate(paces):
        if pace < SHARE * usual:
            yield index, f"gpu_burn: {pace} Gflop/s, {usual:.0f} on its siblings"
