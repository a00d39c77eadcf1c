"""A compared fleet on a page, as JSON, as tables and as lists for schedulers."""

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.app.test_compare import result_of
from tests.fleet.fleets import both, fleet, fleet_of, found, having, standing, with_fact
from tests.tables import examples
from tests.valid import assert_valid
from topodiag.emit.fleet_lists import conditions, drain_lines, node_list, pass_list
from topodiag.model.finding import Severity
from topodiag.model.fleet import FleetResult
from topodiag.model.provenance import NotObserved
from topodiag.report.documents.from_model import plain, schema
from topodiag.report.fleet.page import COLUMNS, draw_fleet, fleet_json, json_lines
from topodiag.report.fleet.page import rows as fleet_rows
from topodiag.report.interface import Style
from topodiag.report.table_files import write_csv, write_parquet
from topodiag.report.text import Page

OLD = with_fact("driver", "NVIDIA driver", "550.54.15")


@pytest.fixture
def sick(monkeypatch: pytest.MonkeyPatch) -> FleetResult:
    """200 nodes: one with an error, one with a narrow link, one with an old driver, and half with another kernel."""
    changes = {at: with_fact("os", "kernel", "6.8") for at in range(100)}
    changes[17] = both(changes[17], having(found("NVL001", Severity.ERROR, "GPU3: 12 of 18 NVLinks are active")))
    changes[101] = with_fact("pci", "width", "8", part="gpu3")
    changes[153] = OLD
    nodes = [standing("rack", f"r{at // 20}")(each) for at, each in enumerate(fleet(200, changes))]
    return result_of(nodes, monkeypatch)


def page_of(result: FleetResult, width: int = 80, verbose: int = 0) -> list[str]:
    page = Page(Style(width=width, verbose=verbose))
    draw_fleet(page, result)
    page.repeat_answers()
    return [line.plain for line in page.lines]


def test_which_nodes_to_exclude_and_why_is_on_the_first_screen_and_on_the_last_line(sick: FleetResult) -> None:
    lines = page_of(sick)
    assert lines[0] == "✖ 3 of 200 nodes to exclude now  n[0017,0101,0153]"
    assert lines[1] == "  do         n0017: mend it"
    assert lines[2] == "  ✖ n0017  NVL001  GPU3: 12 of 18 NVLinks are active"
    assert lines[3] == "  ▲ n0101  FLT001  PCIe width of gpu3: 8 (199 of 200: 16) (24 GB/s lost)"
    assert lines[4] == "  ▲ n0153  FLT001  NVIDIA driver: 550.54.15 (199 of 200: 570.86.15)"
    assert lines[-2:] == lines[:2]
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80


def test_what_is_equal_and_what_splits_is_told_with_counts(sick: FleetResult) -> None:
    text = "\n".join(page_of(sick))
    assert "facts equal on all nodes that show them" in text
    assert "populations  kernel" in text
    assert "split as by rack: r0-4 (100 % overlap)" in text


