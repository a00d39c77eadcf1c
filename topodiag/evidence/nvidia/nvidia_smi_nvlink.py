"""`nvidia-smi nvlink -s, -e, -c, -R, -p, -gt`: state, rate, far end, abilities and counters of each NVLink.

One line-oriented reader for all options: every line says which link it is of, so the text needs no mode.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source, reading, to_float, to_int
from topodiag.evidence.nvidia.nvidia_words import distinct_uuids, fill_lost
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import NVSWITCH_BUS_ID, normalise_bus_id
from topodiag.model.provenance import NotObserved
from topodiag.model.topics import Topic
from topodiag.words.own_data import own_data

MAX_LINKS = 64
"""Above NVML_NVLINK_MAX_LINKS (36 in nvml.h 13.3): a larger link number is a misread line."""
MAX_LINE = 1024
MAX_RECORDS = 400_000
"""A rack of 72 GPUs with 36 links and 40 lines on each is a quarter of this."""

COUNTERS: Mapping[str, str] = own_data("evidence/nvidia/names")["nvlink-counters"]
"""nvidia-smi's counter names (lower case, underscores) by the name the model uses; others keep their own."""

_GPU = regex(
    r"GPU\s{1,4}([0-9]{1,4}):\s{0,4}([^\n(]{0,120}?(?:\([^()]{0,40}\)[^\n(]{0,40})?)\s{0,4}(?:\(UUID:\s{0,4}([^()\s]{1,64})\)?)?$"
)
_LINK = regex(r"Link\s{1,4}([0-9]{1,4})\s{0,4}[:,]\s{0,8}(.{1,200})$")
_RATE = regex(r"[0-9]{1,6}(?:\.[0-9]{1,6})?\s{0,4}GB/s$")
_STATE = regex(r"<?\s?(inactive|active|sleep|disabled)\s?>?$", re.IGNORECASE)
_REMOTE = regex(r"Remote Device\s{1,4}([0-9A-Fa-f:.]{7,20})(?::\s{0,4}Link\s{1,4}([0-9]{1,4}))?$", re.IGNORECASE)
_BUS = regex(r"([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])$")
_ABILITY = regex(r"([A-Za-z][A-Za-z0-9 ]{2,60}?)(?:\s(?:is|are))?(?:\ssupported)?:\s{0,4}(true|false)$", re.IGNORECASE)
_COUNT = regex(r"([A-Za-z][A-Za-z0-9 /:_\-]{0,60}?)\s{0,4}:\s{0,4}(\S{1,40})(?:\s{1,4}(KiB|B|bytes|packets))?$")
_SENTENCE = regex(
    r"(?:NVML:\s{0,4})?(.{0,80}?(?:all links are inactive|nvlink.{0,40}not supported).{0,40})$", re.IGNORECASE
)
_ELISION = regex(r"\[?\s?(?:\.{3,6}|…)\s?\]?$")
_PASTE_NOISE = regex(r"[.\[\]…`~=\-_*+\s]*$")
_DECORATION = " \t#>`*\"'|"


@dataclass(frozen=True, slots=True)
class GpuHeader:
    """`GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)`."""

    index: int
    name: str
    uuid: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class LinkReading:
    """One line about one link; `gpu` is None where neither the text nor the command says whose it is. `facts` and
    `counters` by the model's names; both are empty where a line says nothing that the model has."""

    gpu: int | None
    link: int
    facts: Mapping[str, Any]
    counters: Mapping[str, int]
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class NvlinkNote:
    """A sentence instead of links, such as that all links are inactive."""

    gpu: int
    note: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Elision:
    """`[...]` between the links of a GPU: whoever published the text left some out."""

    gpu: int
    line: int


NvlinkRecord = GpuHeader | LinkReading | NvlinkNote | Elision


