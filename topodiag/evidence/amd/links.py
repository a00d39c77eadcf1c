"""Which of AMD's GPUs xGMI joins, by the tools and by the driver, and what copies between them reached.

`rocm-smi --showtopo` and `amd-smi topology`, in text and JSON:

    =============================== Link Type between two GPUs ===============================
           GPU0         GPU1
    GPU0   0            XGMI
    GPU1   XGMI         0
    GPU[0]          : (Topology) Numa Node: 0

    LINK TYPE TABLE:
                 0000:05:00.0 0000:26:00.0
    0000:05:00.0 SELF         XGMI

    {"system": {"(Topology) Link type between DRM devices 0 and 1": "XGMI"}}
    [{"gpu": 0, "bdf": "0000:05:00.0", "links": [{"gpu": 1, "link_type": "XGMI", "num_hops": 1}]}]

A pair is `XGMI`, `XGMI over N hops` where other GPUs lie between, or `PCIE`. The tools print one hop for every pair of
a hive; the weight, 15 a hop, tells better (ROCm/rocm-systems issue 5763). Links of `amd-smi` stand in no order.
Format: ROCm 4 to 7, rocm_smi.py (showtopo), amdsmi_commands.py (topology).

`amd-smi xgmi`: whether the xGMI link of every pair of GPUs is up, and the rate of the links of each GPU.

    LINK METRIC TABLE:
           bdf            bit_rate  max_bandwidth  link_type  GPU0          GPU1
    GPU0   0000:05:00.0   32 Gb/s   512 Gb/s       XGMI

    XGMI LINK STATUS:
           bdf           GPU0          GPU1
    GPU0   0000:05:00.0   SELF          U
    GPU1   0000:26:00.0   D             SELF

U is up, D down, X disabled; N/A in a virtual function, which says nothing. `bit_rate` is of a lane, `max_bandwidth` of
a link of 16 lanes, both in one direction; the lower of the two counts. The JSON is read for rates alone. Bytes read
and written say how busy a pair was, and are left out. Format: ROCm 6.2 to 7, amdsmi_commands.py (xgmi).

`/sys/class/kfd/kfd/topology`: AMD's GPUs and the links between them as the driver knows them, without any tool.

    sys/class/kfd/kfd/topology/nodes/3/properties                  simd_count 1216, location_id 9728, domain 0
    sys/class/kfd/kfd/topology/nodes/3/io_links/1/properties       type 11, node_from 3, node_to 4, weight 15

Nodes are CPUs first, then GPUs (simd_count above 0). Type 11 is xGMI, 2 PCIe; a weight of 15 is one hop. Where a pair
has no direct link its bandwidth is 0 and its weight 30: weight and bandwidth count, not the type alone. PCIe peers
stand in `p2p_links` or nowhere: two GPUs with xGMI links and none between them have PCIe. Source: Linux
drivers/gpu/drm/amd/amdkfd (kfd_topology.c, kfd_crat.c), amdgpu_xgmi.c.

TransferBench (p2p, a2a) and rocm-bandwidth-test: what copies between every two GPUs reached.

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
from itertools import combinations, islice

from topodiag.evidence import json_values as values
from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import MAX_GPUS, to_float, to_int
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.evidence.readings import Notes, OfTree
from topodiag.evidence.readings import quote as file_quote
from topodiag.evidence.tree import TreeFile
from topodiag.hardware.amd import XGMI_LANES
from topodiag.model.busid import normalise_bus_id
from topodiag.model.devices import AMD as AMD_ID
from topodiag.model.maker import XGMI
from topodiag.words.own_data import patterns

MAX_PAIRS = 20_000
PCIE = "PCIE"
HOP = 15
"""The weight of a hop over xGMI (Linux kfd_crat.c)."""
_TABLES = ("weight", "hops", "link type", "link metric", "xgmi link status")
_OF_LINKS = ("= Link Type between two GPUs =", "= Hops between two GPUs =", "LINK TYPE TABLE:")
_LIKE = patterns("evidence/lines", "amd_links")
_NUMA = ": (Topology) Numa Node: "
_Row = tuple[str, dict[str, int], list[str], Line]
"""The title of a table, the numbers of its columns' GPUs by name, the words of a row, and its line."""


