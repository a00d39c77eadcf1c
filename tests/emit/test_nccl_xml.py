"""A topology tree as the text that NCCL reads: what is written is what is read back, by every version."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.topologies import clean, element, machines
from topodiag.emit.nccl_xml import MAX_TEXT, UnwritableError, to_text
from topodiag.evidence.nccl_xml import read_file
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import MAX_ELEMENTS
from topodiag.words.text import without_steering

VERSIONS = (18, 19, 21, 22, 26, 27, 28, 29, 30)


def elements_of(tree: Element) -> int:
    return sum(1 for _ in tree.walk())


@given(machines(virtual_nic=True))
def test_any_machine_that_is_written_is_read_back_equal_by_every_version_that_takes_its_size(tree: Element) -> None:
    text = to_text(tree, 18)
    back = read_file(text.encode(), "machine.xml")
    assert back.tree == tree
    assert to_text(back.tree, 18) == text
    for minor in VERSIONS:
        crowded = any(len(node.children) > 32 for node in tree.walk())
        # The last element is refused where one more than it would not fit: the table needs a place to spare.
        if elements_of(tree) < MAX_ELEMENTS[minor] and not crowded:
            assert back.refusal(minor) is None


@given(machines(virtual_nic=True), st.sampled_from(VERSIONS))
def test_a_machine_that_was_cleaned_for_a_version_is_taken_by_that_version(tree: Element, minor: int) -> None:
    assume(elements_of(tree) < 250)
    tag = clean(tree, minor).tree
    back = read_file(to_text(tag, minor).encode(), "machine.xml")
    assert back.refusal(minor) is None
    assert back.tree == tag


VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60)


@given(st.lists(VALUES, max_size=8), st.sampled_from(VERSIONS))
def test_any_value_is_read_back_as_it_is_shown_or_refused_before_it_is_written(values: list[str], minor: int) -> None:
    tree = element("system", element("cpu", **{f"a{at}": value for at, value in enumerate(values)}), version=1)
    try:
        text = to_text(tree, minor)
    except UnwritableError:
        assert any('"' in value or len(without_steering(value)) > MAX_TEXT for value in values)
        return
    back = read_file(text.encode(), "values.xml")
    assert back.refusal(minor) is None
    shown = {f"a{at}": without_steering(value) for at, value in enumerate(values)}
    assert back.tree == element("system", element("cpu", **shown), version=1)


def test_what_would_steer_a_terminal_is_written_as_its_escape() -> None:
    tree = element("system", element("cpu", arch="x86\x1b[2J\u202e\x9b"), version=1)
    assert 'arch="x86\\x1b[2J\\u202e\\x9b"' in to_text(tree)


@pytest.mark.parametrize("minor", VERSIONS)
def test_the_longest_value_that_is_written_is_one_that_nccl_takes(minor: int) -> None:
    fits = element("system", element("cpu", affinity="f" * MAX_TEXT), version=1)
    assert read_file(to_text(fits, minor).encode(), "long.xml").refusal(minor) is None
    with pytest.raises(UnwritableError, match="longer than the 253 characters"):
        to_text(element("system", element("cpu", affinity="f" * (MAX_TEXT + 1)), version=1), minor)


def test_a_double_quote_is_not_written_for_versions_that_end_a_value_at_it() -> None:
    tree = element("system", element("cpu", note='a "b" c'), version=1)
    assert """note='a "b" c'""" in to_text(tree, 27)
    with pytest.raises(UnwritableError, match=r"ends it before 2\.27"):
        to_text(tree, 26)


@pytest.mark.parametrize("name", ["", "a b", "a=b", "a>", "a/", 'a"', "<a", "a\t", "a\0", "a" * 254])
def test_a_name_that_nccl_would_read_otherwise_is_refused(name: str) -> None:
    with pytest.raises(UnwritableError):
        to_text(Element("system", ((name, "1"),)))
    with pytest.raises(UnwritableError):
        to_text(Element(name or " "))
