"""`amd-smi xgmi`: whether the xGMI link of every pair of GPUs is up, and the rate of the links of each GPU.

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
_TITLE = regex(r"^[ \t>|]{0,20}(XGMI LINK STATUS|LINK METRIC TABLE):\s*$", re.MULTILINE)
_JSON = '"link_metrics"'
_HEAD = regex(r"bdf\s{1,40}(GPU\d{1,3}(?:\s{1,40}GPU\d{1,3}){0,255})\s*\Z")
_ROW = regex(r"GPU(\d{1,3})\s{1,20}([0-9a-fA-F]{4}:[0-9a-fA-F:.]{7})\s{1,20}(\S{1,8}(?:\s{1,40}\S{1,8}){0,255})\s*\Z")
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
        return _TITLE.search(head) is not None or _JSON in head

    def parse(self, blob: Blob) -> Parsed[StatusRecord]:
        parsed: Parsed[StatusRecord] = Parsed(lines=blob.data.count(b"\n") + 1)
        if blob.data.lstrip()[:1] in (b"{", b"["):
            document, why = values.load(blob)
            if why:
                parsed.leave(blob, None, "", why)
            parsed.records.extend(_of_json(document))
        else:
            parsed.records.extend(_of_tables(blob))
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


def _of_tables(blob: Blob) -> Iterator[StatusRecord]:
    table, columns = "", list[int]()
    for number, whole in blob.lines():
        line = whole[:MAX_LINE].strip(" \t>|")
        if line.endswith(":"):
            title = _TITLE.match(line)
            table, columns = title[1] if title else "", []
        elif table == "LINK METRIC TABLE" and (row := _ROW.match(line)) and int(row[1]) < MAX_GPUS:
            rates, _, kind = row[3].rpartition(XGMI)
            lane, _, link = rates.partition(_UNIT)
            if rates and not kind and (gbs := link_gbs(lane + _UNIT, link.strip())) is not None:
                yield StatusRecord(int(row[1]), row[2], (), number, line, gbs)
        elif table == "XGMI LINK STATUS" and (head := _HEAD.match(line)):
            columns = [int(word[3:]) for word in head[1].split()]
        elif table == "XGMI LINK STATUS" and (row := _ROW.match(line)) and int(row[1]) < MAX_GPUS:
            cells = zip(columns, row[3].split(), strict=False)
            words = tuple((peer, _WORDS[cell]) for peer, cell in cells if cell in _WORDS and peer != int(row[1]))
            yield StatusRecord(int(row[1]), row[2], words, number, line)


def _of_json(document: object) -> Iterator[StatusRecord]:
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


__all__ = ["StatusRecord", "XgmiStatus", "link_gbs"]