def _rows(page: Page) -> Iterator[_Row]:
    """The rows of GPUs in all tables of a text."""
    table, columns = "", dict[str, int]()
    for line in page.bare_lines():
        words = line.text.split()
        names = words[1:] if words[:1] == ["bdf"] else words
        if line.text.startswith("==") or line.text.endswith(":"):
            title = line.text.strip("=: ").lower()
            table, columns = next((name for name in _TABLES if title.startswith(name)), ""), {}
        elif names and all(map(_is_gpu, names)):
            columns = {name: int(name[3:]) if name[0] == "G" else at for at, name in enumerate(names)}
        elif table and len(words) > 1 and _is_gpu(words[0]):
            yield table, columns, words, line


def _is_gpu(word: str) -> bool:
    return normalise_bus_id(word) is not None or (word.startswith("GPU") and word[3:].isdecimal() and len(word) < 7)


def pair_word(kind: str, hops: int) -> str:
    """A pair's word, with 0 for hops that nobody told; "" for a kind that is neither xGMI nor PCIe."""
    kind = kind.strip().upper()
    if kind == XGMI:
        return XGMI if hops <= 1 else f"{XGMI} over {hops} hops"
    return PCIE if kind in ("PCIE", "PCI") else ""


class AmdLinks(OfPage):
    """Pairs of GPUs, their NUMA nodes and bus ids."""

    def read_page(self, page: Page) -> None:
        blob, parsed, draft = page.blob, page.parsed, page.draft
        if any(title in blob.text for title in _OF_LINKS):
            _read_tables(page)
            return
        document = values.document_of(blob, parsed)
        for gpu, peer, word, quote in _of_keys(document) if isinstance(document, dict) else _of_list(document, draft):
            if len(parsed.records) < MAX_PAIRS and max(gpu, peer) < MAX_GPUS and word:
                draft.pair("smi", draft.gpu(index=gpu), draft.gpu(index=peer), word, blob.origin(text=quote))
                parsed.records.append(0)


