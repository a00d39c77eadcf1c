"""Files that NCCL refuses are read all the same, so that what is in them can be checked and repaired."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import edited, examples, texts, with_texts
from topodiag.evidence.nccl_xml import read_file
from topodiag.evidence.nccl_xml.file import read_tolerantly
from topodiag.model.errors import InputError
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import NEWEST, OLDEST

TEXTS = texts(__file__)
GOOD = TEXTS["good"]
TREE = read_file(GOOD.encode(), "good.xml").tree


def tolerantly(text: str | bytes) -> Element | None:
    return read_tolerantly(text.encode() if isinstance(text, str) else text, "topo.xml")


def test_a_good_file_is_read_as_nccl_reads_it_lines_included() -> None:
    tree = tolerantly(GOOD)
    assert tree == TREE
    assert [element.line for element in tree.walk()] == [element.line for element in TREE.walk()]


@examples("text", "replaced")
def test_what_nccl_would_not_take_is_read_to_the_same_tree(text: str | None, replaced: dict[str, str] | None) -> None:
    assert tolerantly(edited(with_texts(text or "{good}", __file__), replaced)) == TREE


def test_of_two_systems_the_first_is_read() -> None:
    assert tolerantly(GOOD + GOOD.replace("0000:1b", "0000:2b")) == TREE


def test_utf_16_is_read() -> None:
    assert tolerantly(GOOD.encode("utf-16")) == TREE


def test_a_refused_file_carries_its_tree_and_the_refusal() -> None:
    file = read_file(b'<?xml version="1.0"?>\n' + GOOD.encode(), "topo.xml")
    assert file.tree == TREE
    assert [(refusal.rule, refusal.line, refusal.since, refusal.until) for refusal in file.refusals] == [
        ("prolog", 1, OLDEST, NEWEST)
    ]


def test_the_entities_of_xml_are_read_and_others_stay_as_they_stand() -> None:
    tree = tolerantly('<system name="&lt;&amp;&#65;&#x42;&bomb;&quot;"/>')
    assert tree == Element("system", (("name", '<&AB&bomb;"'),))


def test_a_tag_broken_in_the_middle_keeps_what_can_be_read() -> None:
    text = GOOD.replace('<gpu dev="0" sm="90">', '<gpu dev="0" sm=')
    tree = tolerantly(text)
    assert [element.tag for element in tree.walk()] == ["system", "cpu", "pci", "gpu", "nvlink", "cpu"]


def test_a_doubled_attribute_counts_once_the_first() -> None:
    assert tolerantly('<system version="1" version="2"/>') == Element("system", (("version", "1"),))


@pytest.mark.parametrize("text", ["", "text", "<systems/>", "<cpu/>", "<", "<!--", "<![CDATA[", "<!DOCTYPE", "<?"])
def test_a_text_without_a_system_has_no_tree(text: str) -> None:
    assert tolerantly(text) is None


def test_a_file_deeper_than_any_machine_is_refused() -> None:
    with pytest.raises(InputError, match="nests deeper than"):
        tolerantly("\t<system><cpu>" + "<pci>" * 10_000)


def test_a_value_beyond_any_real_one_is_refused() -> None:
    assert tolerantly(f'<system name="{"x" * 65_536}"/>') is not None
    with pytest.raises(InputError, match="value of more than"):
        tolerantly(f'<system name="{"x" * 65_537}"/>')


def test_an_entity_bomb_is_refused() -> None:
    bomb = "<!DOCTYPE a [" + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 20)) + "]>"
    with pytest.raises(InputError, match="declares entities"):
        tolerantly(bomb + '<system name="&a19;"/>')
    with pytest.raises(InputError, match="declares entities"):
        read_file((bomb + GOOD).encode(), "bomb.xml")


@given(st.integers(0, len(GOOD)), st.integers(0, 30), st.text("<>/='\" \n\t!-[]?&a", max_size=8))
def test_a_file_changed_anywhere_is_still_read(at: int, removed: int, added: str) -> None:
    text = GOOD[:at] + added + GOOD[at + removed :]
    tree = tolerantly(text)
    assert tree is None or tree.tag == "system"
    file = read_file(text.encode(), "topo.xml")
    assert file.refusals == () or file.tree == (tree or Element("system"))


NAMES = st.sampled_from(["busid", "class", "link_speed", "x"])
VALUES = st.text(st.characters(codec="utf-8", exclude_characters='"&<\0'), max_size=20)
ATTRIBUTES = st.dictionaries(NAMES, VALUES, max_size=4).map(lambda items: tuple(items.items()))


@st.composite
def elements(draw: st.DrawFn, tag: str = "system", depth: int = 0) -> Element:
    below = {
        "system": ["cpu"],
        "cpu": ["pci", "nic"],
        "pci": ["pci", "gpu", "nic", "pcilink"],
        "gpu": ["nvlink", "c2c"],
    }
    tags = draw(st.lists(st.sampled_from(below.get(tag, ["net"])), max_size=3)) if depth < 5 and tag in below else []
    children = tuple(draw(elements(child, depth + 1)) for child in tags)
    first = (("version", "1"),) if tag == "system" else ()
    return Element(tag, first + draw(ATTRIBUTES), children)


def written(element: Element, separator: str) -> str:
    attributes = "".join(f'{separator}{name}="{value}"' for name, value in element.attributes)
    inner = "".join(written(child, separator) for child in element.children)
    return f"<{element.tag}{attributes}>{inner}</{element.tag}>" if inner else f"<{element.tag}{attributes}/>"


@given(elements())
def test_any_tree_is_read_alike_by_both_readers(tree: Element) -> None:
    text = written(tree, " ")
    file = read_file(text.encode(), "topo.xml")
    assert file.refusal(28) is None
    assert file.tree == tree
    assert tolerantly(text) == tree
    assert tolerantly(written(tree, "\n\t")) == tree
