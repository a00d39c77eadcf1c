"""PCI003: AER errors and replays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import networks as network
from tests.checks import nodes
from tests.checks.networks import counter, with_pci
from tests.checks.nodes import HOUR, only, read, status
from topodiag.checks.pcie.errors import PcieErrors
from topodiag.model.finding import Confidence, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Counter, Fact

DEVICE = "0000:30:00.0"
"""GPU4 of the machine."""


def errors(node: Node) -> Any:
    return PcieErrors().judge(node, ())


def counting(*counters: Counter, bus_id: str = DEVICE) -> Node:
    """A machine whose functions all count, with these counters at one of them."""
    node = network.ib_h100()
    quiet = {"aer_correctable_total": counter("aer_correctable_total", 0)}
    node = replace(node, pci={key: replace(item, counters=quiet) for key, item in node.pci.items()})
    return with_pci(node, bus_id, counters={sample.name: sample for sample in counters})


def test_a_machine_that_counts_nothing_is_clean() -> None:
    assert status(errors(counting())) == "clean"


def test_without_counters_nothing_is_known() -> None:
    assert status(errors(network.ib_h100())) == "unknown"
    assert status(errors(Node("empty"))) == "not_applicable"


@pytest.mark.parametrize("name", ["aer_fatal_total", "aer_nonfatal_total"])
def test_an_uncorrectable_error_between_the_samples_is_an_error(name: str) -> None:
    finding = only(errors(counting(counter(name, 3, 4))))
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.HIGH)
    assert finding.message.startswith("GPU4 has PCIe errors now:")
    assert finding.expected == "no uncorrectable errors"
    assert "Drain the node" in finding.fix[0]
    assert finding.evidence[0].source == "sample2/counters"


def test_uncorrectable_errors_since_boot_are_a_warning() -> None:
    finding = only(errors(counting(counter("aer_fatal_total", 2))))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)
    assert "since boot" in finding.observed
    assert "--sample" in finding.fix[0]


def test_unsupported_requests_since_boot_are_left_by_probing() -> None:
    unsupported = counter("aer_nonfatal_UnsupReq", 2)
    assert status(errors(counting(counter("aer_nonfatal_total", 2), unsupported))) == "clean"
    assert status(errors(counting(counter("aer_nonfatal_total", 3), unsupported))) == "finding"


@pytest.mark.parametrize(("grown", "found"), [(31, False), (32, True)])
@pytest.mark.parametrize("name", ["aer_correctable_total", "replay"])
def test_corrected_errors_are_judged_by_the_specified_bit_error_rate(name: str, grown: int, found: bool) -> None:
    outcome = errors(counting(counter(name, 1000, 1000 + grown, 60.0)))
    assert status(outcome) == ("finding" if found else "clean")
    if found:
        assert only(outcome).severity is Severity.WARNING
        assert only(outcome).expected == "at most 31 in 60 s (bit error rate 1e-12 on Gen5 x16)"


def test_few_corrected_errors_since_boot_are_silent_even_on_a_young_node() -> None:
    def young(total: int) -> Node:
        return nodes.with_os(counting(counter("replay", total)), uptime_s=read(60.0))

    assert status(errors(young(100))) == "clean"
    assert status(errors(young(101))) == "finding"


def test_totals_are_judged_by_the_uptime() -> None:
    # 31 a minute for 100 hours.
    assert status(errors(counting(counter("replay", 180_000)))) == "clean"
    finding = only(errors(counting(counter("replay", 190_000))))
    assert "in 4 days 4 h since boot" in finding.observed
    blind = nodes.with_os(counting(counter("replay", 190_000)), uptime_s=Fact())
    assert status(errors(blind)) == "clean"
    assert HOUR == 3600.0


def test_counters_that_went_back_are_no_reading() -> None:
    assert status(errors(counting(counter("aer_fatal_total", 5, 1)))) == "clean"


def test_the_port_above_counts_what_it_receives() -> None:
    parent = network.ib_h100().pci[DEVICE].parent
    assert parent is not None
    finding = only(errors(counting(counter("aer_fatal_total", 0, 1), bus_id=parent)))
    assert finding.where.links == (parent,)
    assert finding.where.gpus == ("GPU4",)


def test_functions_below_one_port_do_not_tell_its_errors_twice() -> None:
    parent = network.ib_h100().pci[DEVICE].parent
    assert parent is not None
    node = counting(counter("aer_fatal_total", 0, 1), bus_id=parent)
    twin = node.nics[0].bus_id
    assert twin is not None
    assert only(errors(with_pci(node, twin, parent=parent))).where.links == (parent,)


def test_a_switch_above_several_devices_names_them() -> None:
    node = network.ib_h100()
    downstream = node.pci[DEVICE].parent
    upstream = node.pci[str(downstream)].parent
    finding = only(errors(counting(counter("aer_fatal_total", 0, 1), bus_id=str(upstream))))
    assert (finding.where.gpus, finding.where.nics) == (("GPU4",), ("mlx5_4",))
