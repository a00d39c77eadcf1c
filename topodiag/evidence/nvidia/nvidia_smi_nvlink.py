"""`nvidia-smi nvlink -s, -e, -c, -R, -p, -gt`: state, rate, far end, abilities and counters of each NVLink.

One line-oriented reader for all options: every line says which link it is of, so the text needs no mode.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from topodiag.evidence.interface import MAX_LINE, Blob, reading, to_float
from topodiag.evidence.nvidia.nvidia_words import as_tag, distinct_uuids, fill_lost
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.model.busid import NVSWITCH_BUS_ID, normalise_bus_id
from topodiag.model.provenance import NotObserved
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
_DECORATION = " \t#>`*\"'|"


class NvidiaSmiNvlink(OfPage):
    """Every option of `nvidia-smi nvlink`. Offers NVLink children of GPUs, and a note where there are none to show."""

    def read_page(self, page: Page) -> None:
        """Empty output is what a node without NVLink hardware gives (exit status 0): no records."""
        blob, draft = page.blob, page.draft
        fill_lost(blob, draft)
        gpu = _asked_gpu(blob)
        inside = gpu is not None
        headers: list[tuple[int, str, Line]] = []
        for number, whole in blob.lines():
            line = Line(page, number, whole[:MAX_LINE].lstrip(_DECORATION).rstrip(" \t`\"'|,"))
            if len(page.parsed.records) >= MAX_RECORDS:
                line.leave("more lines than any node has: the rest is left out")
                break
            text = line.text
            bare = text.strip("[] ")
            if gpu is not None and (bare == "…" or (len(bare) > 2 and not bare.strip("."))):
                why = f"{blob.name} line {number} leaves lines out"
                draft.missing.append(NotObserved(f"some NVLinks of GPU{gpu}", why))
            elif not text.strip(_NOISE) or "nvidia-smi" in text:
                continue
            elif (header := _LIKE["gpu"].match(text)) is not None:
                gpu, inside = int(header[1]), True
                headers.append((gpu, header[3] or "", line))
                draft.gpu(index=gpu).offer("name", reading(header[2].strip()), line.origin)
            elif (link := _LIKE["link"].match(text)) is not None:
                _offer_link(line, gpu, link)
            elif gpu is not None and (note := _note(text.lower())):
                line.put(draft.gpu(index=gpu), nvlink_note=note)
            elif inside:
                line.leave("not a line of nvidia-smi nvlink")
        uuids = distinct_uuids((index, uuid) for index, uuid, _ in headers)
        for index, _, line in headers:
            draft.gpu(index=index, uuid=uuids.get(index)).offer("uuid", uuids.get(index), line.origin)


def _offer_link(line: Line, gpu: int | None, match: re.Match[str]) -> None:
    """Offer what a line says of a link."""
    number, pair = int(match[1]), _link_words(match[2].strip())
    if number >= MAX_LINKS:
        line.leave("no GPU has that many NVLinks")
    elif pair is None:
        line.leave("nothing known is said of this link")
    elif gpu is None:
        line.page.mark(line.number)
        line.leave("no GPU header stands above this link")
    else:
        link = line.page.draft.gpu(index=gpu).child("nvlink", number)
        line.put(link, **pair[0])
        for name, count in pair[1].items():
            line.count(link, name, count)


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
    name = as_tag(f"{words['counter']} {words['unit'] or ''}")
    known = words["count"].isdecimal() and len(words["count"]) <= 20
    return ({}, {COUNTERS.get(name, name): int(words["count"])}) if known else None
