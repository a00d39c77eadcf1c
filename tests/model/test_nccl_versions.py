"""NCCL's versions: how they are written, which are known, and tables that answer for each of them."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.nccl_xml.lexer import RULES
from topodiag.model import nccl_versions as versions
from topodiag.model.nccl_versions import (
    DEFAULT,
    KNOWN,
    LAST_PATCHES,
    NEWEST,
    OLDEST,
    STILL,
    ByVersion,
    Feature,
    UnknownVersionError,
    assumption,
    has,
    minor_of,
    nearest_minor,
    number_of,
    path_types,
    read_minor,
    spell_range,
    spell_version,
    spell_versions,
    text_has,
)
from topodiag.nccl.search.trial import ladder
from topodiag.nccl.tuning.tuning_constants import constants


def test_the_known_versions_follow_each_other_and_name_the_patch_that_was_read() -> None:
    assert all(after == before + 1 for before, after in pairwise(KNOWN))
    assert all(re.fullmatch(rf"v2\.{minor}\.\d+(a\d+)?-1", patch) for minor, patch in LAST_PATCHES.items())
    assert DEFAULT in KNOWN


def test_every_feature_is_of_versions_that_are_known() -> None:
    for feature in Feature:
        assert OLDEST <= feature.since <= NEWEST, feature
        assert feature.since <= feature.until, feature
        assert feature.until == STILL or feature.until < NEWEST, feature
        assert feature.source, feature


def test_what_is_not_said_to_have_ended_goes_on_in_versions_to_come() -> None:
    assert has(NEWEST + 1, Feature.MNNVL)
    assert not has(NEWEST + 1, Feature.TREES_BOUND_BY_PXN)


@pytest.mark.parametrize("minor", KNOWN)
def test_every_table_answers_for_every_known_version(minor: int) -> None:
    tables = [table for table in vars(versions).values() if isinstance(table, ByVersion)]
    assert len(tables) >= 5
    assert all(table[minor] for table in tables)
    assert constants(minor).base_us("Ring", "LL") > 0
    assert all(ladder(minor, sm, inter) for sm in (70, 90, 100) for inter in (False, True))
    assert path_types(minor).dis == len(path_types(minor).names) - 1
    assert sum(rules.since <= minor <= rules.until for rules in RULES) == 1


@pytest.mark.parametrize("entries", [{OLDEST + 1: 1}, {OLDEST: 1, NEWEST + 1: 2}, {OLDEST - 1: 1, OLDEST: 2}])
def test_a_table_that_leaves_a_version_to_accident_is_refused(entries: dict[int, int]) -> None:
    with pytest.raises(ValueError, match="must begin with"):
        ByVersion(entries)


def test_an_entry_holds_up_to_the_next_one() -> None:
    table = ByVersion({OLDEST: "old", 25: "new"})
    assert [table[minor] for minor in (OLDEST, 24, 25, NEWEST)] == ["old", "old", "new", "new"]


@pytest.mark.parametrize("text", ["2.28", "2.28.9", "v2.28.9-1", "2.28.9+cuda13.0", " 2.28 "])
def test_a_version_is_read_as_people_and_logs_write_it(text: str) -> None:
    assert minor_of(text) == 28


@pytest.mark.parametrize("text", ["", "2", "3.0", "2.x", "28", "2.17.8", f"2.{OLDEST - 1}"])
def test_what_is_no_version_and_what_is_too_old_is_refused_with_the_range(text: str) -> None:
    with pytest.raises(UnknownVersionError, match=re.escape(spell_range())):
        minor_of(text)


def test_a_newer_version_is_judged_by_the_newest_rules_and_that_is_said() -> None:
    newer = f"2.{NEWEST + 1}.2"
    assert minor_of(newer) == NEWEST
    assert assumption(newer) == (
        f"NCCL 2.{NEWEST + 1} is newer than 2.{NEWEST}, the newest version known here:"
        f" it is taken to decide as 2.{NEWEST} does"
    )


def test_an_older_version_is_judged_by_the_oldest_rules_where_that_is_asked_for() -> None:
    assert nearest_minor("2.4.8") == OLDEST
    assert "older" in assumption("2.4.8")


@given(st.sampled_from(KNOWN))
def test_of_a_known_version_nothing_is_assumed(minor: int) -> None:
    assert assumption(spell_version(minor)) == ""
    assert minor_of(spell_version(minor)) == nearest_minor(spell_version(minor)) == minor


@given(st.text(max_size=40))
def test_any_text_is_a_version_or_none(text: str) -> None:
    minor = read_minor(text)
    assert minor is None or minor >= 0
    assert assumption(text) == "" or minor is not None
    assert text_has(text, Feature.PAT) in (True, False)


@given(st.sets(st.integers(OLDEST, NEWEST), min_size=1))
def test_versions_are_folded_into_ranges(minors: set[int]) -> None:
    numbers: set[int] = set()
    for run in spell_versions(minors).split(" and "):
        first, _, last = run.partition(" to ")
        numbers |= set(range(int(first[2:]), int((last or first)[2:]) + 1))
    assert numbers == minors


def test_versions_of_logs_need_not_be_known_to_have_a_feature() -> None:
    assert not text_has("2.4.8", Feature.LAZY_CONNECTIONS)
    assert text_has("2.99.1", Feature.LAZY_CONNECTIONS)
    assert not text_has("unknown", Feature.LAZY_CONNECTIONS)


@examples("printed", "number")
def test_a_version_is_a_number_without_what_it_was_built_for(printed: str, number: str) -> None:
    assert number_of(printed) == number