class NvidiaSmiNvlink(Source[NvlinkRecord]):
    """Every option of `nvidia-smi nvlink`. Offers NVLink children of GPUs, and a note where there are none to show."""

    kind = "nvidia-smi-nvlink"
    speaks_of = frozenset({Topic.GPUS, Topic.NVLINKS})
    trust = 70

    def recognises(self, head: str) -> bool:
        if "GPU" not in head and "Link " not in head:
            return False
        records = self.parse(Blob("", head.encode(errors="replace"))).records
        return any(isinstance(record, LinkReading | NvlinkNote) for record in records)

    def parse(self, blob: Blob) -> Parsed[NvlinkRecord]:
        """Empty output is what a node without NVLink hardware gives (exit status 0): no records."""
        parsed: Parsed[NvlinkRecord] = Parsed()
        gpu = _asked_gpu(blob)
        inside = gpu is not None
        for number, line in blob.lines():
            if len(parsed.records) >= MAX_RECORDS:
                parsed.leave(blob, number, "", "more lines than any node has: the rest is left out")
                break
            text = line[:MAX_LINE].lstrip(_DECORATION).rstrip(" \t`\"'|,")
            if gpu is not None and _ELISION.match(text):
                parsed.records.append(Elision(gpu, number))
            elif not text or _PASTE_NOISE.match(text) or "nvidia-smi" in text:
                continue
            elif (header := _GPU.match(text)) is not None:
                gpu, inside = int(header[1]), True
                parsed.records.append(GpuHeader(gpu, header[2].strip(), header[3] or "", number, text))
            elif (link := _LINK.match(text)) is not None:
                self._link(blob, parsed, gpu, link, number)
            elif gpu is not None and (note := _SENTENCE.match(text)) is not None:
                parsed.records.append(NvlinkNote(gpu, _plain_note(note[1]), number, text))
            elif inside:
                parsed.leave(blob, number, text, "not a line of nvidia-smi nvlink")
        return parsed

    def _link(
        self, blob: Blob, parsed: Parsed[NvlinkRecord], gpu: int | None, match: re.Match[str], number: int
    ) -> None:
        link, rest, text = int(match[1]), match[2].strip(), match.string
        if link >= MAX_LINKS:
            parsed.leave(blob, number, text, "no GPU has that many NVLinks")
            return
        said = _said(rest)
        if said is None:
            parsed.leave(blob, number, text, "nothing known is said of this link")
        else:
            if gpu is None:
                parsed.leave(blob, number, text, "no GPU header stands above this link")
            parsed.records.append(LinkReading(gpu, link, *said, number, text))

    def fill(self, blob: Blob, parsed: Parsed[NvlinkRecord], draft: NodeDraft) -> None:
        fill_lost(blob, draft)
        headers = [record for record in parsed.records if isinstance(record, GpuHeader)]
        uuids = distinct_uuids((header.index, header.uuid) for header in headers)
        for header in headers:
            gpu = draft.gpu(index=header.index, uuid=uuids.get(header.index))
            origin = blob.origin(header.line, header.text)
            gpu.offer("name", reading(header.name), origin)
            gpu.offer("uuid", uuids.get(header.index), origin)
        for record in parsed.records:
            if isinstance(record, NvlinkNote):
                origin = blob.origin(record.line, record.text)
                draft.gpu(index=record.gpu).offer("nvlink_note", record.note, origin)
            elif isinstance(record, Elision):
                why = f"{blob.name} line {record.line} leaves lines out"
                draft.missing.append(NotObserved(f"some NVLinks of GPU{record.gpu}", why))
            elif isinstance(record, LinkReading) and record.gpu is not None:
                link = draft.gpu(index=record.gpu).child("nvlink", record.link)
                origin = blob.origin(record.line, record.text)
                for name, value in record.facts.items():
                    link.offer(name, value, origin)
                for name, count in record.counters.items():
                    link.count(name, count, origin)


def _asked_gpu(blob: Blob) -> int | None:
    """The GPU of `nvidia-smi nvlink ... -i N`: old drivers print no header then."""
    argv = blob.item.argv if blob.item else ()
    for flag, value in pairwise(argv):
        if flag in ("-i", "--id") and value.isascii() and value.isdigit() and len(value) <= 4:
            return int(value)
    return None


def _plain_note(sentence: str) -> str:
    return "all links are inactive" if "all links are inactive" in sentence.lower() else "not supported"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


_Said = tuple[Mapping[str, Any], Mapping[str, int]]
"""Facts and counters."""


@lru_cache(maxsize=4096)
def _said(rest: str) -> _Said | None:
    """What the words behind `Link N:` say, or None when it is of no known shape. Nodes and links repeat the same few
    words by the thousand."""
    if _RATE.match(rest):
        rate = to_float(rest, low=0.0, high=1e4)
        return ({"line_gbs": rate, "state": "active"} if rate else {}), {}
    if (state := _STATE.match(rest)) is not None:
        return {"state": state[1].lower()}, {}
    if (remote := _REMOTE.match(rest) or _BUS.match(rest)) is not None:
        bus_id = normalise_bus_id(remote[1])
        far = int(remote[2]) if remote.re.groups > 1 and remote[2] else None
        kind = "switch" if bus_id == NVSWITCH_BUS_ID else None
        return None if bus_id is None else ({"remote_bus_id": bus_id, "remote_link": far, "remote_type": kind}, {})
    if (ability := _ABILITY.match(rest)) is not None:
        return ({"p2p_supported": ability[2].lower() == "true"} if _slug(ability[1]) == "p2p" else {}), {}
    if (count := _COUNT.match(rest)) is not None:
        name, value = _slug(count[1]), to_int(count[2], low=0)
        if "BER" in count[1].split() or reading(count[2]) is None:
            return {}, {}
        if value is not None and re.fullmatch(r"[0-9]{1,20}", count[2]):
            name = f"{name}_{count[3].lower()}" if count[3] else name
            return {}, {COUNTERS.get(name, name): value}
    return None
