"""NCCL's own lexer: what each version's parser takes, what it refuses, in which words and where."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import edited, examples, texts, with_texts
from topodiag.evidence.nccl_xml import read_file
from topodiag.evidence.nccl_xml.file import read_tolerantly
from topodiag.evidence.nccl_xml.lexer import RULES
from topodiag.model.errors import InputError
from topodiag.model.nccl_tree import Element, NcclFile
from topodiag.model.nccl_versions import NEWEST, OLDEST

TEXTS = texts(__file__)
GOOD = TEXTS["good"]
ALL = range(OLDEST, NEWEST + 1)


def read(text: str | bytes) -> NcclFile:
    return read_file(text.encode() if isinstance(text, str) else text, "topo.xml")


def taken_by(text: str | bytes) -> list[int]:
    file = read(text)
    return [minor for minor in ALL if file.refusal(minor) is None]


def refused(text: str | bytes, minor: int = 28) -> tuple[str, int, int]:
    """NCCL's words, the line and the column."""
    refusal = read(text).refusal(minor)
    assert refusal is not None, "NCCL takes it"
    return refusal.words, refusal.line, refusal.column


def test_a_good_file_is_taken_by_all_versions_with_its_tree_and_lines() -> None:
    file = read(GOOD)
    assert (file.refusals, file.notes) == ((), ())
    assert [(element.tag, element.line) for element in file.tree.walk()] == [
        ("system", 1), ("cpu", 2), ("pci", 3), ("gpu", 4), ("nvlink", 5), ("nic", 8), ("net", 9),
    ]  # fmt: skip
    assert file.tree.children[0].attributes == (("numaid", "0"), ("arch", "x86_64"))


def test_the_versions_are_covered_once_each() -> None:
    assert [minor for rules in RULES for minor in range(rules.since, rules.until + 1)] == list(ALL)


@examples("text", "replaced", "words", "line", "column")
def test_what_nccl_refuses_is_refused_in_its_words_at_its_place(
    *, text: str | None, replaced: dict[str, str] | None, words: str, line: int, column: int
) -> None:
    made = edited(with_texts(text or "{good}", __file__), replaced)
    assert refused(made) == (words, line, column)
    assert taken_by(made) == []


@examples("text", "replaced")
def test_what_looks_odd_and_nccl_takes_is_taken_by_all_versions(
    text: str | None, replaced: dict[str, str] | None
) -> None:
    assert taken_by(edited(with_texts(text or "{good}", __file__), replaced)) == list(ALL)


@pytest.mark.parametrize("text", ["", " \n\r", "<systems/>", "<!-- -->", "<GPU></x>"])
def test_a_file_without_a_system_is_taken_and_says_nothing(text: str) -> None:
    file = read(text)
    assert file.refusals == ()
    assert file.tree == Element("system")
    assert "no-system" in {note.rule for note in file.notes}


def test_a_wrong_closing_tag_inside_an_unknown_element_is_not_looked_at() -> None:
    # NCCL reads all that an unknown element holds into one place, the name of the element included.
    file = read(GOOD.replace("<nic>", "<foo><net></cpu></bar><nic>"))
    assert file.refusals == ()
    assert [note.words for note in file.notes] == ["Ignoring element foo"]


@examples("element", "words_in_18", "since")
def test_elements_of_later_versions_are_passed_over_by_earlier_ones(element: str, words_in_18: str, since: int) -> None:
    where = "</gpu>" if element == "c2c" else "</pci>"
    file = read(GOOD.replace(where, f"<{element}/>{where}"))
    assert file.refusals == ()
    assert [(note.words, note.since, note.until) for note in file.notes] == [(words_in_18, 18, since - 1)]
    assert element in {node.tag for node in file.tree.walk()}


@pytest.mark.parametrize(
    ("length", "taken"), [(253, list(ALL)), (254, list(range(18, 27))), (255, list(range(18, 27)))]
)
def test_a_value_holds_253_characters_from_2_27_on(length: int, taken: list[int]) -> None:
    text = GOOD.replace("x86_64", "y" * length)
    assert taken_by(text) == taken
    if 28 not in taken:
        assert refused(text) == (f"Error : value {'y' * 254} too long (max 255)", 2, 25)


def test_before_2_27_a_longer_value_runs_into_the_next_attribute() -> None:
    notes = [note for note in read(GOOD.replace("x86_64", "y" * 256)).notes if note.rule == "long-value"]
    assert [(note.since, note.until, note.line) for note in notes] == [(18, 26, 2)]


