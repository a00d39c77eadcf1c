"""The page stands by itself, is whole without its script, and shows what is foreign as text."""

import json
import re
from dataclasses import replace
from html import unescape

import pytest

from tests.report.html import pages
from tests.report.verdict.test_page import LINKS
from tests.tables import examples
from topodiag.app.scan import scan
from topodiag.model.provenance import Fact
from topodiag.model.result import Result
from topodiag.report.html.interface import Sheet
from topodiag.report.html.page import ORDER, environment, html_of, pieces, result_sheet
from topodiag.report.html.sections.todo import section
from topodiag.report.interface import Style
from topodiag.report.table import draw_result
from topodiag.report.text import Page
from topodiag.words.text import clean

every_page = pytest.mark.parametrize("page", [*pages.PAGES.values(), pages.hostile_page], ids=[*pages.PAGES, "hostile"])


def policy(elements: list[pages.Element]) -> str:
    (element,) = [element for element in pages.named(elements, "meta") if element.attributes.get("http-equiv")]
    return element.attributes["content"]


def inner(text: str, section: pages.Element) -> set[str]:
    """The names of the elements in a section."""
    start = text.index(f'<section id="{section.attributes["id"]}"')
    return set(re.findall(r"<([a-z]+)", text[start : text.index("</section>", start)]))


@every_page
def test_the_policy_forbids_everything_but_our_own_script(page) -> None:
    text = page()
    content = policy(pages.read(text))
    assert content.startswith("default-src 'none'")
    assert f"script-src 'sha256-{pages.script_hash(text)}'" in content
    assert "http" not in content
    assert "unsafe-eval" not in content


@every_page
def test_the_policy_stands_before_anything_that_could_load(page) -> None:
    head = [element.name for element in pages.read(page()) if element.inside == ("html", "head")]
    assert head[:2] == ["meta", "meta"]


@every_page
def test_nothing_on_the_page_is_loaded_from_elsewhere(page) -> None:
    for element in pages.read(page()):
        for name in ("src", "href", "xlink:href", "action", "srcset", "data", "poster", "background"):
            value = element.attributes.get(name, "#")
            assert value.startswith(("#", "data:image/svg+xml;base64,")), (element.name, name, value[:80])
        assert element.name not in {"link", "base", "iframe", "object", "embed", "form", "foreignobject"}
        assert not [name for name in element.attributes if name.startswith("on")], element.name


