"""`nvidia-smi nvlink -s, -e, -c, -R, -p, -gt`: state, rate, far end, abilities and counters of each NVLink.

One line-oriented reader for all options: every line says which link it is of, so the text needs no mode.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from itertools import pairwise

from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source, reading, to_float, to_int
from topodiag.evidence.nvidia.nvidia_words import distinct_uuids, fill_lost
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import NVSWITCH_BUS_ID, normalise_bus_id
from topodiag.model.provenance import NotObserved
from topodiag.model.topics import Topic

MAX_LINKS = 64
"""Above NVML_NVLINK_MAX_LINKS (36 in nvml.h 13.3): a larger link number is a misread line."""
MAX_LINE = 1024
MAX_RECORDS = 400_000
"""A rack of 72 GPUs with 36 links and 40 lines on each is a quarter of this."""

COUNTERS = {
    "replay_errors": "replay",
    "recovery_errors": "recovery",
    "crc_errors": "crc",
    "crc_flit_errors": "crc_flit",
    "crc_data_errors": "crc_data",
    "ecc_errors": "ecc",
    "ecc_data_errors": "ecc",
    "malformed_packet_errors": "malformed_packet",
    "buffer_overrun_errors": "buffer_overrun",
    "rx_errors": "rx_errors",
    "rx_remote_errors": "rx_remote",
    "rx_general_errors": "rx_general",
    "local_link_integrity_errors": "local_integrity",
    "tx_discards": "tx_discards",
    "link_recovery_successful_events": "link_recovery_successful",
    "link_recovery_failed_events": "link_recovery_failed",
    "link_recovery_events": "link_recovery",
    "total_link_recovery_events": "link_recovery",
    "effective_errors": "effective_errors",
    "symbol_errors": "symbol_errors",
}
"""nvidia-smi's counter names (lower case, underscores) by the name the model uses; others keep their own."""

_GPU = regex(
    r"GPU\s{1,4}([0-9]{1,4}):\s{0,4}([^\n(]{0,120}?(?:\([^()]{0,40}\)[^\n(]{0,40})?)\s{0,4}(?:\(UUID:\s{0,4}([^()\s]{1,64})\)?)?$"
)
_LINK = regex(r"Link\s{1,4}([0-9]{1,4})\s{0,4}[:,]\s{0,8}(.{1,200})$")
_RATE = regex(r"[0-9]{1,6}(?:\.[0-9]{1,6})?\s{0,4}GB/s$")
_STATE = regex(r"<?\s?(inactive|active|sleep|disabled)\s?>?$", re.IGNORECASE)
_REMOTE = regex(r"Remote Device\s{1,4}([0-9A-Fa-f:.]{7,20})(?::\s{0,4}Link\s{1,4}([0-9]{1,4}))?$", re.IGNORECASE)
_BUS = regex(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]$")
_ABILITY = regex(r"([A-Za-z][A-Za-z0-9 ]{2,60}?)(?:\s(?:is|are))?(?:\ssupported)?:\s{0,4}(true|false)$", re.IGNORECASE)
_COUNT = regex(r"([A-Za-z][A-Za-z0-9 /:_\-]{0,60}?)\s{0,4}:\s{0,4}(\S{1,40})(?:\s{1,4}(KiB|B|bytes|packets))?$")
_BER = regex(r"\bBER\b", re.IGNORECASE)
_SENTENCE = regex(
    r"(?:NVML:\s{0,4})?(.{0,80}?(?:all links are inactive|nvlink.{0,40}not supported).{0,40})$", re.IGNORECASE
)
_NVML = regex(r"NVML:\s{0,4}(\S.{0,160})$")
_ELISION = regex(r"\[?\s?(?:\.{3,6}|…)\s?\]?$")
_PASTE_NOISE = regex(r"[.\[\]…`~=\-_*+\s]*$")
_DECORATION = " \t#>`*\"'|"


