"""Which GPUs xGMI joins, as `rocm-smi --showtopo` and `amd-smi topology` tell it, in text and JSON.

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
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from topodiag.evidence import json_values as values
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.hardware.amd import XGMI_LANES
from topodiag.lazy import dataclass, regex
from topodiag.model.maker import XGMI
from topodiag.model.topics import Topic
from topodiag.words.dialect import Maker

MAX_LINE = 4000
MAX_GPUS = 256
MAX_PAIRS = 20_000
PCIE = "PCIE"
HOP = 15
"""The weight of a hop over xGMI (Linux kfd_crat.c)."""
_TITLE = regex(r"=+ (Weight|Hops|Link Type|Numa)\b[^=]{0,60}=+\s*\Z|([A-Z -]{3,30}) TABLE:\s*\Z", re.IGNORECASE)
_GPU = r"(?:GPU\d{1,3}|(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
_HEAD = regex(rf"{_GPU}(?:\s{{1,40}}{_GPU}){{0,255}}\s*\Z")
_ROW = regex(rf"({_GPU})\s{{1,40}}(\S{{1,16}}(?:\s{{1,40}}\S{{1,16}}){{0,255}})\s*\Z")
_NUMA = regex(r"GPU\[(\d{1,3})\]\s{0,20}: \(Topology\) Numa Node: (-?\d{1,4})\s*\Z")
_MARK = regex(r"^[ \t>|]{0,20}(?:=+ (?:Link Type|Hops) between two GPUs =+|LINK TYPE TABLE:)\s*$", re.MULTILINE)
_KEY = regex(r"\(Topology\) (Link type|Hops|Weight) between DRM devices (\d{1,3}) and (\d{1,3})")
_JSON = regex(r"\(Topology\) Link type between DRM devices \d|\"links\"\s{0,40}:[\s\S]{0,2000}?\"link_type\"")


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """A pair of GPUs with its word, or one GPU with its bus id or NUMA node."""

    gpu: int
    line: int | None
    text: str
    peer: int = -1
    word: str = ""
    bus_id: str = ""
    numa: int | None = None


def pair_word(kind: str, hops: int) -> str:
    """A pair's word, with 0 for hops that nobody told; "" for a kind that is neither xGMI nor PCIe."""
    kind = kind.strip().upper()
    if kind == XGMI:
        return XGMI if hops <= 1 else f"{XGMI} over {hops} hops"
    return PCIE if kind in ("PCIE", "PCI") else ""