@every_page
def test_every_id_is_there_once_and_every_link_has_its_target(page) -> None:
    elements = pages.read(page())
    ids = [element.attributes["id"] for element in elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    targets = {
        element.attributes["href"][1:] for element in elements if element.attributes.get("href", "").startswith("#")
    }
    assert targets <= set(ids)
    labels = {word for element in elements for word in element.attributes.get("aria-labelledby", "").split()}
    labels |= {element.attributes["for"] for element in elements if "for" in element.attributes}
    assert labels <= set(ids)


@every_page
def test_sections_stand_in_the_order_that_a_reader_needs(page) -> None:
    texts = [element.attributes["id"] for element in pages.named(pages.read(page()), "section")]
    assert texts == [name for name in ORDER if name in texts]
    assert texts[0] == "verdict"


@every_page
def test_a_section_without_content_does_not_appear(page) -> None:
    for element in pages.named(pages.read(page()), "section"):
        assert len(element.text.split()) > 3 or "svg" in inner(page(), element), element.attributes["id"]


def test_the_same_sheet_gives_the_same_bytes() -> None:
    assert pages.odd_node.__wrapped__() == pages.odd_node()


@every_page
def test_the_script_is_below_ten_kilobytes(page) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", page(), re.DOTALL)
    assert len(script) < 10_000


def test_the_answer_of_a_case_stands_first_with_its_cost() -> None:
    answer = pages.by_id(pages.read(pages.slow_job()), "verdict").text
    assert "GPU3 has 12 of 18 NVLinks active" in answer
    assert "123.6 GB/s lost (33\u00a0%)" in answer
    assert answer.index("do reset all GPUs of the node") < answer.index("Cause")
    assert "confidence high" in answer


def test_a_healthy_node_is_said_to_be_clean_of_what_was_seen_and_has_no_list_of_findings() -> None:
    elements = pages.read(pages.healthy_node())
    assert "no faults found in what was seen" in pages.by_id(elements, "verdict").text
    sections = [element.attributes["id"] for element in pages.named(elements, "section")]
    assert "findings" not in sections
    assert "todo" not in sections


def test_a_command_in_a_step_is_code_with_a_button_that_copies_it_and_prose_is_neither() -> None:
    elements = pages.read(pages.odd_node())
    code = {" ".join(element.text.split()) for element in pages.named(elements, "code") if "section" in element.inside}
    buttons = {element.attributes.get("aria-label", "") for element in pages.named(elements, "button")}
    for command in ("nvidia-smi --gpu-reset", "nvidia-smi nvlink -s", "topodiag explain NVL001"):
        assert command in code
        assert f"Copy: {command}" in buttons
    prose = "if links stay down, power-cycle; if that does not help, have the GPU or its baseboard exchanged"
    assert any(prose in " ".join(element.text.split()) for element in pages.named(elements, "span"))
    assert not any("power-cycle" in text for text in code | buttons)


@examples("text", "found")
def test_what_is_to_be_typed_stands_between_back_quotes(text: str, found: list[tuple[str, bool]]) -> None:
    assert [piece for piece in pieces(text) if piece[0]] == found


def test_a_variable_to_remove_is_no_line_of_nccl_conf() -> None:
    finding = replace(LINKS, settings=(("NCCL_NET", None), ("NCCL_IB_HCA", "mlx5")))
    made = section(Sheet("scan", Result(findings=(finding,)), Page(Style()), None))
    assert made.values["settings"] == ["NCCL_IB_HCA=mlx5"]
    assert made.values["unset"] == ["unset NCCL_NET"]


def test_buttons_that_need_the_script_are_hidden_or_disabled_until_it_runs() -> None:
    elements = pages.read(pages.slow_job())
    shown = [element for element in elements if element.name in {"button", "input"} and not any(
        word in element.attributes for word in ("hidden", "disabled"))]  # fmt: skip
    tools = [element for element in elements if element.attributes.get("class") == "tools"]
    assert all("hidden" in tool.attributes for tool in tools)
    assert all(element.attributes.get("id") in {"q", "reset", "expand"} or element.attributes.get("name") == "f"
               for element in shown)  # fmt: skip


def test_severity_is_said_in_a_word_and_not_by_colour_alone() -> None:
    for element in pages.read(pages.slow_job()):
        if element.name == "details" and "data-sev" in element.attributes:
            assert element.attributes["data-sev"] in element.text


def test_every_line_of_evidence_has_its_file() -> None:
    evidence = pages.by_id(pages.read(pages.odd_node()), "evidence").text
    assert "json/nvml.json" in evidence
    assert "gpus[3].nvlinks[4].state: 0" in evidence
    assert "NVL001" in evidence


def test_passed_checks_are_folded_with_their_count() -> None:
    elements = pages.read(pages.odd_node())
    checks = pages.by_id(elements, "open").text
    outcomes = pages.data_of(elements)["outcomes"]
    clean_ones = {outcome["check"] for outcome in outcomes if outcome["status"] == "clean"}
    assert len(clean_ones) > 20
    assert f"{len(clean_ones)} checks: found nothing" in checks
    folded = [element for element in elements if element.name == "details" and "NUM001" in element.text]
    assert folded
    assert all("open" not in element.attributes for element in folded)


def test_inputs_have_their_checksums() -> None:
    inputs = pages.by_id(pages.read(pages.odd_node()), "inputs").text
    assert re.search(r"\b[0-9a-f]{64}\b", inputs)


def test_the_page_holds_what_format_json_prints() -> None:
    held = pages.data_of(pages.read(pages.odd_node()))
    assert [finding["id"] for finding in held["findings"]] == ["NVL001"]
    assert held["schema_version"] == "1.0"
    assert len(held["facts"]["nodes"]) == 1


@pytest.mark.parametrize("attack", pages.HOSTILE, ids=range(len(pages.HOSTILE)))
def test_hostile_text_is_text(attack) -> None:
    """What the page shows of it is what the terminal shows: markup as it stands, and what steers as an escape."""
    elements = pages.read(pages.hostile_page())
    shown = " ".join(clean(attack).split())
    findings = " ".join(pages.by_id(elements, "findings").text.split())
    assert shown in findings


def test_no_hostile_text_makes_an_element_or_steers_the_reader() -> None:
    text = pages.hostile_page()
    elements = pages.read(text)
    assert len(pages.named(elements, "script")) == 2
    assert all(element.attributes["src"].startswith("data:image/svg+xml") for element in pages.named(elements, "img"))
    assert not [char for char in unescape(text) if ord(char) < 32 and char != "\n"]
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u2028\u2029\u200b\ufeff\x7f-\x9f]", unescape(text))
    assert "evil.example" not in "".join(element.attributes.get("href", "") for element in elements)


