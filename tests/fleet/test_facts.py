"""Facts of nodes, and the statistics by which they are compared."""

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.fleet_statistics import Score, judge, simulate
from tests.checks.bent import Built, machine
from tests.checks.nodes import hgx_h100, read
from tests.tables import examples, parts
from topodiag.fleet.columns import far, rises_faster
from topodiag.fleet.facts import facts_of
from topodiag.model.events import Event
from topodiag.model.fleet import FactKind, How, NodeFact
from topodiag.model.node import Node, Os
from topodiag.model.provenance import Origin


def rows(node: Node) -> dict[tuple[str, str, str], NodeFact]:
    return {(fact.family, fact.part, fact.key): fact for fact in facts_of(node)}


def with_command_line(text: str) -> dict[tuple[str, str, str], NodeFact]:
    return rows(Node("n1", os=Os(cmdline=read(text, "proc/cmdline", 1))))


def test_a_secret_of_the_command_line_is_hidden_though_its_name_stands_in_another_field() -> None:
    node_facts = with_command_line(
        "ro rd.iscsi.password=hunter2 netroot=iscsi:bob:hunter2@10.0.0.1::3260:1:iqn.x iommu=pt"
    )
    assert "hunter2" not in str(list(node_facts.values()))
    assert node_facts["kernel command line", "", "rd.iscsi.password"].value == "<hidden>"
    assert node_facts["kernel command line", "", "iommu"].value == "pt"


def test_each_fact_of_a_node_has_one_row() -> None:
    node_facts = facts_of(hgx_h100())
    assert len(rows(hgx_h100())) == len(node_facts)


@examples("node", "changes", "wanted")
def test_facts_of_a_node(node: Built, changes: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Each fact by `family: part: key`, with its value, with several of its fields, or "null" where there is none."""
    found = rows(machine(node, changes, bare=lambda: Node("n1")))
    named = {": ".join(key): fact for key, fact in found.items()}
    shown = {
        key: parts(named[key], part) if isinstance(part, dict) else named[key].value if key in named else "null"
        for key, part in wanted.items()
    }
    assert shown == wanted


def test_what_is_not_known_has_no_row() -> None:
    assert facts_of(Node("bare")) == ()


def test_which_gpus_a_gpu_may_reach_is_a_fact_of_it() -> None:
    node = hgx_h100()
    words = {(a.label, b.label): read("OK" if b.index < 7 else "NS") for a in node.gpus for b in node.gpus}
    node_facts = rows(replace(node, p2p={"read": words}))
    assert node_facts["peer access", "gpu0", "read"].value == "NS GPU7; OK GPU1-6"


def test_troubles_in_the_kernels_log_are_counted_by_part_and_kind() -> None:
    node = hgx_h100()
    at = Origin("dmesg.txt", 4)
    fields = {"bus_id": node.gpus[2].bus_id or "", "code": 79}
    events = tuple(Event("xid", "", "Xid 79", at, fields) for _ in range(3))
    fact = rows(replace(node, events=events))["kernel log", "gpu2", "xid 79"]
    assert (fact.value, fact.kind, fact.source) == (3, FactKind.COUNTER, "dmesg.txt:4")


# --- Odd nodes of simulated fleets are found, and healthy ones left alone (benchmarks/fleet_statistics.py, in small)
#


def test_of_simulated_fleets_the_odd_nodes_are_found_and_no_others() -> None:
    dice, score = np.random.default_rng(5), Score()
    for _ in range(20):
        judge(simulate(dice, most=150), score)
    assert score.odd >= 10
    assert score.found >= 0.99 * score.odd
    assert score.false <= max(1, score.nodes // 1000)


def test_three_values_have_no_rule() -> None:
    assert far(np.asarray([1.0, 1.0, 50.0]), "GB/s") is None


def test_four_to_nine_values_are_judged_by_the_range_of_the_others() -> None:
    outlier = far(np.asarray([370.0, 371.0, 369.0, 300.0]), "GB/s")
    assert (outlier.mask.tolist(), outlier.how) == ([False, False, False, True], How.RATIO)


def test_of_few_values_two_odd_ones_have_no_majority_against_them() -> None:
    outlier = far(np.asarray([370.0, 371.0, 200.0, 100.0]), "GB/s")
    assert not outlier.mask.any()


def test_a_difference_within_the_noise_of_the_instrument_is_none_at_any_number_of_deviations() -> None:
    values = np.full(50, 370.0) + np.linspace(0, 0.001, 50)
    values[7] = 365.0
    outlier = far(values, "GB/s")
    assert not outlier.mask.any()


def test_a_heavy_tail_is_not_odd() -> None:
    dice = np.random.default_rng(1)
    outlier = far(370 * np.exp(0.01 * dice.standard_t(5, 2000)), "GB/s")
    assert outlier.mask.sum() <= 2


def test_of_numbers_that_are_mostly_equal_any_other_one_is_odd() -> None:
    values = np.full(40, 1e12)
    values[3], values[4] = 7.5e11, 1.0001e12
    outlier = far(values, "bytes")
    assert np.flatnonzero(outlier.mask).tolist() == [3]


@examples("counts", "odd")
def test_a_counter_that_all_siblings_have_is_the_sites(counts: list[float], odd: bool) -> None:
    ndarray, _ = rises_faster(np.asarray(counts, float), np.full(5, 100.0), np.full(5, np.nan))
    assert bool(ndarray[-1]) is odd
