"""The plain extractor: line by line, with nothing clever. It defines what the fast one must give."""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar.grammar import parse
from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.evidence.nccl_log.grammar.prefix import Record, application, clean, records, torch_version
from topodiag.evidence.nccl_log.grammar.stated import stated_of
from topodiag.evidence.nccl_log.plain.collect import NOBODY, Collector
from topodiag.evidence.nccl_log.tables.facts import Facts

_POINTERS = compiled(r"0x[0-9a-fA-F]+")
_HEXES = compiled(r"\b(?=[a-fA-F]*\d)[0-9a-fA-F]{4,}\b")
_NUMBERS = compiled(r"\d+")
_SHAPE, _EXAMPLE = 200, 1000


def extract_plain(data: bytes, file: int, base: int) -> Facts:
    """Facts of whole lines of a file; `base` is the offset of `data` in the file."""
    collector = Collector(file, base)
    offset, lines = base, 0
    for raw in _lines(data):
        lines += 1
        read_line(collector, raw, offset, lines)
        offset += len(raw)
    return collector.facts(len(data), lines)


def _lines(data: bytes) -> list[bytes]:
    """Lines end at a newline only: a carriage return is a progress bar's."""
    *whole, rest = data.split(b"\n")
    lines = [line + b"\n" for line in whole]
    return [*lines, rest] if rest else lines


def read_line(collector: Collector, raw: bytes, offset: int, line: int) -> None:
    """One physical line: its records, or what an application says about NCCL."""
    text = clean(raw)
    several = False
    for record in records(text):
        several = True
        read_record(collector, record, offset, line)
    if not several:
        said = [row for row in (application(text), torch_version(text)) if row is not None] + stated_of(text)
        if said:
            collector.add(NOBODY, offset, line, said)


def read_record(collector: Collector, record: Record, offset: int, line: int) -> None:
    rows = parse(record.level, record.message)
    collector.records += 1
    key = (record.host, record.pid, record.tid, record.dev)
    if rows is None:
        rows = [("unread", {"shape": shape(record.message), "text": record.message[:_EXAMPLE]})]
    else:
        collector.understood += 1
    for name, columns in rows:
        if name == "event":
            columns["label"] = record.label
            columns["ts"] = record.ts
            if record.place:
                columns["place"] = record.place
        elif name == "init":
            columns["ts"] = record.ts
    collector.thread(key)
    collector.add(key, offset, line, rows)


def shape(message: str) -> str:
    """The message with pointers and longer hex numbers as x, other numbers as #, and not too long."""
    return _NUMBERS.sub("#", _HEXES.sub("x", _POINTERS.sub("x", message[:1000])))[:_SHAPE]
