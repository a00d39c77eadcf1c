"""What stands in a text beyond its first and last bytes: no window decides what a file is. Standard input can be read
once, so what was looked at is put back.

Each block is searched once for the literals of all formats. Only a format whose literal stands in a block is asked, and
only until it is found, so that a text of no known kind costs the one pass.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, BinaryIO

from topodiag.evidence.intake import kind_of_file
from topodiag.evidence.intake.kind_of_file import FileKind
from topodiag.evidence.intake.one_file import Rewound
from topodiag.evidence.intake.pieces import STDIN_NAME
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live.step_forms import Forms
from topodiag.evidence.nccl_log.input.streams import Reading, text_of
from topodiag.evidence.nccl_log.input.wrapped_lines import COLOURS
from topodiag.evidence.registry import IN_FRONT, RECORDS, held, in_order, line_kinds, possible, source
from topodiag.evidence.sentence_source import speaks
from topodiag.words.colours import without_colours

BLOCK = 1 << 16
"""Bytes that are looked at together: formats are known within so many."""
MOST_TRIES = 64
"""Blocks in which a format's literal stands and its head does not: a word that is common in this text says nothing."""
SENTENCES = "sentences"
"""The source of the catalogue, whose own pass over a block costs as much as that for the formats."""
MOST_STEP_TRIES = 16
"""Blocks that are asked for the steps of a training: a training shows them within the first MiB, or at its end."""
OF_LINES = frozenset({
    Kind.TEXT, Kind.NODE_TEXT, Kind.JOB_OUTPUT, Kind.NCCL_LOG, Kind.NCCL_TESTS, Kind.STEPS, Kind.STACKS,
    Kind.DIAGNOSTICS, Kind.RAS,
})  # fmt: skip
"""Kinds of texts into which somebody may have written something else."""


def surveyed(path: str, seen: FileKind) -> FileKind:
    """What was seen of a file by its ends, with what stands between them."""
    with open(path, "rb") as stream:
        return survey_of(stream, path, seen) if seen.coding else survey(_data_of(stream), path, seen)


def survey_of(stream: Any, name: str, seen: FileKind) -> FileKind:
    """What was seen of a text by its ends, with what this stream of it holds beside."""
    return survey(text_of(stream, seen.coding, Reading()), name, seen)


def _data_of(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes of a plain file without its holes: copytruncate leaves one as long as all that was written before."""
    at = 0
    while True:
        try:
            at = os.lseek(stream.fileno(), at, os.SEEK_DATA)
        except OSError:  # nothing but a hole, or nothing
            return
        end = os.lseek(stream.fileno(), at, os.SEEK_HOLE)
        stream.seek(at)
        while at < end and (block := stream.read(min(1 << 20, end - at))):
            at += len(block)
            yield block
        if at < end:  # cut while it was read
            return


def survey(blocks: Iterable[bytes], name: str, seen: FileKind) -> FileKind:
    """What was seen of a text by its ends, with what all of its blocks hold beside."""
    if not set(seen.kinds) <= OF_LINES:
        return seen
    kinds, sources, tries, coding = list(seen.kinds), list(seen.sources), Counter[str](), seen.coding
    forms = Forms()
    for block in _of_lines(blocks):
        if not block.strip(b"\0"):
            continue  # a hole that somebody packed
        if b"\x1b" in block and b"\x1b[" in block:  # one byte is found fifteen times as fast as two
            block = without_colours(block)
            coding = coding if COLOURS in coding else (*coding, COLOURS)
        sources += _readers(name, block, sources, tries)
        kinds += line_kinds(block, anywhere=True)
        if not {Kind.NCCL_LOG, Kind.JOB_OUTPUT} & set(kinds):
            kinds += kind_of_file.speaking_kinds(block)
        if Kind.STEPS not in kinds and tries[Kind.STEPS.value] < MOST_STEP_TRIES:
            tries[Kind.STEPS.value] += 1
            kinds += kind_of_file.step_kinds(block, forms=forms)
    kinds += kind_of_file.kinds_of_sources(sources)
    kinds = [kind for kind in dict.fromkeys(kinds) if kind is not Kind.TEXT] or [Kind.TEXT]
    return replace(seen, kinds=tuple(kinds), coding=coding, sources=in_order(sources))


def sources_in(blob: Blob, known: Sequence[str]) -> tuple[str, ...]:
    """The sources that read a text, wherever in it: those that are known, and what `survey` finds of others."""
    sources, tries = list(known), Counter[str]()
    for block in _of_lines((blob.data,)):
        sources += _readers(blob.name, without_colours(block), sources, tries)
    return in_order(sources)


def _readers(name: str, block: bytes, known: list[str], tries: Counter[str]) -> Iterator[str]:
    """The sources that read this block, of those that are not known yet. NCCL's own lines are none of theirs."""
    data = Blob(name, kind_of_file.between_records(block) if RECORDS[0] in held(block) else block).plain
    waiting = [kind for kind in possible(data) - IN_FRONT if kind not in known and tries[kind] < MOST_TRIES]
    text = data.decode("utf-8", "replace") if waiting else ""
    for kind in sorted(waiting):
        tries[kind] += 1
        reader = source(kind)
        if reader is not None and reader.recognises(text):
            yield kind
    if SENTENCES not in known and speaks(data):
        yield SENTENCES


def _of_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks of whole lines, each of about BLOCK bytes; a longer line is cut."""
    rest = b""
    for block in blocks:
        data = rest + block
        at = 0
        while len(data) - at > BLOCK:
            end = data.rfind(b"\n", at, at + BLOCK) + 1 or at + BLOCK
            yield data[at:end]
            at = end
        rest = data[at:]
    if rest:
        yield rest


MOST_IN_MEMORY = 64 << 20
"""Bytes of standard input that are kept in memory; what is larger goes to a file without a name below TMPDIR."""


def surveyed_stream(stream: Rewound, seen: FileKind) -> tuple[Rewound, FileKind]:
    """All of standard input, kept for its reader, and what was seen of it: it can be read once."""
    kept: BinaryIO = tempfile.SpooledTemporaryFile(MOST_IN_MEMORY)  # type: ignore[assignment]  # noqa: SIM115
    while block := stream.read(1 << 20):
        kept.write(block)
    kept.seek(0)
    seen = survey_of(kept, STDIN_NAME, seen)
    kept.seek(0)
    return Rewound(b"", kept, owned=True), seen
