"""The catalogue of sentences: each entry takes the lines it shows, leaves those it must, and says where it is from."""

import re
import subprocess
import sys
from functools import cache

import pytest
from msgspec.structs import replace

from tests.fuzz.backtracking import can_take_for_ever
from tests.shown import ROOT
from tests.tables import examples
from topodiag.evidence.signatures import engine
from topodiag.evidence.signatures.entry import (
    FIELDS,
    Family,
    Signature,
    catalogue,
    compiled,
    counts_none,
    denies,
    families,
    family,
    warns,
)

MOST_ENTRIES = 500
ENTRIES = catalogue()
SHOWS = [(entry, line) for entry in ENTRIES for line in entry.shows]
SILENT = [(entry, line) for entry in ENTRIES for line in entry.silent]
_ADDRESS = re.compile(r"https?://|[\w.-]+/[\w.-]+#\d+")


@cache
def _taken(text: str) -> dict[str, str]:
    """The entries that take a text, which may be several lines, with what they say."""
    sentences = engine.read([text.encode()], "sample")
    by_kind = {entry.says: entry.id for entry in ENTRIES if entry.counts}
    events = {event.signature: event.kind for event in sentences.events}
    return events | {by_kind[progress.kind]: progress.kind for progress in sentences.progress}


@pytest.mark.parametrize(("entry", "line"), SHOWS, ids=lambda value: value.id if isinstance(value, Signature) else "")
def test_an_entry_takes_each_line_that_it_shows(entry: Signature, line: str) -> None:
    assert entry.says in _taken(line).values()


@pytest.mark.parametrize(("entry", "line"), SILENT, ids=lambda value: value.id if isinstance(value, Signature) else "")
def test_an_entry_is_silent_on_each_line_that_it_must_leave(entry: Signature, line: str) -> None:
    assert entry.id not in _taken(line)


def test_a_line_that_one_entry_shows_is_taken_by_no_entry_of_another_event() -> None:
    others = {
        line: [other for other in _taken(line).values() if other != entry.says]
        for entry, line in SHOWS
        if not entry.also
    }
    allowed = {entry.says for entry in ENTRIES if entry.also}
    assert {line: texts for line, texts in others.items() if set(texts) - allowed} == {}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_an_entry_is_admitted_by_a_program_or_by_two_threads_and_has_both_samples(entry: Signature) -> None:
    assert entry.shows
    assert entry.silent
    threads = [source for source in entry.sources if _ADDRESS.search(source)]
    programs = [source for source in entry.sources if not _ADDRESS.search(source) and len(source.split()) > 1]
    assert programs or len(set(threads)) > 1
    unknown = entry.pattern.groupindex.keys() - FIELDS.keys()
    assert not unknown, f"no fields: {sorted(unknown)}; a group is one of {', '.join(FIELDS)}, or has no name"
    assert all(any(literal in line for literal in entry.literals) for line in entry.shows)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_no_pattern_of_an_entry_can_take_for_ever(entry: Signature) -> None:
    more = [near.match for near in [entry.near] if near] + [over.match for over in [entry.over] if over]
    patterns = [compiled(pattern) for pattern in (entry.match, entry.unless, *more) if pattern]
    assert not [pattern.pattern for pattern in patterns if can_take_for_ever(pattern)]


def test_a_pattern_that_entries_share_is_spelt_out_in_each() -> None:
    entry = next(entry for entry in ENTRIES if entry.id == "launcher.accounted_preempted")
    family = Family((replace(entry, match="(?&front)x", unless="(?&front)y"),), {"front": "a|b"})
    spelt = family.spelt_out(family.signature[0])
    assert (spelt.match, spelt.unless) == ("(?:a|b)x", "(?:a|b)y")
    assert [entry.id for entry in ENTRIES if "(?&" in entry.match + entry.unless] == []


def test_families_that_only_readers_of_lines_ask_say_nothing_of_a_node() -> None:
    assert {entry.scope for name in engine.FAMILIES_OF_LINES for entry in family(name)} <= engine.OF_JOBS


def test_ids_are_of_their_family_and_stand_once() -> None:
    ids = [entry.id for name in families() for entry in family(name)]
    assert len(set(ids)) == len(ids) <= MOST_ENTRIES
    assert [entry.id for name in families() for entry in family(name) if not entry.id.startswith(f"{name}.")] == []


def test_the_index_of_literals_is_that_of_the_entries() -> None:
    tool = ROOT / "tools" / "build_signatures.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


# --- lines that name a fault and report none ------------------------------------------------------------------

FAULT = "link down"


@examples("line", "denied")
def test_words_around_a_match_deny_it(line: str, denied: bool) -> None:
    start = line.index(FAULT)
    assert denies(line, start, start + len(FAULT)) is denied


@examples("fields", "none")
def test_a_count_of_zero_reports_nothing(fields: dict[str, int], none: bool) -> None:
    assert counts_none(fields) is none


@examples("line", "warned")
def test_a_warning_of_python_ends_no_program(line: str, warned: bool) -> None:
    assert warns(line, line.index("undefined symbol")) is warned
