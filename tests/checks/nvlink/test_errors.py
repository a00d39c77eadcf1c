"""NVL003: NVLink error counters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import nodes
from tests.checks.nodes import only, read, status
from topodiag.checks.nvlink.errors import NvlinkErrors, unpack_ber
from topodiag.model.finding import Confidence, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Counter


def judge(node: Node) -> Any:
    return NvlinkErrors().judge(node, ())


def counting(name: str, first: int, later: int | None = None, seconds: float = 10.0, gpu: int = 3) -> Node:
    """Eight H100 whose links have the counter at 0, except link 6 of one GPU."""
    node = nodes.hgx_h100()
    second = later is not None
    quiet = Counter(name, read(0), read(0) if second else nodes.Fact(), seconds if second else 0.0)
    node = nodes.with_gpus(node, nvlinks=tuple(replace(at, counters={name: quiet}) for at in nodes.links(18, 26.562)))
    loud = replace(quiet, first=read(first), later=read(later) if second else nodes.Fact())
    links = list(node.gpus[gpu].nvlinks)
    links[6] = replace(links[6], counters={name: loud})
    return nodes.with_gpu(node, gpu, nvlinks=tuple(links))


@pytest.mark.parametrize("name", ["replay", "recovery", "malformed_packet", "link_recovery_failed", "effective_errors"])
def test_one_more_error_between_two_samples_is_an_error(name: str) -> None:
    finding = only(judge(counting(name, 7, 8)))
    assert finding.severity is Severity.ERROR
    assert finding.where.links == ("GPU3 link 6",)
    assert finding.observed.endswith("+1 on GPU3 link 6 in 10 s")


def test_counters_that_grow_are_one_finding() -> None:
    node = counting("replay", 7, 9)
    links = list(node.gpus[3].nvlinks)
    recovery = Counter("recovery", read(0), read(1), 10.0)
    links[6] = replace(links[6], counters={**links[6].counters, "recovery": recovery})
    finding = only(judge(nodes.with_gpu(node, 3, nvlinks=tuple(links))))
    assert finding.where.links == ("GPU3 link 6",)
    assert "replay +2" in finding.observed
    assert "recovery +1" in finding.observed


def test_crc_errors_warn_and_fail_above_a_hundred_a_second() -> None:
    assert only(judge(counting("crc_flit", 0, 5))).severity is Severity.WARNING
    assert only(judge(counting("crc_flit", 0, 1000))).severity is Severity.ERROR


def test_large_totals_that_do_not_grow_are_silent() -> None:
    assert status(judge(counting("replay", 100_000, 100_000))) == "clean"


def test_one_sample_with_a_small_total_is_silent() -> None:
    outcome = judge(counting("replay", 20))
    assert status(outcome) == "clean"
    assert "one sample" in outcome.why


def test_one_sample_with_a_large_total_is_a_hint() -> None:
    finding = only(judge(counting("replay", 5000)))
    assert finding.severity is Severity.INFO
    assert finding.confidence is Confidence.LOW
    assert "sample" in finding.fix[0]


def test_a_recovery_that_failed_once_is_a_warning_even_in_one_sample() -> None:
    assert only(judge(counting("link_recovery_failed", 1))).severity is Severity.WARNING


def test_a_counter_that_went_back_is_unknown() -> None:
    assert status(judge(counting("replay", 50, 0))) == "unknown"


def test_no_counters_are_unknown() -> None:
    assert status(judge(nodes.hgx_h100())) == "unknown"


def test_products_without_nvlink_and_mig_are_not_judged() -> None:
    assert status(judge(nodes.l40s_box())) == "not_applicable"
    assert status(judge(nodes.with_gpus(counting("replay", 0, 9), mig=read(True)))) == "not_applicable"


def test_traffic_counters_are_no_errors() -> None:
    assert status(judge(counting("data_tx_kib", 0, 10**9))) == "unknown"


def test_the_bit_error_rate_is_unpacked_as_nvml_packs_it() -> None:
    assert unpack_ber(0xFFF) == 0.0
    assert unpack_ber(0x30B) == pytest.approx(3e-11)
    assert unpack_ber(None) is None
    assert unpack_ber(1 << 40) is None


def test_a_bit_error_rate_above_the_limit_is_an_error() -> None:
    node = counting("replay", 0, 0)
    links = list(node.gpus[3].nvlinks)
    ber = Counter("effective_ber", read(0x30B))
    links[6] = replace(links[6], counters={**links[6].counters, "effective_ber": ber})
    finding = only(judge(nodes.with_gpu(node, 3, nvlinks=tuple(links))))
    assert finding.where.links == ("GPU3 link 6",)
    assert finding.severity is Severity.ERROR