class What(Enum):
    """What one line says of a link."""

    STATE = "state"
    RATE = "rate"
    REMOTE = "remote"
    ABILITY = "ability"
    COUNTER = "counter"
    BER = "ber"


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
    """One line about one link; `gpu` is None where neither the text nor the command says whose it is.

    `name` is the ability or the counter in the model's spelling; `value` the rest as it stands, `None` for no reading.
    """

    gpu: int | None
    link: int
    what: What
    name: str
    value: str | None
    line: int
    text: str
    remote_link: int | None = None


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
            parsed.lines = number
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
            elif gpu is not None and (note := _SENTENCE.match(text) or _NVML.match(text)) is not None:
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
        made = _detail(gpu, link, rest, number, text)
        if made is None:
            parsed.leave(blob, number, text, "nothing known is said of this link")
        else:
            if gpu is None:
                parsed.leave(blob, number, text, "no GPU header stands above this link")
            parsed.records.append(made)

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
                _fill_link(blob, record, draft.gpu(index=record.gpu).child("nvlink", record.link))


def _asked_gpu(blob: Blob) -> int | None:
    """The GPU of `nvidia-smi nvlink ... -i N`: old drivers print no header then."""
    argv = blob.item.argv if blob.item else ()
    for flag, value in pairwise(argv):
        if flag in ("-i", "--id") and value.isascii() and value.isdigit() and len(value) <= 4:
            return int(value)
    return None


def _plain_note(sentence: str) -> str:
    if "all links are inactive" in sentence.lower():
        return "all links are inactive"
    if "not supported" in sentence.lower():
        return "not supported"
    return sentence.strip().rstrip(".")


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _detail(gpu: int | None, link: int, rest: str, number: int, text: str) -> LinkReading | None:
    """What stands behind `Link N:`, or None when it is of no known shape."""
    said = _said(rest)
    if said is None:
        return None
    what, name, value, remote_link = said
    return LinkReading(gpu, link, what, name, value, number, text, remote_link)


@lru_cache(maxsize=4096)
def _said(rest: str) -> tuple[What, str, str | None, int | None] | None:
    """What the words behind `Link N:` say: kind, name, value, and the link at the far end. Nodes and links repeat the
    same few words by the thousand."""
    if _RATE.match(rest):
        return What.RATE, "line_gbs", rest, None
    if (state := _STATE.match(rest)) is not None:
        return What.STATE, "state", state[1].lower(), None
    if (remote := _REMOTE.match(rest)) is not None:
        bus_id = normalise_bus_id(remote[1])
        far = int(remote[2]) if remote[2] else None
        return None if bus_id is None else (What.REMOTE, "remote", bus_id, far)
    if _BUS.match(rest):
        bus_id = normalise_bus_id(rest)
        return None if bus_id is None else (What.REMOTE, "remote", bus_id, None)
    if (ability := _ABILITY.match(rest)) is not None:
        return What.ABILITY, _slug(ability[1]), ability[2].lower(), None
    if (count := _COUNT.match(rest)) is not None:
        name = _slug(count[1])
        if _BER.search(count[1]):
            return What.BER, name, reading(count[2]), None
        if count[3]:
            name = f"{name}_{count[3].lower()}"
        value = count[2] if re.fullmatch(r"[0-9]{1,20}", count[2]) else None
        if value is not None or reading(count[2]) is None:
            return What.COUNTER, COUNTERS.get(name, name), value, None
    return None


def _fill_link(blob: Blob, record: LinkReading, link: Entity) -> None:
    origin = blob.origin(record.line, record.text)
    if record.what is What.RATE:
        rate = to_float(record.value, low=0.0, high=1e4)
        link.offer("line_gbs", rate if rate else None, origin)
        link.offer("state", "active" if rate else None, origin)
    elif record.what is What.STATE:
        link.offer("state", record.value, origin)
    elif record.what is What.REMOTE:
        link.offer("remote_bus_id", record.value, origin)
        link.offer("remote_link", record.remote_link, origin)
        if record.value == NVSWITCH_BUS_ID:
            link.offer("remote_type", "switch", origin)
    elif record.what is What.ABILITY and record.name == "p2p":
        link.offer("p2p_supported", record.value == "true", origin)
    elif record.what is What.COUNTER:
        link.count(record.name, to_int(record.value, low=0), origin)
