"""What the page, the JSON and the heat map of a sweep show, for a fabric with planted faults; what it accuses is a
finding."""

import json
from dataclasses import replace
from importlib.resources import files
from random import Random
from typing import Any

import defusedxml.ElementTree
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sweep_fabric import Noise, fabric_of, measure, sweep
from tests.tables import examples
from tests.valid import assert_valid
from topodiag.draw.heat import heat, heat_svg
from topodiag.report.documents.from_model import plain
from topodiag.report.interface import Style
from topodiag.report.sweep.page import draw_sweep, sweep_json
from topodiag.report.text import Page
from topodiag.sweep.judge import judge
from topodiag.sweep.parts import fault_words, sweep_findings, untold
from topodiag.sweep.plan import first_round
from topodiag.sweep.values import Fabric, Fault, Part, State, SweepJudgement, SweepPlan

FABRIC = fabric_of(16, 2)
FAULTS = {Part("link", "node003", 2): 0.5, Part("gpu", "node012", 6): 0.75}
SWEEP = sweep(FABRIC, FAULTS, 1, Noise(0.01, 0))


def page_of(judged, plans, *, further=None, **style):
    page = Page(Style(**style))
    draw_sweep(page, judged, plans, further)
    return [line.plain for line in page.lines]


def words_of(lines):
    return " ".join(" ".join(lines).split())


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_no_line_is_wider_than_the_page_and_ascii_is_ascii(width, ascii_only):
    lines = page_of(SWEEP.judgement, SWEEP.plans, width=width, ascii=ascii_only, verbose=1)
    assert max(map(len, lines)) <= width
    assert not ascii_only or "\n".join(lines).isascii()


def test_settings_are_a_table_with_the_fastest_first():
    plan = first_round(FABRIC, ("settings",), algorithms=("Ring", "Tree"), protocols=("Simple",))
    results = measure(plan, {}, Random(1), Noise(0, 0))
    results[0] = replace(results[0], gbs=100.0)
    lines = page_of(judge([plan], results), [plan])
    rows = [line.split() for line in lines if line.strip().startswith("all_reduce")]
    assert [row[1] for row in rows] == ["Tree", "Ring"]


def test_the_matrix_folds_nodes_where_there_are_more_than_fit():
    made = heat(SWEEP.judgement, FABRIC, 8)
    assert made.labels[0] == "node[001-002]"
    assert (made.block, len(made.labels)) == (2, 8)
    slow = made.cells[1, 1]  # the worst of the block: node003's pair with node004
    assert "node003" in slow.run.nodes


def test_a_run_that_was_slow_by_chance_is_not_red_once_it_was_done_again():
    measurement = sweep(FABRIC, {}, 1, Noise(0.01, 0))
    first = measurement.judgement.runs[0]
    assert first.run.kind == "intra"
    slow = replace(first, gbs=1.0, standing=type(first.standing)("low"))
    judged = replace(measurement.judgement, runs=(slow, *measurement.judgement.runs))
    assert heat(judged, FABRIC, 99).cells[0, 0] == first


def test_the_svg_is_well_formed_and_every_measured_cell_has_its_run_as_a_tooltip():
    root = defusedxml.ElementTree.fromstring(heat_svg(SWEEP.judgement, FABRIC, "Pairs <of> nodes"))
    cells = [element for element in root if element.get("class", "").startswith("c ")]
    assert len(cells) == 16 * 16
    names = [cell[0].text for cell in cells if len(cell)]
    assert any("pairs-node003+node004" in text or "node003+" in text for text in names)
    assert "<of>" in "".join(element.text or "" for element in root)


def test_json_has_every_run_and_every_fault_with_its_parts():
    document = json.loads(json.dumps(plain(sweep_json(SWEEP.judgement, SWEEP.plans, None)), allow_nan=False))
    assert len(document["runs"]) == SWEEP.runs
    nic = next(fault for fault in document["faults"] if fault["nics"])
    assert nic["confirmed"]
    assert (nic["nics"], nic["check"]) == (["mlx5_2"], "BEN005")
    assert {part["kind"] for part in nic["parts"]} == {"link", "pcie"}


@examples("parts", "words")
def test_every_part_has_words(parts, words):
    fault = Fault(tuple(Part(*part) for part in parts), (), (1,), 0.5, confirmed=False)
    assert fault_words(fault, replace(FABRIC, nodes=("n1", "n2"))) == [words]


def test_what_cannot_be_told_apart_is_said_of_links_alone_too():
    assert "PCIe" not in untold(Fault((Part("link", "n1", 2),), (), (1, 2), 0.5, confirmed=True))


@given(st.text(max_size=30), st.sampled_from(["gpu", "board", "link", "pcie", "host", "leaf", "uplink", "path"]))
def test_hostile_names_never_reach_the_terminal_as_they_are(name, kind):
    plan = SweepPlan(Fabric(("a", "b"), racks={"a": name}), ())
    judged = SweepJudgement(faults=(Fault((Part(kind, name, 0),), (), (1, 2), None, confirmed=True),), notes=(name,))
    text = "".join(page_of(judged, [plan]))
    assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in text)
    defusedxml.ElementTree.fromstring(heat_svg(judged, plan.fabric, name))


def test_a_failed_run_is_marked_and_has_its_reason():
    plan = first_round(FABRIC, ("intra",))
    results = measure(plan, {}, Random(1), Noise(0.01, 0))
    results[4] = replace(results[4], state=State.TIMEOUT, gbs=None, why="no end after 180 s")
    text = "\n".join(page_of(judge([plan], results), [plan]))
    assert "1-intra-node005: no end after 180 s" in text
    assert "its runs fail" in text
    assert "x" in next(line for line in text.splitlines() if line.startswith("  node005"))


SCHEMA = json.loads((files("topodiag.report") / "schema" / "sweep-1.0.schema.json").read_text())


def document_of(judged: SweepJudgement) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(plain(sweep_json(judged, SWEEP.plans, None)), allow_nan=False))
    assert_valid(document, SCHEMA)
    return document


def test_every_fault_and_gap_is_a_finding() -> None:
    judged = SWEEP.judgement
    document = document_of(judged)
    assert len(document["findings"]) == len(judged.faults) + len(judged.gaps) > 0
    severities = [finding["severity"] for finding in document["findings"]]
    assert severities == ["error"] * len(judged.confirmed) + ["warning"] * (len(severities) - len(judged.confirmed))


def test_a_finding_names_the_check_that_the_fault_names() -> None:
    document = document_of(SWEEP.judgement)
    for fault, finding in zip(document["faults"], document["findings"], strict=False):
        assert finding["id"] == (fault["check"] or "BEN001")
        assert all(where in finding["message"] for where in fault["where"])


def test_runs_that_fail_are_a_finding_without_a_bandwidth() -> None:
    judged = SWEEP.judgement
    failed = replace(judged, faults=tuple(replace(fault, share=None) for fault in judged.faults))
    findings = sweep_findings(failed, SWEEP.plans[-1].fabric)
    assert all("its runs fail" in finding.message for finding in findings[: len(judged.faults)])
    assert all(finding.id == "BEN001" for finding in findings[: len(judged.faults)])


def test_a_sweep_without_faults_has_no_findings() -> None:
    assert document_of(SweepJudgement())["findings"] == []
