"""A page of many nodes: those alike are one row, sets of names break behind a comma, the worst findings stand open."""

import re
from dataclasses import replace

from tests.report.html.pages import by_id, many_nodes, named, read
from topodiag.app.scan import scan
from topodiag.model.provenance import Fact
from topodiag.model.result import Result
from topodiag.report.html.page import html_of, result_sheet
from topodiag.report.table import draw_result


def test_nodes_that_differ_in_the_time_of_their_capture_alone_are_one_row() -> None:
    (node,) = scan(["fixture:dgx-h100-healthy"]).nodes
    times = ("2026-03-01T08:00:00Z", "2026-03-01T08:00:07Z", "2026-03-01T08:01:00Z")
    nodes = tuple(replace(node, host=f"n{at}", time=Fact(time)) for at, time in enumerate(times))
    rows = by_id(read(html_of(result_sheet("scan", Result(nodes=nodes), draw_result))), "t-nodes-by-kind").text
    assert "n[0-2]" in rows
    assert "captured 2026-03-01T08:00:00Z to 2026-03-01T08:01:00Z" in rows


def test_a_long_set_of_nodes_breaks_behind_a_comma_and_not_inside_a_name() -> None:
    answer = re.findall(r'<p class="headline"><strong>(.*?)</strong>', many_nodes(1_000))[0]
    assert answer.startswith("node[00000,<wbr>00050,<wbr>")


def test_of_many_findings_the_worst_stand_open() -> None:
    def opened(nodes: int) -> tuple[int, int]:
        cards = [element for element in named(read(many_nodes(nodes)), "details") if "data-sev" in element.attributes]
        return sum("open" in element.attributes for element in cards), len(cards)

    assert opened(600) == (12, 12)
    assert opened(1_000) == (4, 20)


def test_counts_of_many_nodes_are_spelt_alike() -> None:
    assert "980 of 1,000 nodes without a finding" in by_id(read(many_nodes(1_000)), "verdict").text
