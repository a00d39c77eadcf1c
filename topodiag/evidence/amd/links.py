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
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from topodiag.evidence import json_values as values
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
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
        parsed: Parsed[LinkRecord] = Parsed(lines=blob.data.count(b"\n") + 1)
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


__all__ = ["AmdLinks", "LinkRecord"]
