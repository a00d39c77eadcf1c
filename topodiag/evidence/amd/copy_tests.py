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
from topodiag.evidence.interface import MAX_GPUS, to_float, to_int
from topodiag.evidence.page import OfPage, Page
from topodiag.model.maker import XGMI
from topodiag.words.own_data import patterns

XGMI_DISTANCE = 15
"""The NUMA distance of a pair that xGMI joins directly."""
_OTHER = ("Inter-Device", "Device:", "Averages", "Aggregate")
_LIKE = patterns("evidence/lines", "amd_copy_tests")


class AmdCopyTests(OfPage):
    """Bandwidths between GPUs."""

    def read_page(self, page: Page) -> None:
        draft, devices = page.draft, dict[int, int]()
        table, taken, columns = "", False, list[str]()
        for line in page.bare_lines():
            text = line.text
            if device := _LIKE["device"].match(text):
                if device[3] and len(devices) < MAX_GPUS:
                    gpu = devices[int(device[1])] = len(devices)
                    bus, slot, function = (int(part, 16) for part in re.split("[:.]", device[3]))
                    line.put(draft.gpu(index=gpu, bus_id=f"0000:{bus:02x}:{slot:02x}.{function}"), name=device[2])
            elif "Inter-Device Numa Distance" in text:
                table = "distance"
            elif "directional copy " in (title := text.lower()) and "bandwidth gb/s" in title:
                table, taken = ("copies" if "unidirectional" in title and not taken else ""), True
            elif text.startswith("SRC"):
                columns = re.findall(r"[CG]PU \d{1,3}", text)
                table, taken = "copies" if table == "copies" or not taken else table, True
            elif text.startswith(_OTHER):
                table = ""
            elif table:
                for a, b, value in _cells(table, columns, devices, text):
                    word = f"{value:g}" if table == "copies" else XGMI if value == XGMI_DISTANCE else PCIE
                    where = "copies" if table == "copies" else "smi"
                    line.pair(where, word, draft.gpu(index=a), draft.gpu(index=b))


def _cells(table: str, columns: list[str], devices: dict[int, int], line: str) -> Iterator[tuple[int, int, float]]:
    """Two GPUs and what a row says of them: TransferBench numbers GPUs apart, rocm-bandwidth-test with the CPUs."""
    name, *cells = line.replace("->", " ").split() or [""]
    if name in ("GPU", "CPU") and cells:
        number_of, *cells = cells
        peers = [int(column[4:]) if column[0] == "G" else -1 for column in columns]
        own = (to_int(number_of) or 0) if name == "GPU" and table == "copies" else -1
    elif name.isdecimal():
        peers = [devices.get(column, -1) for column in range(MAX_GPUS)]
        own = devices.get(int(name), -1)
    else:
        return
    for peer, cell in zip(peers, cells, strict=False):
        if own >= 0 and 0 <= peer < MAX_GPUS and own != peer and (value := to_float(cell, low=0)):
            yield own, peer, value