class AmdLinks(Source[LinkRecord]):
    """Pairs of GPUs, their NUMA nodes and bus ids."""

    kind = "amd-links"
    maker = Maker.AMD
    speaks_of = frozenset({Topic.GPUS})
    trust = 70

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None or (_JSON.search(head) is not None and '"link_metrics"' not in head)

    def parse(self, blob: Blob) -> Parsed[LinkRecord]:
        parsed: Parsed[LinkRecord] = Parsed()
        if _MARK.search(blob.text) is not None:
            found = _of_tables(blob)
        else:
            document, why = values.load(blob)
            if why:
                parsed.leave(blob, None, "", why)
            found = _of_keys(document) if isinstance(document, dict) else _of_list(document)
        for record in found:
            if len(parsed.records) < MAX_PAIRS and max(record.gpu, record.peer) < MAX_GPUS:
                parsed.records.append(record)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[LinkRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            origin = blob.origin(record.line, record.text)
            entity = draft.gpu(index=record.gpu, bus_id=record.bus_id or None)
            entity.offer("numa", record.numa, origin)
            if record.word:
                draft.pair("smi", entity, draft.gpu(index=record.peer), record.word, origin)


def _of_tables(blob: Blob) -> Iterator[LinkRecord]:
    hops: dict[tuple[int, int], int] = {}
    table, columns, unit = "", dict[str, int](), {"hops": 1, "weight": HOP}
    for number, whole in blob.lines():
        line = whole[:MAX_LINE].strip(" \t>|")
        if title := _TITLE.match(line):
            table, columns = (title[1] or title[2]).lower(), {}
        elif numa := _NUMA.match(line):
            yield LinkRecord(int(numa[1]), number, line, numa=int(numa[2]))
        elif _HEAD.match(line):
            columns = {name: int(name[3:]) if name[0] == "G" else at for at, name in enumerate(line.split())}
        elif (row := _ROW.match(line)) and (gpu := columns.get(row[1])) is not None:
            if table == "link type" and row[1][0] != "G":
                yield LinkRecord(gpu, number, line, bus_id=row[1])
            for peer, cell in zip(columns.values(), row[2].split(), strict=False):
                far = int(cell) if table in unit and cell.isdecimal() else 0
                hops[gpu, peer] = max(far // unit.get(table, 1), hops.get((gpu, peer), 0))
                if table == "link type" and peer != gpu and (word := pair_word(cell, hops[gpu, peer])):
                    yield LinkRecord(gpu, number, line, peer, word)


def _of_keys(document: dict[str, object]) -> Iterator[LinkRecord]:
    parts = [part for part in document.values() if isinstance(part, dict)]
    told = {key: str(text) for part in parts for key, text in list(part.items())[:MAX_PAIRS]}
    keys = {found.groups(): (key, text) for key, text in told.items() if (found := _KEY.fullmatch(key))}
    for (what, a, b), (key, text) in keys.items():
        far = [keys.get((name, a, b), ("", ""))[1].strip()[:9] for name in ("Hops", "Weight")]
        hops, weight = (int(cell) if cell.isdecimal() else 0 for cell in far)
        if what == "Link type" and (word := pair_word(text, max(hops, weight // HOP))):
            yield LinkRecord(int(a), None, f"{key}: {text}", int(b), word)


def _of_list(document: object) -> Iterator[LinkRecord]:
    for _, gpu in values.objects(document, MAX_GPUS):
        number = values.integer(gpu.get("gpu"), high=MAX_GPUS - 1)
        if number is None:
            continue
        yield LinkRecord(number, None, f"gpu {number}", bus_id=values.text(gpu.get("bdf")) or "")
        for _, link in values.objects(gpu.get("links"), MAX_GPUS):
            peer = values.integer(link.get("gpu"), high=MAX_GPUS - 1)
            kind = values.text(link.get("link_type")) or ""
            hops, weight = (values.integer(link.get(key), high=MAX_PAIRS) or 0 for key in ("num_hops", "weight"))
            word = pair_word(kind, max(hops, weight // HOP))
            if peer is not None and peer != number and word:
                quote = f"gpu {number} to gpu {peer}: {kind}, weight {values.shown(link.get('weight'))}"
                yield LinkRecord(number, None, quote, peer, word)


_XGMI_TITLE = regex(r"^[ \t>|]{0,20}(XGMI LINK STATUS|LINK METRIC TABLE):\s*$", re.MULTILINE)
_XGMI_JSON = '"link_metrics"'
_XGMI_HEAD = regex(r"bdf\s{1,40}(GPU\d{1,3}(?:\s{1,40}GPU\d{1,3}){0,255})\s*\Z")
_XGMI_ROW = regex(
    r"GPU(\d{1,3})\s{1,20}((?:[0-9a-fA-F]{4}:)?[0-9a-fA-F:.]{7})\s{1,20}(\S{1,8}(?:\s{1,40}\S{1,8}){0,255})\s*\Z"
)
_UNIT = " Gb/s"
_WORDS = {"U": XGMI, "D": f"{XGMI} down", "X": f"{XGMI} disabled"}


@dataclass(frozen=True, slots=True)
class StatusRecord:
    """One row of the table of links, what stands between a GPU and each other; or the rate of its links, GB/s."""

    gpu: int
    bus_id: str | None
    words: tuple[tuple[int, str], ...]
    line: int | None
    text: str
    gbs: float | None = None


class XgmiStatus(Source[StatusRecord]):
    """The state of the link of every pair, and the rate of the links."""

    kind = "amd-smi-xgmi"
    maker = Maker.AMD
    speaks_of = frozenset({Topic.GPUS})
    trust = 72

    def recognises(self, head: str) -> bool:
        return _XGMI_TITLE.search(head) is not None or _XGMI_JSON in head

    def parse(self, blob: Blob) -> Parsed[StatusRecord]:
        parsed: Parsed[StatusRecord] = Parsed()
        if blob.data.lstrip()[:1] in (b"{", b"["):
            document, why = values.load(blob)
            if why:
                parsed.leave(blob, None, "", why)
            parsed.records.extend(_xgmi_of_json(document))
        else:
            parsed.records.extend(_xgmi_of_tables(blob))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[StatusRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            gpu, origin = draft.gpu(index=record.gpu, bus_id=record.bus_id), blob.origin(record.line, record.text)
            if record.gbs is not None:
                gpu.offer("xgmi_gbs", record.gbs, origin)
                continue
            gpu.offer("nvlink_note", None if record.words else "not supported", origin)
            for peer, word in record.words:
                draft.pair("smi", gpu, draft.gpu(index=peer), word, origin)


def _xgmi_of_tables(blob: Blob) -> Iterator[StatusRecord]:
    table, columns = "", list[int]()
    for number, whole in blob.lines():
        line = whole[:MAX_LINE].strip(" \t>|")
        if line.endswith(":"):
            title = _XGMI_TITLE.match(line)
            table, columns = title[1] if title else "", []
        elif table == "LINK METRIC TABLE" and (row := _XGMI_ROW.match(line)) and int(row[1]) < MAX_GPUS:
            rates, _, kind = row[3].rpartition(XGMI)
            lane, _, link = rates.partition(_UNIT)
            if rates and not kind and (gbs := link_gbs(lane + _UNIT, link.strip())) is not None:
                yield StatusRecord(int(row[1]), row[2], (), number, line, gbs)
        elif table == "XGMI LINK STATUS" and (head := _XGMI_HEAD.match(line)):
            columns = [int(word[3:]) for word in head[1].split()]
        elif table == "XGMI LINK STATUS" and (row := _XGMI_ROW.match(line)) and int(row[1]) < MAX_GPUS:
            cells = zip(columns, row[3].split(), strict=False)
            words = tuple((peer, _WORDS[cell]) for peer, cell in cells if cell in _WORDS and peer != int(row[1]))
            yield StatusRecord(int(row[1]), row[2], words, number, line)


def _xgmi_of_json(document: object) -> Iterator[StatusRecord]:
    lists = list(document.values())[:MAX_GPUS] if isinstance(document, dict) else [document]
    for gpus in lists:
        for _, gpu in values.objects(gpus, MAX_GPUS):
            number, metrics = values.integer(gpu.get("gpu"), high=MAX_GPUS - 1), gpu.get("link_metrics")
            lane, link = (values.shown(values.member(metrics, key)) for key in ("bit_rate", "max_bandwidth"))
            gbs = link_gbs(values.member(metrics, "bit_rate"), values.member(metrics, "max_bandwidth"))
            if number is not None and gbs is not None and values.member(metrics, "link_type") == XGMI:
                text = f"gpu {number}: bit_rate {lane}, max_bandwidth {link}"
                yield StatusRecord(number, values.text(gpu.get("bdf")), (), None, text, gbs)


def link_gbs(lane: object, link: object) -> float | None:
    """GB/s of a link in one direction by the rates of a lane and of the link; None where neither is above 0."""
    rates = [rate for rate in (_gbps(lane) * XGMI_LANES, _gbps(link)) if rate > 0]
    return min(rates) / 8 if rates else None


def _gbps(held: object) -> float:
    """`32 Gb/s`, or the same as `{"value": 32, "unit": "Gb/s"}`; 0.0 for anything else."""
    if isinstance(held, dict):
        held = f"{held.get('value')} {held.get('unit')}"
    known = isinstance(held, str) and re.fullmatch(r"[0-9]{1,6}(?:\.[0-9]{1,6})? Gb/s", held)
    return float(held.removesuffix(_UNIT)) if isinstance(held, str) and known else 0.0
