"""What a file looks like from its first and last bytes: a log worth reading, a dump for another reader, or neither.

By content, never by name: schedulers name logs as they like. It judges generously; whether there is an NCCL record in
a text is only known once all of it was read.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

from topodiag.evidence.flight.flight_recorder import looks_like_flight
from topodiag.evidence.nccl_log.input.json_lines import CODING as JSON_LINES
from topodiag.evidence.nccl_log.input.json_lines import looks_wrapped
from topodiag.evidence.nccl_log.input.streams import GZIP_MAGIC, ZSTD_MAGIC, Reading, text_of
from topodiag.evidence.registry import recognise

HEAD_BYTES = 1 << 16

_TEXT_CONTROL = bytes(range(9)) + b"\x0b" + bytes(range(0x0E, 0x1B)) + bytes(range(0x1C, 0x20)) + b"\x7f"
_MANY_CONTROL = 0.02
"""Share of control characters above which bytes are no text: a torn or NUL-padded log stays below, data do not."""

_BINARY = (
    (b"\x7fELF", "a program or a core file"),
    (b"PK\x03\x04", "a zip archive: unpack it first"),
    (b"\xfd7zXZ\x00", "compressed with xz: `xz -dc FILE | topodiag logs -`"),
    (b"BZh", "compressed with bzip2: `bzip2 -dc FILE | topodiag logs -`"),
    (b"\x04\x22\x4d\x18", "compressed with lz4: `lz4 -dc FILE | topodiag logs -`"),
    (b"SQLite format 3\x00", "a database (an nsys report?)"),
)
_PICKLE = re.compile(rb"\x80[\x02-\x05]")

_SCAN = "scan --from"
_TEXTS = (
    (
        re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--[^>]*-->\s*)*<system\b"),
        "an NCCL topology file",
        "topo show",
    ),
    (re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--[^>]*-->\s*)*<graphs\b"), "an NCCL graph file", ""),
    (
        re.compile(rb"^(?:# )?nThread \d+ nGpus \d+|^#[ \t]+size[ \t]+count[ \t]+type\b", re.M),
        "nccl-tests output",
        "bench",
    ),
    # src/ras/client_support.cc of NCCL 2.24 and later.
    (
        re.compile(rb"^NCCL version \S{1,40} compiled with CUDA ", re.M),
        "the status that NCCL's RAS gives (ncclras)",
        "",
    ),
    (re.compile(rb"^(?:[\w \"]{1,40},){1,30}\w{0,20}bus_?bw", re.M), "a table of benchmark results", ""),
    (re.compile(rb"\s*\{\s*\"schema\":[^{}\[\]]{0,200}\"tool\": \"topodiag-probe\b"), "the manifest of a bundle", ""),
    (re.compile(rb"\s*\{\s*\"schema_version\":"), "a result of topodiag (--format json)", ""),
)
_KINDS = (
    ("nvidia-smi", "nvidia-smi output"),
    ("ib", "output of an InfiniBand tool"),
    ("rdma", "output of an InfiniBand tool"),
    ("lspci", "lspci output"),
    ("ethtool", "ethtool output"),
    ("kernel-log", "a kernel log"),
    ("systemctl", "systemctl output"),
    ("sys-", "a capture of /sys"),
    ("nvml", "a capture of topodiag"),
)
"""Kinds of evidence of a node by the start of their names in evidence/registry.py."""


@dataclass(frozen=True, slots=True)
class Looks:
    """`kind`: log, flight, parquet, empty or other. `coding`: layers to take off. `what` and `command` for messages."""

    kind: str
    coding: tuple[str, ...] = ()
    what: str = ""
    command: str = ""


def looks(head: bytes, tail: bytes = b"") -> Looks:
    """Judge raw first bytes (HEAD_BYTES of them, or the whole file) and raw last bytes of a larger file."""
    coding: list[str] = []
    while (packer := _packed(head)) and len(coding) < 2:
        coding.append(packer)
        reading = Reading()
        head, tail = _unpacked(head, packer, reading), b""
        if not head and reading.notes:  # damaged, or a first block that ends later: reading all of it will tell
            return Looks("log", tuple(coding))
    if not head:
        return Looks("empty", tuple(coding), "empty")
    if head[257:262] == b"ustar":
        if b"manifest.json" in head[:100]:
            return Looks("other", (), "a bundle of topodiag", "scan --from")
        return Looks("other", (), "a tar archive: unpack it first")
    if head.startswith(b"PAR1"):
        return Looks("parquet", (), "a Parquet file")
    if looks_like_flight(head):
        return Looks("flight", tuple(coding), "a dump of torch's flight recorder")
    if _PICKLE.match(head):
        return Looks("other", (), "a pickle")
    for magic, what in _BINARY:
        if head.startswith(magic):
            return Looks("other", (), what)
    wide = _utf16(head)
    if wide:
        return Looks("log", (*coding, wide))
    if not _is_text(head) and b" NCCL " not in head and b" NCCL " not in tail:
        return Looks("other", (), "binary")
    if looks_wrapped(head):
        coding.append(JSON_LINES)
    return Looks("log", tuple(coding))


def wrong_file(head: bytes, coding: tuple[str, ...] = ()) -> tuple[str, str]:
    """What a text without any NCCL record looks like, and the command of topodiag that reads it, "" if none does."""
    if coding:
        head = b"".join(text_of(io.BytesIO(head), coding, Reading()))[:HEAD_BYTES]
    for pattern, what, command in _TEXTS:
        if pattern.search(head):
            return what, command
    for kind in recognise(head.decode("utf-8", "replace")):
        for start, what in _KINDS:
            if kind.startswith(start):
                return what, _SCAN
    if not head.strip():
        return "blank", ""
    if head.lstrip()[:1] in (b"{", b"["):
        return "JSON", ""
    return "", ""


def is_bundle(manifest: bytes) -> bool:
    """Whether the first bytes of a folder's manifest.json are those of a bundle, whose files are no logs."""
    return b'"topodiag-probe' in manifest[:4096]


def _packed(head: bytes) -> str:
    if head.startswith(GZIP_MAGIC):
        return "gzip"
    skippable = len(head) > 4 and head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5  # written by pzstd
    return "zstd" if head.startswith(ZSTD_MAGIC) or skippable else ""


def _unpacked(head: bytes, packer: str, reading: Reading) -> bytes:
    text = bytearray()
    for block in text_of(io.BytesIO(head), (packer,), reading):
        text += block
        if len(text) >= HEAD_BYTES:
            break
    return bytes(text[:HEAD_BYTES])


def _utf16(head: bytes) -> str:
    if head.startswith(b"\xff\xfe"):
        return "utf-16-le"
    if head.startswith(b"\xfe\xff"):
        return "utf-16-be"
    sample = head[: 4096 & ~1]
    half = len(sample) // 2
    if half >= 8:
        if sample[1::2].count(0) > 0.8 * half and sample[::2].count(0) < 0.1 * half:
            return "utf-16-le"
        if sample[::2].count(0) > 0.8 * half and sample[1::2].count(0) < 0.1 * half:
            return "utf-16-be"
    return ""


def _is_text(head: bytes) -> bool:
    """NULs at the start are the hole that rotation with copytruncate leaves; a few inside are torn writes."""
    body = head.lstrip(b"\0")
    if not body:
        return True
    control = len(body) - len(body.translate(None, _TEXT_CONTROL))
    return control <= max(8, _MANY_CONTROL * len(body)) and (control < 0.3 * len(body))
