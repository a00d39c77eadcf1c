"""`read_file`: a topology file with the tree that is in it, and which NCCL versions refuse it, where and why."""

from __future__ import annotations

from bisect import bisect_right

from topodiag.evidence.nccl_xml.lexer import shown
from topodiag.evidence.nccl_xml.limits import MAX_FILE_BYTES, RULES
from topodiag.evidence.nccl_xml.load import Loaded, load
from topodiag.model.errors import InputError
from topodiag.model.nccl_tree import Element, NcclFile, Refusal
from topodiag.model.provenance import MAX_QUOTE, Origin


def read_file(data: bytes, name: str) -> NcclFile:
    """Read a topology file. Raises InputError only for what is too large or too deep for any machine."""
    if len(data) > MAX_FILE_BYTES:
        raise InputError(name, f"is larger than {MAX_FILE_BYTES >> 20} MiB", hint="refused: is it a topology file?")
    readings = [load(data, name, rules) for rules in RULES]
    places = _Places(data)
    refusals: list[Refusal] = []
    notes: list[Refusal] = []
    for rules, loaded in zip(RULES, readings, strict=True):
        if loaded.refused is not None:
            refused = loaded.refused
            _add(refusals, places.refusal(refused.rule, refused.words, refused.offset, rules.since, rules.until))
        for note in loaded.notes:
            _add(notes, places.refusal(note.rule, note.words, note.offset, rules.since, rules.until))
    tree = _newest_tree(readings)
    return NcclFile(name, tree or Element("system"), tuple(refusals), tuple(notes), Origin(name, None))


def _newest_tree(readings: list[Loaded]) -> Element | None:
    for loaded in reversed(readings):
        if loaded.refused is None:
            return loaded.tree
    return None


def _add(kept: list[Refusal], new: Refusal) -> None:
    """Join what neighbouring versions say alike."""
    for place, old in enumerate(kept):
        alike = (old.rule, old.words, old.line, old.column) == (new.rule, new.words, new.line, new.column)
        if alike and old.until + 1 == new.since:
            kept[place] = Refusal(old.rule, old.words, old.line, old.column, old.text, old.since, new.until)
            return
    kept.append(new)


class _Places:
    """Bytes into lines and columns, both from 1, and the text of a line."""

    def __init__(self, data: bytes) -> None:
        self._lines = data.split(b"\n")
        self._starts: list[int] = []
        at = 0
        for line in self._lines:
            self._starts.append(at)
            at += len(line) + 1

    def refusal(self, rule: str, words: str, offset: int, since: int, until: int) -> Refusal:
        place = bisect_right(self._starts, offset) - 1
        text = shown(self._lines[place].strip()[:MAX_QUOTE])
        return Refusal(rule, words, place + 1, offset - self._starts[place] + 1, text, since, until)