def _read_tables(page: Page) -> None:
    draft = page.draft
    for line in page.bare_lines():
        gpu, _, node = line.text.partition(_NUMA)
        index, numa = to_int(gpu.strip("GPU[] "), low=0, high=MAX_GPUS - 1), to_int(node, low=-1)
        if index is not None and numa is not None:
            line.put(draft.gpu(index=index), numa=numa)
    hops: dict[tuple[int, int], int] = {}
    unit = {"hops": 1, "weight": HOP}
    for table, columns, (name, *cells), line in islice(_rows(page), MAX_PAIRS):
        gpu_index = columns.get(name)
        if gpu_index is None:
            continue
        page.mark(line.number)
        entity = draft.gpu(index=gpu_index, bus_id=name if table == "link type" and name[0] != "G" else None)
        for peer, cell in zip(columns.values(), cells, strict=False):
            far = int(cell) if table in unit and cell.isdecimal() else 0
            hops[gpu_index, peer] = max(far // unit.get(table, 1), hops.get((gpu_index, peer), 0))
            if table == "link type" and peer != gpu_index and (word := pair_word(cell, hops[gpu_index, peer])):
                line.pair("smi", word, entity, draft.gpu(index=peer))


_Pair = tuple[int, int, str, str]
"""Two GPUs, their word, and the quote."""


def _of_keys(document: dict[str, object]) -> Iterator[_Pair]:
    parts = [part for part in document.values() if isinstance(part, dict)]
    texts = {key: str(text) for part in parts for key, text in list(part.items())[:MAX_PAIRS]}
    keys = {match.groups(): (key, text) for key, text in texts.items() if (match := _LIKE["key"].fullmatch(key))}
    for (what, a, b), (key, text) in keys.items():
        far = [keys.get((name, a, b), ("", ""))[1].strip()[:9] for name in ("Hops", "Weight")]
        hops, weight = (int(cell) if cell.isdecimal() else 0 for cell in far)
        if what == "Link type":
            yield int(a), int(b), pair_word(text, max(hops, weight // HOP)), f"{key}: {text}"


def _of_list(document: object, draft: NodeDraft) -> Iterator[_Pair]:
    for _, gpu in values.objects(document, MAX_GPUS):
        number = values.integer(gpu.get("gpu"), high=MAX_GPUS - 1)
        if number is None:
            continue
        draft.gpu(index=number, bus_id=values.text(gpu.get("bdf")))
        for _, link in values.objects(gpu.get("links"), MAX_GPUS):
            peer = values.integer(link.get("gpu"), high=MAX_GPUS - 1)
            kind = values.text(link.get("link_type")) or ""
            hops, weight = (values.integer(link.get(key), high=MAX_PAIRS) or 0 for key in ("num_hops", "weight"))
            if peer is not None and peer != number:
                quote = f"gpu {number} to gpu {peer}: {kind}, weight {values.shown(link.get('weight'))}"
                yield number, peer, pair_word(kind, max(hops, weight // HOP)), quote


_UNIT = " Gb/s"
_WORDS = {"U": XGMI, "D": f"{XGMI} down", "X": f"{XGMI} disabled"}


class XgmiStatus(OfPage):
    """The state of the link of every pair, and the rate of the links."""

    def read_page(self, page: Page) -> None:
        is_json = page.blob.data.lstrip()[:1] in (b"{", b"[")
        (_read_xgmi_json if is_json else _read_xgmi)(page)


def _read_xgmi(page: Page) -> None:
    for table, columns, (name, bus_id, *cells), line in _rows(page):
        index, metric = to_int(name.removeprefix("GPU"), low=0, high=MAX_GPUS - 1), table == "link metric"
        gbs = link_gbs(" ".join(cells[:2]), " ".join(cells[2:4])) if cells[-1:] == [XGMI] else None
        if index is None or normalise_bus_id(bus_id) is None or not (table == "xgmi link status" or (metric and gbs)):
            continue
        gpu = page.draft.gpu(index=index, bus_id=bus_id)
        if metric:
            line.put(gpu, xgmi_gbs=gbs)
            continue
        words = {peer: _WORDS[cell] for peer, cell in zip(columns.values(), cells, strict=False) if cell in _WORDS}
        words.pop(index, None)
        line.put(gpu, nvlink_note=None if words else "not supported")
        for peer, word in words.items():
            line.pair("smi", word, gpu, page.draft.gpu(index=peer))


def _read_xgmi_json(page: Page) -> None:
    document = values.document_of(page.blob, page.parsed)
    lists = list(document.values())[:MAX_GPUS] if isinstance(document, dict) else [document]
    for gpus in lists:
        for _, gpu in values.objects(gpus, MAX_GPUS):
            number, metrics = values.integer(gpu.get("gpu"), high=MAX_GPUS - 1), gpu.get("link_metrics")
            lane, link = (values.member(metrics, key) for key in ("bit_rate", "max_bandwidth"))
            gbs = link_gbs(lane, link)
            if number is not None and gbs is not None and values.member(metrics, "link_type") == XGMI:
                quote = f"gpu {number}: bit_rate {values.shown(lane)}, max_bandwidth {values.shown(link)}"
                entity = page.draft.gpu(index=number, bus_id=values.text(gpu.get("bdf")))
                entity.offer("xgmi_gbs", gbs, page.blob.origin(text=quote))
                page.parsed.records.append(0)


def link_gbs(lane: object, link: object) -> float | None:
    """GB/s of a link in one direction by the rates of a lane and of the link; None where neither is above 0."""
    rates = [rate for rate in (_gbps(lane) * XGMI_LANES, _gbps(link)) if rate > 0]
    return min(rates) / 8 if rates else None


def _gbps(held: object) -> float:
    """`32 Gb/s`, or the same as `{"value": 32, "unit": "Gb/s"}`; 0.0 for anything else."""
    if isinstance(held, dict):
        held = f"{held.get('value')} {held.get('unit')}"
    rate = to_float(held.removesuffix(_UNIT), low=0.0) if isinstance(held, str) and held.endswith(_UNIT) else None
    return rate or 0.0


NODES = "sys/class/kfd/kfd/topology/nodes"
MAX_NODES = 512
_XGMI, _PCIE = 11, 2


class Kfd(OfTree):
    """GPUs with bus ids, and what joins them."""

    def read_notes(self, notes: Notes) -> None:
        draft, gpus = notes.draft, _gpus(notes)
        entities: dict[int, Entity] = {}
        for index, (number, file) in enumerate(gpus.items()):
            bus_id = _bus_id(_properties(file))
            entities[number] = draft.gpu(index=index, bus_id=bus_id)
            if bus_id is not None:
                draft.pci(bus_id).offer("vendor", AMD_ID, notes.blob.origin(file.at, file_quote(file)))
            notes.parsed.records.append(file.at)
        pairs: set[tuple[int, int]] = set()
        linked: set[int] = set()
        for path, file in notes.files.items():
            match = _LIKE["file"].fullmatch(path)
            properties = _properties(file) if match is not None else {}
            start = properties.get("node_from", int(match[1]) if match is not None else -1)
            end = properties.get("node_to", -1)
            if start in gpus and end in gpus:
                if (word := _word(properties)) is not None:
                    origin = notes.blob.origin(file.at, file_quote(file))
                    draft.pair("smi", entities[start], entities[end], word, origin)
                pairs |= {(start, end), (end, start)}
                linked |= {start} if properties.get("type") == _XGMI else set()
        for start, end in combinations(sorted(linked), 2):
            if (start, end) not in pairs:
                origin = notes.blob.origin(gpus[start].at, file_quote(gpus[start]))
                draft.pair("smi", entities[start], entities[end], PCIE, origin)


def _gpus(notes: Notes) -> dict[int, TreeFile]:
    """The properties of the nodes that are GPUs, by number."""
    nodes = sorted(notes.below(NODES).items())[:MAX_NODES]
    files = {int(name): held["properties"] for name, held in nodes if name.isdecimal() and "properties" in held}
    return {number: file for number, file in sorted(files.items()) if _properties(file).get("simd_count", 0) > 0}


def _properties(file: TreeFile) -> dict[str, int]:
    """The numbers of a file by their names."""
    pairs = (text.strip().partition(" ") for _, text in file.lines)
    return {name: number for name, _, value in pairs if (number := to_int(value, low=0)) is not None}


def _bus_id(properties: dict[str, int]) -> str | None:
    """The place of a GPU: location_id is bus, device and function in one number."""
    place = properties.get("location_id")
    if place is None or place > 0xFFFF:
        return None
    return f"{properties.get('domain', 0) & 0xFFFF:04x}:{place >> 8:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"


def _word(properties: dict[str, int]) -> str | None:
    kind, weight = properties.get("type"), properties.get("weight", HOP)
    if kind == _XGMI:
        least = 1 if properties.get("max_bandwidth", 1) > 0 else 2
        return pair_word(XGMI, max(least, weight // HOP))
    return PCIE if kind == _PCIE else None


XGMI_DISTANCE = 15
"""The NUMA distance of a pair that xGMI joins directly."""
_OTHER = ("Inter-Device", "Device:", "Averages", "Aggregate")


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
