"""`read_file`: a topology file with the tree that is in it, and which NCCL versions refuse it, where and why."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from topodiag.evidence.nccl_xml.lexer import shown
from topodiag.evidence.nccl_xml.limits import MAX_FILE_BYTES, MAX_NOTES, RCCL_MINOR, RCCL_RULES, RULES, Rules
from topodiag.evidence.nccl_xml.load import load
from topodiag.evidence.nccl_xml.notes import notes_of
from topodiag.evidence.nccl_xml.tolerant import read_tolerantly
from topodiag.lazy import regex
from topodiag.model.errors import InputError
from topodiag.model.nccl_tree import RCCL_FILE, Element, NcclFile, Refusal, renamed
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.words.dialect import Maker
from topodiag.words.units import spell_bytes

_OF_RCCL = regex(rb"<system\s[^>]{0,400}version=\"2\"|<xgmi\s|<gpu\s[^>]{0,400}\sgcn=")
"""Signs of a file that RCCL wrote or is meant for: its version, its links, the architecture of its GPUs."""


def read_file(data: bytes, name: str) -> NcclFile:
    """Read a topology file. Raises InputError only for what is too large or too deep for any machine."""
    if len(data) > MAX_FILE_BYTES:
        raise InputError(name, f"is larger than {spell_bytes(MAX_FILE_BYTES)}", hint="refused: is it a topology file?")
    rccl = _OF_RCCL.search(data) is not None and b"<nvlink" not in data
    all_rules = (RCCL_RULES,) if rccl else RULES
    readings = [load(data, name, rules) for rules in all_rules]
    places = _Places(data)
    refusals, notes = _Said(places), _Said(places)
    for rules, loaded in zip(all_rules, readings, strict=True):
        if loaded.refused is not None:
            refusals.add(loaded.refused.rule, loaded.refused.words, loaded.refused.offset, rules)
        for note in loaded.notes:
            notes.add(note.rule, note.words, note.offset, rules)
    tree = readings[-1].tree if readings[-1].refused is None else read_tolerantly(data, name)
    if rccl and tree is not None:
        tree = renamed(tree, {"xgmi": "nvlink"}, RCCL_FILE)
    more = list(islice(notes_of(tree), MAX_NOTES)) if tree is not None else []
    if tree is None and readings[-1].refused is None:
        more.append(Refusal("no-system", "no system element: NCCL takes nothing from this file", 1, 1))
    said = (*notes.said, *more)
    made = NcclFile(name, tree or Element("system"), tuple(refusals.said), said, Origin(name, None))
    return replace(made, maker=Maker.AMD, asked=(RCCL_MINOR,)) if rccl else made


class _Said:
    """Refusals or notes, those that neighbouring versions say alike joined."""

    def __init__(self, places: _Places) -> None:
        self.said: list[Refusal] = []
        self._places = places
        self._known: dict[tuple[str, str, int], int] = {}

    def add(self, rule: str, words: str, offset: int, rules: Rules) -> None:
        place = self._known.get((rule, words, offset))
        if place is not None and self.said[place].until + 1 == rules.since:
            self.said[place] = replace(self.said[place], until=rules.until)
            return
        line, column, text = self._places.of(offset)
        self._known[rule, words, offset] = len(self.said)
        self.said.append(Refusal(rule, words, line, column, text, rules.since, rules.until))


class _Places:
    """Bytes into lines and columns, both from 1, and the text of a line. Asked in rising order it counts once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._counted, self._line = 0, 1

    def of(self, offset: int) -> tuple[int, int, str]:
        if offset < self._counted:
            self._counted, self._line = 0, 1
        self._line += self._data.count(b"\n", self._counted, offset)
        self._counted = offset
        start = self._data.rfind(b"\n", 0, offset) + 1
        text = self._data[start : start + 4 * MAX_QUOTE].partition(b"\n")[0]
        return self._line, offset - start + 1, shown(text.strip()[:MAX_QUOTE])