@examples("count", "changes", "left_out", "begins", "lines", "words", "lacks", "most")
def test_what_the_page_says_of_a_fleet(
    *, count: int, changes: list[Any] | None, left_out: list[list[str]] | None, begins: str, lines: list[str] | None,
    words: list[str] | None, lacks: list[str] | None, most: int | None, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Captures that were left out, and why; how the page `begins`, `lines` that follow one another, `words` and what it
    `lacks`, blanks counted as one, and how many lines it has at `most`."""
    result = result_of(fleet_of(count, changes or ()), monkeypatch)
    page = page_of(replace(result, left_out=tuple(NotObserved(*each) for each in left_out or ())))
    text = " ".join(" ".join(page).split())
    assert page[0].startswith(begins)
    assert not lines or lines in [page[at : at + len(lines)] for at in range(len(page))], page
    assert [each for each in words or () if each not in text] == []
    assert [each for each in lacks or () if each in text] == []
    assert len(page) <= (most or len(page))


def of_two_clusters(monkeypatch: pytest.MonkeyPatch) -> FleetResult:
    """Six names, each of two machines; of the second n0004 a GPU is sick."""
    nodes = [replace(each, host=f"{each.host}#{side}") for side in (1, 2) for each in fleet(6)]
    nodes[10] = having(found("GPU001", Severity.ERROR))(nodes[10])
    return result_of(nodes, monkeypatch)


def test_names_that_several_machines_have_are_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(" ".join(page_of(of_two_clusters(monkeypatch))).split())
    assert "6 names of several machines each n[0000-0005]: they have no GPU in common" in text
    assert "compare each by itself" in text


def test_lists_for_schedulers_name_machines_of_one_name_once_and_none_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = of_two_clusters(monkeypatch)
    assert node_list(result.failed) == "n0004\n"
    assert pass_list(result) == "n[0000-0003,0005]\n"
    assert [line.split()[2] for line in drain_lines(result)] == ["nodename=n0004"]
    table = {each["node"]: each["conditions"][0]["status"] for each in map(json.loads, conditions(result))}
    assert table == {f"n{at:04d}": "True" if at == 4 else "False" for at in range(6)}


def test_the_json_is_what_its_schema_says(sick: FleetResult) -> None:
    document = plain(fleet_json(sick))
    assert_valid(document, schema("fleet"))
    assert document["failed"] == ["n0017", "n0101", "n0153"]


def test_a_line_of_json_for_each_node(sick: FleetResult) -> None:
    lines = [json.loads(line) for line in json_lines(sick)]
    assert len(lines) == 200
    assert lines[17]["verdict"] == "fail"
    assert lines[17]["reasons"][0]["check"] == "NVL001"


def test_csv_and_parquet_hold_the_same_rows(sick: FleetResult) -> None:
    text, raw = io.StringIO(), io.BytesIO()
    write_csv(COLUMNS, fleet_rows(sick), text)
    write_parquet(COLUMNS, fleet_rows(sick), raw)
    rows = list(csv.DictReader(io.StringIO(text.getvalue())))
    table = pq.read_table(io.BytesIO(raw.getvalue()))
    assert tuple(table.column_names) == tuple(COLUMNS)
    assert table.num_rows == len(rows) >= 200
    assert [row["host"] for row in rows] == table.column("host").to_pylist()


def test_the_lists_are_node_sets_that_cover_the_fleet(sick: FleetResult) -> None:
    assert node_list(sick.failed) == "n[0017,0101,0153]\n"
    assert node_list(sick.passed) == "n[0000-0016,0018-0100,0102-0152,0154-0199]\n"
    assert node_list(()) == "\n"


def test_drain_commands_group_nodes_with_the_same_reason(sick: FleetResult) -> None:
    assert list(drain_lines(sick)) == [
        "scontrol update nodename=n0017 state=drain 'reason=topodiag NVL001: GPU3: 12 of 18 NVLinks are active'",
        "scontrol update nodename=n0101 state=drain 'reason=topodiag FLT001: PCIe width of gpu3: 8 (199 of 200: 16)'",
        "scontrol update nodename=n0153 state=drain"
        " 'reason=topodiag FLT001: NVIDIA driver: 550.54.15 (199 of 200: 570.86.15)'",
    ]


def test_each_node_has_a_condition(sick: FleetResult) -> None:
    table = {each["node"]: each for each in map(json.loads, conditions(sick))}
    [bad] = table["n0101"]["conditions"]
    assert (bad["type"], bad["status"], bad["reason"]) == ("TopodiagFleet", "True", "FLT001")
    assert table["n0000"]["conditions"][0]["status"] == "False"


def test_a_hostile_host_name_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace  # noqa: PLC0415

    nodes = fleet(20)
    nodes[3] = having(found("NVL001", Severity.ERROR, "$(reboot)\x1b[2J"))(replace(nodes[3], host="n1;reboot"))
    [line] = drain_lines(result_of(nodes, monkeypatch))
    assert "'nodename=n1;reboot'" in line
    assert "'reason=topodiag NVL001: $(reboot)" in line
    assert "\x1b" not in line
