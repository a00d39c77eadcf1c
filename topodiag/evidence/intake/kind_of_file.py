"""What a file looks like from its first and last bytes: its kinds of evidence, and the layers to take off before.

By content, never by name: schedulers name logs as they like. It judges generously; whether there is an NCCL record in
a text is only known once all of it was read.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from topodiag.evidence import marks
from topodiag.evidence.intake.genre import is_json, program_text, strings_of_binary
from topodiag.evidence.intake.one_file import HEAD_BYTES
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import DAMAGED, Kind
from topodiag.evidence.nccl_log.input.json_lines import JSON_LINES, WRAPPED_LINES, looks_wrapped
from topodiag.evidence.nccl_log.input.streams import Reading, packer_of, text_of
from topodiag.evidence.registry import HEADS, RECORDS, as_table, held, line_kinds, recognise_bare
from topodiag.lazy import dataclass, regex
from topodiag.words.own_data import own_data

if TYPE_CHECKING:
    from topodiag.evidence.live.step_forms import Forms

_TEXT_CONTROL = bytes(range(8)) + b"\x0b" + bytes(range(0x0E, 0x1B)) + bytes(range(0x1C, 0x20)) + b"\x7f"
_MANY_CONTROL = 0.02
_HOLE = bytes(16)
"""Share of control characters above which bytes are no text: a torn or NUL-padded log stays below, data do not."""

MOST_LAYERS = 6
"""Layers that are taken off a text."""
_ZIP = b"PK\x03\x04"
_TABLES = own_data("evidence/intake/kind_of_file")
_LIKE = {name: regex("|".join(patterns).encode(), re.M) for name, patterns in _TABLES["like"].items()}
_SAID_IN_LINES = frozenset({Kind.NODE_TEXT, Kind.JOB_OUTPUT, Kind.STEPS, Kind.TEXT})
"""Kinds of which a text is for the words of its lines, as the source of a program has them too."""
_WRITTEN_IN_SOURCE = frozenset({"settings", "nccl-params"})
"""Sources of what source files set: that is so, whoever wrote it."""


@dataclass(frozen=True, slots=True)
class FileKind:
    """`kinds`: all that it looks like, the most telling first. `coding`: layers to take off. `sources`: readers of a
    node's evidence. `what`: words that are more exact than those of the kind. `packed`: a tar or a zip archive, whose
    `first` member is named. `head`: the first bytes with the layers taken off, where there are such."""

    kinds: tuple[Kind, ...]
    coding: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    what: str = ""
    packed: str = ""
    first: str = ""
    head: bytes = b""

    @property
    def kind(self) -> Kind:
        return self.kinds[0]


def kind_of_file(head: bytes, tail: bytes = b"", *, name: str = "", quick: bool = False) -> FileKind:
    """Judge raw first bytes (HEAD_BYTES of them, or the whole file) and raw last bytes of a larger file.

    `quick` asks of a text with NCCL's records nothing more: whoever reads logs alone need not know what else is in it.
    """
    coding: list[str] = []
    while (packer := packer_of(head)) and len(coding) < 2:
        coding.append(packer)
        reading = Reading()
        head, tail = _unpacked(head, packer, reading), b""
        if not head and reading.notes:  # damaged, or a first block that ends later: reading all of it will tell
            return FileKind((Kind.TEXT,), tuple(coding), what=DAMAGED)
    if not head:
        return FileKind((Kind.EMPTY,), tuple(coding))
    binary = _binary(head, tuple(coding))
    if binary is not None:
        return binary
    from topodiag.evidence.nccl_log.input.wrapped_lines import dress_of, looks_broken  # noqa: PLC0415 - not for archives

    wide = _utf16(head)
    if wide:
        coding.append(wide)
        head = _read_as(wide, head[: len(head) & ~1])
    elif not _is_text(head) and not _speaks(head, tail):
        return FileKind((Kind.BINARY,), tuple(coding))
    if head.startswith(codecs.BOM_UTF8):
        coding.append("utf-8-sig")
        head = head[len(codecs.BOM_UTF8) :]
    for layer in dress_of(head):
        coding.append(layer)
        head, tail = _read_as(layer, head), _read_as(layer, tail)
    head, tail = _without_labels(head, tail, coding)
    if looks_wrapped(head):
        coding.append(JSON_LINES)
        head = _read_as(JSON_LINES, head)[:HEAD_BYTES] or head
    kinds, sources = text_kinds(head, tail, name=name, quick=quick)
    if Kind.NCCL_LOG in kinds and not tail and len(head) < HEAD_BYTES and looks_broken(head):
        coding.append(WRAPPED_LINES)
        head = _read_as(WRAPPED_LINES, head)
    what = marks.unread(head.decode("utf-8", "replace")) if kinds in ((Kind.TEXT,), (Kind.JSON,)) else ""
    return FileKind(kinds, tuple(coding), sources, what, head=head if coding else b"")


def _without_labels(head: bytes, tail: bytes, coding: list[str]) -> tuple[bytes, bytes]:
    """Both ends without the labels that all lines share, which join `coding`. Of a job's lines those stay that say a
    rank, a host or a time: their readers know such labels."""
    from topodiag.evidence.nccl_log.input.wrapped_lines import OF_CONTAINERS, label_of  # noqa: PLC0415 - not for archives

    while len(coding) < MOST_LAYERS and (layer := label_of(head, not tail and len(head) < HEAD_BYTES)):
        if layer not in OF_CONTAINERS and (_holds_record(head) or _holds_job_lines(head) or step_kinds(head)):
            break
        coding.append(layer)
        head, tail = _read_as(layer, head), _read_as(layer, tail)
    return head, tail


def text_kinds(
    head: bytes, tail: bytes = b"", *, name: str = "", quick: bool = False
) -> tuple[tuple[Kind, ...], tuple[str, ...]]:
    """The kinds of a text, and its readers among the sources of a node's evidence."""
    logged = _holds_record(head) or _holds_record(tail)
    if logged and quick:
        return (Kind.NCCL_LOG, *_diagnosed(head, tail), *step_kinds(head, tail)), ()
    if not head.strip() and not tail.strip():
        return (Kind.BLANK,), ()
    if strings_of_binary(head.decode("utf-8", "replace")):
        return (Kind.PROGRAM,), ()
    diagnosed = _diagnosed(head, tail)
    if logged:
        head = between_records(head)
    kinds = _begins_as(head, tail) + diagnosed
    text = Blob(name, head).text
    sources, _ = recognise_bare(text)
    kinds += kinds_of_sources(sources)
    if sources in (("ib-links",), ("ib-net",)):
        kinds.append(Kind.CLUSTER)  # how the links are, and what they join
    if logged:
        kinds.append(Kind.NCCL_LOG)
    elif _may_hold_job_lines(kinds) and (_holds_job_lines(head) or (tail and _holds_job_lines(tail))):
        kinds.append(Kind.JOB_OUTPUT)
        if marks.is_pods(text):
            kinds.append(Kind.PODS)
    if set(kinds) <= {Kind.NCCL_LOG, Kind.JOB_OUTPUT, Kind.NODE_TEXT}:
        kinds += step_kinds(head, tail)
    if not kinds:
        kind, sources = _by_form(text)
        kinds.append(kind)
    if (
        set(kinds) <= _SAID_IN_LINES
        and not set(sources) & _WRITTEN_IN_SOURCE
        and program_text(text, tail.decode("utf-8", "replace"))
    ):
        return (Kind.PROGRAM,), ()
    return tuple(dict.fromkeys(kinds)), sources


