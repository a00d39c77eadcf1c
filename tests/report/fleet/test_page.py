"""A compared fleet on a page, as JSON, as tables and as lists for schedulers."""

import csv
import io
import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from tests.app.test_compare import found, having, result_of
from tests.fleet.fleets import both, fleet, standing, with_fact
from tests.valid import assert_valid
from topodiag.emit.fleet_lists import conditions, drain_lines, node_list, pass_list
from topodiag.model.finding import Severity
from topodiag.model.fleet import FleetResult
from topodiag.model.provenance import NotObserved
from topodiag.report.documents.from_model import schema
from topodiag.report.documents.write_json import plain
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


def test_ten_thousand_nodes_with_many_reasons_are_classes_with_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    sick = {at * 7: having(found("NVL001", Severity.ERROR, f"GPU{at % 8}: {at} errors")) for at in range(30)}
    lines = page_of(result_of(fleet(300, sick), monkeypatch))
    assert lines[0].startswith("✖ 30 of 300 nodes to exclude now  n[0000,0007,")
    assert lines[2].startswith("  ✖ 30 nodes  n[0000,0007,0014,…]  NVL001  ")
    assert len(lines) < 20


@pytest.mark.parametrize(("sick", "told"), [(range(0, 20, 2), True), (range(2), False), (range(4), False)])
def test_a_reason_that_many_nodes_share_is_rather_one_cause_for_all(
    sick: range, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = having(found("HST005", Severity.ERROR, "nvidia-smi hangs"))
    text = " ".join(" ".join(page_of(result_of(fleet(20, dict.fromkeys(sick, hangs)), monkeypatch))).split())
    message = f"HST005 on {len(sick)} of 20 nodes of one kind: look first for one cause that they share"
    assert (message in text) is told


@pytest.mark.parametrize(("sick", "told"), [(4, False), (12, True)])
def test_nodes_that_hung_before_they_told_their_kind_are_many_only_beside_the_whole_fleet(
    sick: int, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = having(found("HST005", Severity.ERROR, "nvidia-smi hangs"))
    nothing = (("product", ""), ("GPU", ""), ("role", "no GPU"), ("captured in", ""))
    nodes = [replace(each, traits=nothing) if at < sick else each
             for at, each in enumerate(fleet(30, dict.fromkeys(range(sick), hangs)))]  # fmt: skip
    result = result_of(nodes, monkeypatch)
    text = " ".join(" ".join(page_of(result)).split())
    assert f"✖ {sick} of 30 nodes to exclude now" in text
    assert f"{sick} nodes kind unknown" in text
    assert (f"HST005 on {sick} of 30 nodes: look first for one cause" in text) is told
    assert ("look first for one cause" in text) is told


def test_a_roll_out_that_has_reached_two_fifths_excludes_nobody_and_shows_both_populations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    newer = with_fact("driver", "NVIDIA driver", "580.65.06")
    lines = page_of(result_of(fleet(20, dict.fromkeys(range(8), newer)), monkeypatch))
    assert lines[0] == "✔ no node of 20 to exclude"
    at = next(at for at, line in enumerate(lines) if "populations" in line)
    assert [line.strip() for line in lines[at + 1 : at + 3]] == ["12: 570.86.15", "8: 580.65.06"]


def test_a_difference_that_too_few_siblings_tell_is_shown_as_a_hint_and_excludes_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = page_of(result_of(fleet(3, {2: with_fact("pci", "width", "8", part="gpu3")}), monkeypatch))
    assert lines[0] == "✔ no node of 3 to exclude"
    assert any(line.startswith("  ● FLT001  1 node  PCIe width of gpu3: 8 (2 of 3: 16)") for line in lines)
    assert not any("cost nothing" in line for line in lines)


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


@pytest.mark.parametrize(("why", "sign"), [("is damaged", "?"), ("an older capture of n0001", "✔")])
def test_a_capture_that_was_not_read_leaves_the_answer_open_and_an_older_one_does_not(
    why: str, sign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = replace(result_of(fleet(20), monkeypatch), left_out=(NotObserved("a.tar.gz", why),))
    assert page_of(result)[0][0] == sign
    assert ("1 capture not read" in page_of(result)[0]) is (sign == "?")


def test_each_reason_for_which_captures_were_left_out_is_said_once_with_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [NotObserved(f"{at}.tar.gz", f"an older capture of n{at}") for at in range(3)]
    changed = NotObserved("9.tar.gz", "has changed since it was collected")
    lines = page_of(replace(result_of(fleet(20), monkeypatch), left_out=(*left, changed)))
    at = lines.index("? 4 captures left out")
    assert lines[at + 1] == "  0.tar.gz and 2 more  another capture of the same node is newer"
    assert lines[at + 2] == "  9.tar.gz  has changed since it was collected"


def test_a_fleet_without_a_difference_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert page_of(result_of(fleet(20), monkeypatch))[0] == "✔ no node of 20 to exclude"


def test_too_few_siblings_are_no_clean_bill(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = page_of(result_of(fleet(2), monkeypatch))
    assert lines[0] == "? no node of 2 to exclude; 2 nodes have no peers to compare with"


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


def test_a_warning_that_all_nodes_have_is_on_the_page_and_in_the_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    everywhere = dict.fromkeys(range(20), having(found("HST003", Severity.WARNING, "NUMA balancing is on")))
    lines = page_of(result_of(fleet(20, everywhere), monkeypatch))
    assert lines[0] == "▲ no node of 20 to exclude"
    assert "  ▲ HST003  20 nodes  NUMA balancing is on" in lines