def test_a_line_of_a_megabyte_is_cut_with_a_mark() -> None:
    text = pages.hostile_page()
    assert len(text) < 3_000_000
    assert "a…" in text


def test_the_json_of_hostile_text_cannot_end_its_element() -> None:
    held = pages.by_id(pages.read(pages.hostile_page()), "data")
    assert "<" not in held.text
    assert pages.HOSTILE[0] in json.dumps(pages.data_of(pages.read(pages.hostile_page())))


def test_a_node_takes_at_most_a_quarter_of_a_megabyte() -> None:
    assert len(pages.odd_node().encode()) <= 250_000
    assert len(pages.slow_job().encode()) <= 250_000


def test_words_of_a_log_have_no_button_that_copies_them() -> None:
    step = environment().get_template("parts.html").module.step  # type: ignore[attr-defined]
    shown = str(step("look for `via NET/Socket` or `Using network Socket`, or run `nvidia-smi topo -m`"))
    assert shown.count('class="copy"') == 1
    assert 'aria-label="Copy: nvidia-smi topo -m"' in shown


# --- A page of many nodes: those alike are one row, sets of names break behind a comma, the worst findings stand open


def test_nodes_that_differ_in_the_time_of_their_capture_alone_are_one_row() -> None:
    (node,) = scan(["fixture:dgx-h100-healthy"]).nodes
    times = ("2026-03-01T08:00:00Z", "2026-03-01T08:00:07Z", "2026-03-01T08:01:00Z")
    nodes = tuple(replace(node, host=f"n{at}", time=Fact(time)) for at, time in enumerate(times))
    rows = pages.by_id(
        pages.read(html_of(result_sheet("scan", Result(nodes=nodes), draw_result))), "t-nodes-by-kind"
    ).text
    assert "n[0-2]" in rows
    assert "captured 2026-03-01T08:00:00Z to 2026-03-01T08:01:00Z" in rows


def test_a_long_set_of_nodes_breaks_behind_a_comma_and_not_inside_a_name() -> None:
    answer = re.findall(r'<p class="headline"><strong>(.*?)</strong>', pages.many_nodes(1_000))[0]
    assert answer.startswith("node[00000,<wbr>00050,<wbr>")


def test_of_many_findings_the_worst_stand_open() -> None:
    def opened(nodes: int) -> tuple[int, int]:
        cards = [
            element
            for element in pages.named(pages.read(pages.many_nodes(nodes)), "details")
            if "data-sev" in element.attributes
        ]
        return sum("open" in element.attributes for element in cards), len(cards)

    assert opened(600) == (12, 12)
    assert opened(1_000) == (4, 20)


def test_counts_of_many_nodes_are_spelt_alike() -> None:
    assert "980 of 1,000 nodes without a finding" in pages.by_id(pages.read(pages.many_nodes(1_000)), "verdict").text