def _by_form(text: str) -> tuple[Kind, tuple[str, ...]]:
    """What a text is whose words say nothing, and its readers: of a cluster, a layout, JSON, or the last ones asked."""
    kind = marks.cluster_format(text) or marks.layout_format(text)
    if kind is not None:
        return kind, ()
    sources = as_table(text)
    return (Kind.NODE_TEXT if sources else Kind.JSON if is_json(text) else Kind.TEXT), sources


def between_records(head: bytes) -> bytes:
    """What stands between the records of NCCL: in most logs nothing, and no other reader need look at them."""
    return b"\n".join(line for line in head.split(b"\n") if b" NCCL " not in line)


def _begins_as(head: bytes, tail: bytes) -> list[Kind]:
    """What a text is by its first lines; by its last ones where rotation left NULs or half a record before them."""
    return [shown.kind for shown in HEADS.values() if shown.shows_in(head)] + list(line_kinds(tail))


def step_kinds(head: bytes, tail: bytes = b"", forms: Forms | None = None) -> tuple[Kind, ...]:
    """Whether the steps of a training stand in a text: NCCL's lines come first, the steps after them."""
    from topodiag.evidence.live.step_times import holds_steps  # noqa: PLC0415 - not for archives

    return (Kind.STEPS,) if holds_steps(head, forms) or holds_steps(tail, forms) else ()