@pytest.mark.parametrize(("length", "taken"), [(253, True), (254, False), (255, False)])
def test_the_name_of_an_element_holds_253_characters(length: int, taken: bool) -> None:
    assert (taken_by(GOOD.replace("<nic>", f"<{'n' * length}/><nic>")) == list(ALL)) is taken


@pytest.mark.parametrize(("length", "taken"), [(254, True), (255, False)])
def test_the_name_of_an_attribute_holds_254_characters(length: int, taken: bool) -> None:
    assert (taken_by(GOOD.replace("arch=", "a" * length + "=")) == list(ALL)) is taken


def test_single_quotes_are_taken_from_2_27_on() -> None:
    # Before, only the double quote ended a value.
    text = GOOD.replace('arch="x86_64"', "arch='x86_64'")
    assert taken_by(text) == list(range(27, NEWEST + 1))
    assert read(text).tree.children[0].get("arch") == "x86_64"
    assert refused(text, 26)[0].startswith("XML Parse : expected >, got")


def test_a_double_quote_inside_single_quotes_is_part_of_the_value() -> None:
    assert read(GOOD.replace('"x86_64"', "'x\"y'")).tree.children[0].get("arch") == 'x"y'


def test_16_attributes_are_kept_and_the_others_noted() -> None:
    many = " ".join(f'a{number}="{number}"' for number in range(15))
    assert read(GOOD.replace('arch="x86_64"', many)).notes == ()
    file = read(GOOD.replace('arch="x86_64"', f'{many} b="1" c="2"'))
    assert [(note.words, note.line) for note in file.notes] == [("XML Parse : Ignoring extra attributes (max 16)", 2)]
    assert len(file.tree.children[0].attributes) == 16
    assert file.tree.children[0].get("b") is None


def test_a_second_blank_costs_an_attribute() -> None:
    file = read(GOOD.replace(" arch", "  arch"))
    assert [(note.rule, note.line, note.column) for note in file.notes] == [("blank-attribute", 2, 19)]
    assert file.tree.children[0].attributes == (("numaid", "0"), ("arch", "x86_64"))


def filled(elements: int) -> str:
    """A file of so many elements, none with more than 30 children."""
    nics = (elements - 2) // 30
    rest = elements - 2 - 30 * nics
    body = ("<nic>" + "<net/>" * 29 + "</nic>") * nics
    return f'<system version="1"><cpu numaid="0">{body}<nic>{"<net/>" * (rest - 1)}</nic></cpu></system>'


@pytest.mark.parametrize(
    ("elements", "taken"),
    [(255, list(ALL)), (256, [18, 19, 20])],
)  # fmt: skip
def test_255_elements_are_the_most_since_2_21(elements: int, taken: list[int]) -> None:
    text = filled(elements)
    assert text.count("<net/>") + text.count("<nic>") + 2 == elements
    assert taken_by(text) == taken
    if 28 not in taken:
        assert refused(text)[0] == "Error : XML parser is limited to 256 nodes"


def test_before_2_21_1023_elements_are_the_most() -> None:
    pci = "<pci>" * 30
    text = '<system version="1"><cpu numaid="0">' + ("<pci>" + pci.replace("<pci>", "<pci/>") + "</pci>") * 32
    text = text + "</cpu>" + "<cpu>" + "<pci/>" * 28 + "</cpu>" + "</system>"
    assert text.count("<pci") + text.count("<cpu") + 1 == 1023
    assert taken_by(text) == [18, 19, 20]
    one_more = text.replace("</cpu></system>", "<pci/></cpu></system>")
    assert refused(one_more, 20)[0] == "Error : XML parser is limited to 1024 nodes"


@pytest.mark.parametrize(
    ("children", "taken"), [(32, list(ALL)), (33, list(ALL[3:])), (128, list(ALL[3:])), (129, list(ALL[11:]))]
)
def test_the_children_of_an_element_are_limited_by_version(children: int, taken: list[int]) -> None:
    text = GOOD.replace("</nic>", "<net/>" * (children - 1) + "</nic>")
    assert taken_by(text) == taken
    if 28 not in taken:
        assert refused(text)[0] == "Error : XML parser is limited to 128 subnodes"


def test_only_the_first_of_two_systems_counts() -> None:
    file = read(GOOD + GOOD.replace('"0"', '"1"'))
    assert file.refusals == ()
    assert file.tree.children[0].get("numaid") == "0"
    assert [note.rule for note in file.notes] == ["second-system"]


@examples("old", "new", "rule")
def test_values_that_nccl_replaces_in_silence_are_noted(old: str, new: str, rule: str) -> None:
    assert [note.rule for note in read(GOOD.replace(old, new)).notes] == [rule]


