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
from topodiag.evidence.interface import Blob, Direct, Parsed
from topodiag.hardware.amd import XGMI_LANES
from topodiag.lazy import regex
from topodiag.model.maker import XGMI

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


def pair_word(kind: str, hops: int) -> str:
    """A pair's word, with 0 for hops that nobody told; "" for a kind that is neither xGMI nor PCIe."""
    kind = kind.strip().upper()
    if kind == XGMI:
        return XGMI if hops <= 1 else f"{XGMI} over {hops} hops"
    return PCIE if kind in ("PCIE", "PCI") else ""


class AmdLinks(Direct):
    """Pairs of GPUs, their NUMA nodes and bus ids."""

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None or (_JSON.search(head) is not None and '"link_metrics"' not in head)

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        parsed: Parsed[int] = Parsed()
        if _MARK.search(blob.text) is not None:
            _read_tables(blob, parsed, draft)
            return parsed
        document, why = values.load(blob)
        if why:
            parsed.leave(blob, None, "", why)
        for gpu, peer, word, quote in _of_keys(document) if isinstance(document, dict) else _of_list(document, draft):
            if len(parsed.records) < MAX_PAIRS and max(gpu, peer) < MAX_GPUS and word:
                draft.pair("smi", draft.gpu(index=gpu), draft.gpu(index=peer), word, blob.origin(text=quote))
                parsed.records.append(0)
        return parsed


def _read_tables(blob: Blob, parsed: Parsed[int], draft: NodeDraft) -> None:
    hops: dict[tuple[int, int], int] = {}
    table, columns, unit = "", dict[str, int](), {"hops": 1, "weight": HOP}
    for number, whole in blob.lines():
        line = whole[:MAX_LINE].strip(" \t>|")
        origin = blob.origin(number, line)
        if title := _TITLE.match(line):
            table, columns = (title[1] or title[2]).lower(), {}
        elif numa := _NUMA.match(line):
            draft.gpu(index=min(int(numa[1]), MAX_GPUS)).offer("numa", int(numa[2]), origin)
            parsed.records.append(number)
        elif _HEAD.match(line):
            columns = {name: int(name[3:]) if name[0] == "G" else at for at, name in enumerate(line.split())}
        elif (row := _ROW.match(line)) and (gpu := columns.get(row[1])) is not None and len(parsed.records) < MAX_PAIRS:
            entity = draft.gpu(index=gpu, bus_id=row[1] if table == "link type" and row[1][0] != "G" else None)
            for peer, cell in zip(columns.values(), row[2].split(), strict=False):
                far = int(cell) if table in unit and cell.isdecimal() else 0
                hops[gpu, peer] = max(far // unit.get(table, 1), hops.get((gpu, peer), 0))
                if table == "link type" and peer != gpu and (word := pair_word(cell, hops[gpu, peer])):
                    draft.pair("smi", entity, draft.gpu(index=peer), word, origin)
            parsed.records.append(number)


_Pair = tuple[int, int, str, str]
"""Two GPUs, their word, and the quote."""


def _of_keys(document: dict[str, object]) -> Iterator[_Pair]:
    parts = [part for part in document.values() if isinstance(part, dict)]
    texts = {key: str(text) for part in parts for key, text in list(part.items())[:MAX_PAIRS]}
    keys = {match.groups(): (key, text) for key, text in texts.items() if (match := _KEY.fullmatch(key))}
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


_XGMI_TITLE = regex(r"^[ \t>|]{0,20}(XGMI LINK STATUS|LINK METRIC TABLE):\s*$", re.MULTILINE)
_XGMI_JSON = '"link_metrics"'
_XGMI_HEAD = regex(r"bdf\s{1,40}(GPU\d{1,3}(?:\s{1,40}GPU\d{1,3}){0,255})\s*\Z")
_XGMI_ROW = regex(
    r"GPU(\d{1,3})\s{1,20}((?:[0-9a-fA-F]{4}:)?[0-9a-fA-F:.]{7})\s{1,20}(\S{1,8}(?:\s{1,40}\S{1,8}){0,255})\s*\Z"
)
_UNIT = " Gb/s"
_WORDS = {"U": XGMI, "D": f"{XGMI} down", "X": f"{XGMI} disabled"}


class XgmiStatus(Direct):
    """The state of the link of every pair, and the rate of the links."""

    def recognises(self, head: str) -> bool:
        return _XGMI_TITLE.search(head) is not None or _XGMI_JSON in head

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        parsed: Parsed[int] = Parsed()
        if blob.data.lstrip()[:1] in (b"{", b"["):
            document, why = values.load(blob)
            if why:
                parsed.leave(blob, None, "", why)
            for number, bus_id, gbs, quote in _xgmi_rates(document):
                draft.gpu(index=number, bus_id=bus_id).offer("xgmi_gbs", gbs, blob.origin(text=quote))
                parsed.records.append(0)
        else:
            _read_xgmi(blob, parsed, draft)
        return parsed


def _read_xgmi(blob: Blob, parsed: Parsed[int], draft: NodeDraft) -> None:
    table, columns = "", list[int]()
    for number, whole in blob.lines():
        line = whole[:MAX_LINE].strip(" \t>|")
        row = _XGMI_ROW.match(line)
        if line.endswith(":"):
            title = _XGMI_TITLE.match(line)
            table, columns = title[1] if title else "", []
        elif table == "XGMI LINK STATUS" and (head := _XGMI_HEAD.match(line)):
            columns = [int(word[3:]) for word in head[1].split()]
        elif table and row is not None and int(row[1]) < MAX_GPUS:
            rates, _, kind = row[3].rpartition(XGMI)
            lane, _, link = rates.partition(_UNIT)
            gbs = link_gbs(lane + _UNIT, link.strip()) if rates and not kind else None
            if table == "LINK METRIC TABLE" and gbs is None:
                continue
            gpu, origin = draft.gpu(index=int(row[1]), bus_id=row[2]), blob.origin(number, line)
            if table == "LINK METRIC TABLE":
                gpu.offer("xgmi_gbs", gbs, origin)
            else:
                cells = zip(columns, row[3].split(), strict=False)
                words = {peer: _WORDS[cell] for peer, cell in cells if cell in _WORDS and peer != int(row[1])}
                gpu.offer("nvlink_note", None if words else "not supported", origin)
                for peer, word in words.items():
                    draft.pair("smi", gpu, draft.gpu(index=peer), word, origin)
            parsed.records.append(number)


def _xgmi_rates(document: object) -> Iterator[tuple[int, str | None, float, str]]:
    """Number, bus id, GB/s and quote of each GPU."""
    lists = list(document.values())[:MAX_GPUS] if isinstance(document, dict) else [document]
    for gpus in lists:
        for _, gpu in values.objects(gpus, MAX_GPUS):
            number, metrics = values.integer(gpu.get("gpu"), high=MAX_GPUS - 1), gpu.get("link_metrics")
            lane, link = (values.member(metrics, key) for key in ("bit_rate", "max_bandwidth"))
            gbs = link_gbs(lane, link)
            if number is not None and gbs is not None and values.member(metrics, "link_type") == XGMI:
                quote = f"gpu {number}: bit_rate {values.shown(lane)}, max_bandwidth {values.shown(link)}"
                yield number, values.text(gpu.get("bdf")), gbs, quote


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