def _diagnosed(head: bytes, tail: bytes) -> list[Kind]:
    """Whether NCCL's diagnostics stand in a text: rank 0 prints them between its own lines, at any time."""
    shown = HEADS["diagnostics"]
    return [shown.kind] if shown.shows_in(head) or shown.shows_in(tail) else []


def _may_hold_job_lines(kinds: Collection[Kind]) -> bool:
    """XML, tables and files of topodiag's own hold no line of a job."""
    return set(kinds) <= {Kind.NODE_TEXT, Kind.NCCL_TESTS, Kind.RAS, Kind.STACKS, Kind.DIAGNOSTICS}


def speaking_kinds(block: bytes) -> Iterator[Kind]:
    """Whether lines of NCCL or of a job stand in a block."""
    if _holds_record(block):
        yield Kind.NCCL_LOG
    elif _holds_job_lines(block):
        yield Kind.JOB_OUTPUT


def _holds_record(data: bytes) -> bool:
    return not held(data).isdisjoint(RECORDS) and _LIKE["record"].search(data) is not None


def _holds_job_lines(data: bytes) -> bool:
    from topodiag.evidence.nccl_log.grammar.spoken import holds_job_lines  # noqa: PLC0415 - not for archives

    return holds_job_lines(data)


def kinds_of_sources(sources: Collection[str]) -> Iterator[Kind]:
    """What a text is whose readers are these sources of a node's evidence."""
    if "hwloc-xml" in sources:
        yield Kind.HWLOC
    if "nccl-xml" in sources:
        yield Kind.TOPOLOGY
    if set(sources) - {"hwloc-xml", "nccl-xml"}:
        yield Kind.NODE_TEXT


def _binary(head: bytes, coding: tuple[str, ...]) -> FileKind | None:
    """What is of one kind by its first bytes and read by no other reader; None for what may be a text of any kind."""
    if head[257:262] == b"ustar":
        first = head[:100].partition(b"\0")[0].decode("utf-8", "replace").removeprefix("./")
        return FileKind((Kind.ARCHIVE,), coding, packed="tar", first=first, head=head)
    if head.startswith(_ZIP):
        return FileKind((Kind.ARCHIVE,), coding, packed="zip")
    kind = Kind.FLIGHT if marks.looks_like_flight(head) else Kind.PICKLE if marks.PICKLED.match(head) else None
    kind = Kind.PARQUET if head.startswith(b"PAR1") else Kind.SAVED_FACTS if head.startswith(marks.FACTS_MARK) else kind
    kind = kind or (Kind.RESULT if _LIKE["own"].match(head) else None)
    if kind is not None:
        return FileKind((kind,), coding)
    whats = (what for magic, what in _TABLES["binary"].items() if head.startswith(magic.encode()))
    return next((FileKind((Kind.BINARY,), coding, what=what) for what in whats), None)


def _unpacked(head: bytes, packer: str, reading: Reading) -> bytes:
    text = bytearray()
    for block in text_of(io.BytesIO(head), (packer,), reading):
        text += block
        if len(text) >= HEAD_BYTES:
            break
    return bytes(text[:HEAD_BYTES])


def _read_as(layer: str, head: bytes) -> bytes:
    return b"".join(text_of(io.BytesIO(head), (layer,), Reading()))


def _utf16(head: bytes) -> str:
    sample = head[: 4096 & ~1]
    half = len(sample) // 2
    for name, mark, high in (("utf-16-le", b"\xff\xfe", 1), ("utf-16-be", b"\xfe\xff", 0)):
        wide = half >= 8 and sample[high::2].count(0) > 0.8 * half and sample[1 - high :: 2].count(0) < 0.1 * half
        if wide or head.startswith(mark):
            return name
    return ""


def _speaks(head: bytes, tail: bytes) -> bool:
    """Whether bytes that are no clean text hold lines of NCCL or of its Inspector all the same."""
    return b" NCCL " in head or b" NCCL " in tail or Kind.INSPECTOR in line_kinds(tail)


def _is_text(head: bytes) -> bool:
    """Long runs of NULs are holes: of rotation with copytruncate at the start, inside of a file that several programs
    write over a network. A few NULs are torn writes."""
    body = head.lstrip(b"\0").replace(_HOLE, b"")
    if not body:
        return True
    control = len(body) - len(body.translate(None, _TEXT_CONTROL))
    return control <= max(8, _MANY_CONTROL * len(body)) and (control < 0.3 * len(body))
