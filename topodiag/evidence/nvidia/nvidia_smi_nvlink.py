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
from topodiag.evidence.interface import MAX_LINE, Blob, Parsed, Source, reading, to_float
from topodiag.evidence.nvidia.nvidia_words import distinct_uuids, fill_lost
from topodiag.model.busid import NVSWITCH_BUS_ID, normalise_bus_id
from topodiag.model.provenance import NotObserved, Origin
from topodiag.words.own_data import own_data, patterns

MAX_LINKS = 64
"""Above NVML_NVLINK_MAX_LINKS (36 in nvml.h 13.3): a larger link number is a misread line."""
MAX_RECORDS = 400_000
"""A rack of 72 GPUs with 36 links and 40 lines on each is a quarter of this."""

COUNTERS: Mapping[str, str] = own_data("evidence/nvidia/names")["nvlink-counters"]
"""nvidia-smi's counter names (lower case, underscores) by the name the model uses; others keep their own."""

_LIKE = patterns("evidence/nvidia/lines", "nvlink")
_NOISE = ".[]…`~=-_*+ \t"
"""What a paste puts where lines were left out."""
NAMELESS = "no GPU header stands above this link"
_DECORATION = " \t#>`*\"'|"


class NvidiaSmiNvlink(Source):
    """Every option of `nvidia-smi nvlink`. Offers NVLink children of GPUs, and a note where there are none to show."""

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        """Empty output is what a node without NVLink hardware gives (exit status 0): no records."""
        parsed: Parsed[int] = Parsed()
        fill_lost(blob, draft)
        gpu = _asked_gpu(blob)
        inside = gpu is not None
        headers: list[tuple[int, str, Origin]] = []
        for number, line in blob.lines():
            if len(parsed.records) >= MAX_RECORDS:
                parsed.leave(blob, number, "", "more lines than any node has: the rest is left out")
                break
            text = line[:MAX_LINE].lstrip(_DECORATION).rstrip(" \t`\"'|,")
            bare = text.strip("[] ")
            if gpu is not None and (bare == "…" or (len(bare) > 2 and not bare.strip("."))):
                why = f"{blob.name} line {number} leaves lines out"
                draft.missing.append(NotObserved(f"some NVLinks of GPU{gpu}", why))
            elif not text.strip(_NOISE) or "nvidia-smi" in text:
                continue
            elif (header := _LIKE["gpu"].match(text)) is not None:
                gpu, inside = int(header[1]), True
                headers.append((gpu, header[3] or "", blob.origin(number, text)))
                draft.gpu(index=gpu).offer("name", reading(header[2].strip()), headers[-1][2])
            elif (link := _LIKE["link"].match(text)) is not None:
                why = _offer_link(draft, gpu, link, blob.origin(number, text))
                if why:
                    parsed.leave(blob, number, text, why)
                if why in ("", NAMELESS):
                    parsed.records.append(number)
            elif gpu is not None and (note := _note(text.lower())):
                draft.gpu(index=gpu).offer("nvlink_note", note, blob.origin(number, text))
                parsed.records.append(number)
            elif inside:
                parsed.leave(blob, number, text, "not a line of nvidia-smi nvlink")
        uuids = distinct_uuids((index, uuid) for index, uuid, _ in headers)
        for index, _, origin in headers:
            draft.gpu(index=index, uuid=uuids.get(index)).offer("uuid", uuids.get(index), origin)
        return parsed


def _offer_link(draft: NodeDraft, gpu: int | None, match: re.Match[str], origin: Origin) -> str:
    """Offer what a line says of a link; why it says nothing, "" where it does."""
    number, pair = int(match[1]), _link_words(match[2].strip())
    if number >= MAX_LINKS:
        return "no GPU has that many NVLinks"
    if pair is None:
        return "nothing known is said of this link"
    if gpu is None:
        return NAMELESS
    link = draft.gpu(index=gpu).child("nvlink", number)
    for name, value in pair[0].items():
        link.offer(name, value, origin)
    for name, count in pair[1].items():
        link.count(name, count, origin)
    return ""


def _asked_gpu(blob: Blob) -> int | None:
    """The GPU of `nvidia-smi nvlink ... -i N`: old drivers print no header then."""
    argv = blob.item.argv if blob.item else ()
    for flag, value in pairwise(argv):
        if flag in ("-i", "--id") and value.isascii() and value.isdigit() and len(value) <= 4:
            return int(value)
    return None


def _note(text: str) -> str:
    """What nvidia-smi says in place of the links of a GPU, "" in another line."""
    if "all links are inactive" in text:
        return "all links are inactive"
    return "not supported" if "nvlink" in text and "not supported" in text else ""


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


_Said = tuple[Mapping[str, Any], Mapping[str, int]]
"""Facts and counters."""


@lru_cache(maxsize=4096)
def _link_words(rest: str) -> _Said | None:
    """What the words behind `Link N:` say, or None when it is of no known shape. Nodes and links repeat the same few
    words by the thousand."""
    words = _LIKE["words"].fullmatch(rest)
    if words is None:
        return None
    if words["rate"]:
        rate = to_float(words["rate"], low=0.0, high=1e4)
        return ({"line_gbs": rate, "state": "active"} if rate else {}), {}
    if words["state"]:
        return {"state": words["state"].lower()}, {}
    if words["remote"]:
        bus_id = normalise_bus_id(words["remote"])
        kind = "switch" if bus_id == NVSWITCH_BUS_ID else None
        return None if bus_id is None else ({"remote_bus_id": bus_id, "remote_type": kind}, {})
    if words["ability"]:
        return {}, {}
    if "BER" in words["counter"].split() or reading(words["count"]) is None:
        return {}, {}
    name = _slug(f"{words['counter']} {words['unit'] or ''}")
    known = words["count"].isdecimal() and len(words["count"]) <= 20
    return ({}, {COUNTERS.get(name, name): int(words["count"])}) if known else None
