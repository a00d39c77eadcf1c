"""`dcgmi nvlink --link-status`: one letter for each NVLink of each GPU; `dcgmi nvlink --errors`: its counters.

    GPUs:
        gpuId 0:
            U U U U U U D U U U U U U U U U U U
    Key: Up=U, Down=D, Disabled=X, Not Supported=_

    | GPU 4                                                                        |
    | Link 3                      | Replay Error              30112                |

A card without a bridge has all links down. The links of NVSwitches are left out: no other source numbers them so.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.lazy import dataclass, regex
from topodiag.model.topics import Topic

MAX_LINE = 400
MAX_INDEX = 255
MAX_RECORDS = 10_000
_MARK = regex(
    r"^[ \t>|]{0,20}\| {1,10}NvLink Link Status {1,10}\|\s*$|^[ \t>|]{0,20}gpuId [0-9]{1,3}:\s*$"
    r"|^[ \t>]{0,20}\| {1,10}NVLINK Error Counts {1,80}\|\s*$",
    re.MULTILINE,
)
_GPU = regex(r"gpuId ([0-9]{1,3}):\Z")
_ERRORS_OF = regex(r"GPU ([0-9]{1,3})\Z")
_ERRORS = regex(
    r"Link ([0-9]{1,2}) {1,40}\| {1,10}(CRC FLIT|CRC Data|Replay|Recovery) Errors? {0,40}\|? {0,40}([0-9]{1,15})\Z"
)
_COUNTERS = {"CRC FLIT": "crc_flit", "CRC Data": "crc_data", "Replay": "replay", "Recovery": "recovery"}
_LETTERS = regex(r"[UDX_](?: [UDX_]){0,63}\Z")
_STATES = {"U": "active", "D": "inactive"}
"""In the model's words. Disabled, and not supported, are no state of a link that should be up."""


@dataclass(frozen=True, slots=True)
class GpuLinks:
    """A GPU by DCGM's number, and the letters of its links in their order, or a link with one of its counters."""

    index: int
    letters: tuple[str, ...]
    line: int
    text: str
    count: tuple[int, str, int] | None = None


class DcgmNvlink(Source[GpuLinks]):
    """States of NVLinks by `dcgmi nvlink`."""

    kind = "dcgm-nvlink"
    speaks_of = frozenset({Topic.NVLINKS})
    trust = 60

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[GpuLinks]:
        parsed: Parsed[GpuLinks] = Parsed()
        index = -1
        for number, whole in blob.lines():
            parsed.lines = number
            text = whole[:MAX_LINE].strip(" \t>|")
            found = _GPU.match(text) or _ERRORS_OF.match(text)
            errors = _ERRORS.match(text) if index >= 0 else None
            if errors is not None:
                count = int(errors[1]), _COUNTERS[errors[2]], int(errors[3])
                if len(parsed.records) < MAX_RECORDS:
                    parsed.records.append(GpuLinks(index, (), number, text, count))
            elif found is not None:
                index = int(found[1]) if int(found[1]) <= MAX_INDEX else -1
            elif index >= 0 and _LETTERS.match(text) and len(parsed.records) < MAX_RECORDS:
                parsed.records.append(GpuLinks(index, tuple(text.split()), number, text))
                index = -1
            elif text.strip("+-= |"):
                index = -1
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[GpuLinks], draft: NodeDraft) -> None:
        for record in parsed.records:
            gpu = draft.gpu(index=record.index)
            origin = blob.origin(record.line, record.text)
            if record.count is not None:
                link, name, value = record.count
                gpu.child("nvlink", link).count(name, value, origin)
            for link, letter in enumerate(record.letters):
                if letter in _STATES:
                    gpu.child("nvlink", link).offer("state", _STATES[letter], origin)