@pytest.mark.parametrize("speed", ["2.5 GT/s", "8 GT/s", "16 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"])
def test_speeds_in_nccls_table_are_not_noted(speed: str) -> None:
    assert read(GOOD.replace('class="0x030200"', f'class="0x030200" link_speed="{speed}"')).notes == ()


@pytest.mark.parametrize(
    "data",
    [
        b"<system " + b'a="' + b"x" * (9 << 20) + b'"/>',
        b'<system version="1"><cpu>' + b"<pci>" * 10_000,
        b"<a>" * 10_000,
        b"<a" + b" x" * 200_000 + b">",
        b"<a/>" * 200_000,
    ],
)
def test_files_beyond_any_machine_are_refused_in_one_line(data: bytes) -> None:
    # Elements that NCCL knows are limited to 255 before their depth matters.
    if b"<pci>" in data:
        data = b"\t" + data
    with pytest.raises(InputError) as error:
        read(data)
    assert str(error.value).count("\n") == 0


PIECES = st.sampled_from(
    [
        *("<system", ' version="1"', ">", "/>", "<cpu", "</cpu>", "<pci", "</pci>", "<gpu", "<nvlink/>", "</gpu>"),
        *("</system>", " ", "  ", "\n", "\r\n", "\t", "\0", "'", '"', "=", "<", "<!--", "-->", "<?xml?>", "&b;", "a"),
        *("<!DOCTYPE a [<!ELEMENT b>]>", ' a="b"', "<x>", "</x>", "\ufeff", "\u0080"),
    ]
)


@given(st.one_of(st.lists(PIECES, max_size=40).map("".join).map(str.encode), st.binary(max_size=300)))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    file = read(data)
    assert file.tree.tag == "system"
    for refusal in file.refusals:
        assert OLDEST <= refusal.since <= refusal.until <= NEWEST
        assert 1 <= refusal.line <= data.count(b"\n") + 1
        assert refusal.words.isprintable()
    for minor in ALL:
        assert sum(refusal.since <= minor <= refusal.until for refusal in file.refusals) <= 1


@given(st.integers(0, len(GOOD) - 2))
def test_a_file_cut_anywhere_is_refused_or_empty(length: int) -> None:
    cut = GOOD[:length]
    assert taken_by(cut) == ([] if cut.strip() else list(ALL))


# --- Files that NCCL refuses are read all the same, so that what is in them can be checked and repaired


WHOLE = TEXTS["whole"]
TREE = read_file(WHOLE.encode(), "good.xml").tree


def tolerantly(text: str | bytes) -> Element | None:
    return read_tolerantly(text.encode() if isinstance(text, str) else text, "topo.xml")


def test_a_good_file_is_read_as_nccl_reads_it_lines_included() -> None:
    tree = tolerantly(WHOLE)
    assert tree == TREE
    assert [element.line for element in tree.walk()] == [element.line for element in TREE.walk()]


@examples("text", "replaced")
def test_what_nccl_would_not_take_is_read_to_the_same_tree(text: str | None, replaced: dict[str, str] | None) -> None:
    assert tolerantly(edited(with_texts(text or "{whole}", __file__), replaced)) == TREE


def test_of_two_systems_the_first_is_read() -> None:
    assert tolerantly(WHOLE + WHOLE.replace("0000:1b", "0000:2b")) == TREE


def test_utf_16_is_read() -> None:
    assert tolerantly(WHOLE.encode("utf-16")) == TREE


def test_a_refused_file_carries_its_tree_and_the_refusal() -> None:
    file = read_file(b'<?xml version="1.0"?>\n' + WHOLE.encode(), "topo.xml")
    assert file.tree == TREE
    assert [(refusal.rule, refusal.line, refusal.since, refusal.until) for refusal in file.refusals] == [
        ("prolog", 1, OLDEST, NEWEST)
    ]


def test_the_entities_of_xml_are_read_and_others_stay_as_they_stand() -> None:
    tree = tolerantly('<system name="&lt;&amp;&#65;&#x42;&bomb;&quot;"/>')
    assert tree == Element("system", (("name", '<&AB&bomb;"'),))


def test_a_tag_broken_in_the_middle_keeps_what_can_be_read() -> None:
    text = WHOLE.replace('<gpu dev="0" sm="90">', '<gpu dev="0" sm=')
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
        read_file((bomb + WHOLE).encode(), "bomb.xml")


@given(st.integers(0, len(WHOLE)), st.integers(0, 30), st.text("<>/='\" \n\t!-[]?&a", max_size=8))
def test_a_file_changed_anywhere_is_still_read(at: int, removed: int, added: str) -> None:
    text = WHOLE[:at] + added + WHOLE[at + removed :]
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
