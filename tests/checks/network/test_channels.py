"""NET006 and NET007: a search that collapsed, and nodes that differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks import jobs
from tests.tables import examples
from topodiag.checks.network.channels import SearchCollapsed
from topodiag.checks.network.nodes_differ import NodesDiffer
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.job import Channels, Hca, Process
from topodiag.model.nccl_view import Graph


def ring(**changes: object) -> Callable[[int, tuple[Graph, ...]], tuple[Graph, ...]]:
    return lambda host, graphs: (jobs.graph(**changes),)


def test_a_search_that_reaches_what_the_machine_has_is_clean() -> None:
    assert SearchCollapsed().judge(jobs.job()).status is Status.CLEAN
    assert SearchCollapsed().judge(jobs.job(1, graphs=ring(channels=12, bw_intra=30.0))).status is Status.CLEAN


def test_rings_over_pcie_on_an_nvswitch_node_are_an_error() -> None:
    outcome = SearchCollapsed().judge(jobs.job(1, graphs=ring(channels=2, bw_intra=20.0, type_intra="PHB")))
    (finding,) = outcome.findings
    assert finding.severity is Severity.ERROR
    assert finding.cost.gbs_lost == pytest.approx(330.8)
    assert "370.8 GB/s" in finding.message


def test_few_channels_between_nodes_are_told() -> None:
    (first,) = SearchCollapsed().judge(jobs.job(graphs=ring(channels=2, bw_intra=24.0, bw_inter=24.0))).findings
    assert "the NICs have" in first.message


@pytest.mark.parametrize("name", ["NCCL_MAX_NCHANNELS", "NCCL_P2P_DISABLE", "NCCL_MAX_CTAS"])
def test_limits_on_purpose_explain_it(name: str) -> None:
    job = jobs.job(1, graphs=ring(channels=1, bw_intra=20.0), settings={name: "1"})
    assert SearchCollapsed().judge(job).status is Status.CLEAN


def test_pcie_machines_are_not_judged() -> None:
    job = jobs.job(1, graphs=ring(channels=1, bw_intra=12.0), systems=lambda host, system: jobs.system(nvlink_gbs=0))
    assert SearchCollapsed().judge(job).status is Status.NOT_APPLICABLE


def test_gdr_off_explains_half_the_bandwidth_between_nodes() -> None:
    def hook(rank: int, host: int, process: Process) -> Process:
        return replace(process, hcas=tuple(replace(hca, gdr=False) for hca in process.hcas))

    job = jobs.job(process=hook, graphs=ring(channels=2, bw_inter=24.0, bw_intra=24.0))
    assert SearchCollapsed().judge(job).status is Status.CLEAN


def test_the_simple_order_is_told() -> None:
    note = jobs.message("topo note", "Could not find a path for pattern 4, falling back to simple order")
    (finding,) = SearchCollapsed().judge(jobs.job(1, messages=[note])).findings
    assert "simple order" in finding.message


def test_without_graphs_it_is_unknown() -> None:
    job = jobs.job(world=lambda comm: replace(comm, graphs={}))
    assert SearchCollapsed().judge(job).status is Status.UNKNOWN


def on_second(**changes: object) -> Callable[[int, int, Process], Process]:
    def hook(rank: int, host: int, process: Process) -> Process:
        def changed(hca: Hca) -> Hca:
            return replace(hca, **changes)  # type: ignore[arg-type]

        return replace(process, hcas=tuple(map(changed, process.hcas))) if host == 1 else process

    return hook


def test_equal_nodes_do_not_differ() -> None:
    assert NodesDiffer().judge(jobs.job()).status is Status.CLEAN
    assert NodesDiffer().judge(jobs.job(1)).status is Status.NOT_APPLICABLE


def test_a_slower_node_is_named_with_the_loss_for_each_nic() -> None:
    (finding,) = NodesDiffer().judge(jobs.job(process=on_second(speed_mbps=200_000))).findings
    assert finding.where.nodes == ("n1",)
    assert finding.cost.gbs_lost == 25
    assert "200 Gb/s" in finding.message


def test_one_slow_nic_among_fast_ones_is_seen_too() -> None:
    def hook(rank: int, host: int, process: Process) -> Process:
        slow = jobs.hca(0, speed_mbps=100_000)
        return replace(process, hcas=(slow, *process.hcas[1:])) if host == 1 else process

    (finding,) = NodesDiffer().judge(jobs.job(process=hook)).findings
    assert "slowest" in finding.message


def test_gdr_and_link_layer_that_differ_are_told() -> None:
    (gdr,) = NodesDiffer().judge(jobs.job(process=on_second(gdr=False))).findings
    assert gdr.where.nodes == ("n1",)
    (layer,) = NodesDiffer().judge(jobs.job(process=on_second(link_layer="RoCE"))).findings
    assert layer.severity is Severity.WARNING


def test_another_network_on_one_node_is_an_error_of_the_node_with_sockets() -> None:
    def hook(rank: int, host: int, process: Process) -> Process:
        return replace(process, network="Socket", hcas=()) if host == 1 else process

    (finding,) = NodesDiffer().judge(jobs.job(process=hook)).findings
    assert finding.severity is Severity.ERROR
    assert finding.where.nodes == ("n1",)


def test_other_names_at_equal_rates_are_no_difference() -> None:
    assert NodesDiffer().judge(jobs.job(process=on_second(name="ibp0"))).status is Status.CLEAN


def test_ranks_with_other_channel_counts_are_named() -> None:
    job = jobs.job(world=lambda comm: replace(comm, channels_by_rank={3: Channels(8)}))
    (finding,) = NodesDiffer().judge(job).findings
    assert finding.where.ranks == (3,)


def test_silent_nodes_are_not_compared() -> None:
    job = jobs.job(process=lambda rank, host, process: replace(process, network="", hcas=()))
    assert NodesDiffer().judge(job).status is Status.UNKNOWN


def test_a_device_that_one_node_cannot_open_is_told() -> None:
    event = jobs.event("other", "NET/IB : Unable to open device mlx5_1", "n1")
    [finding] = NodesDiffer().judge(jobs.job(events=[event])).findings
    assert (finding.severity, finding.where.nodes, finding.where.nics) == (Severity.WARNING, ("n1",), ("mlx5_1",))
    everywhere = [event, replace(event, host="n0")]
    assert NodesDiffer().judge(jobs.job(events=everywhere)).status is Status.CLEAN


def lost_tree(version: str = "2.27.7", pattern: int = 1, **of_ring: object) -> Finding:
    note = jobs.message("topo note", f"Could not find a path for pattern {pattern}, falling back to simple order")
    rings = ring(**{"channels": 4, "bw_intra": 24.0, "bw_inter": 24.0, **of_ring})
    plain = jobs.job(messages=[note], graphs=rings, systems=lambda host, system: jobs.system(nvlink_gbs=0))
    (finding,) = SearchCollapsed().judge(replace(plain, nccl_versions=(version,))).findings
    return finding


@pytest.mark.parametrize(
    "finding", [lost_tree("2.24.3"), lost_tree("2.29.2"), lost_tree(pattern=4), lost_tree(bw_inter=0.1), lost_tree("")]
)
def test_the_cause_is_named_only_where_that_fault_of_nccl_explains_it(finding: Finding) -> None:
    assert "simple order" in finding.message
    assert not finding.settings


@examples("text", "told")
def test_sockets_that_met_nccls_own_ib_tell_of_two_networks_from_one_nodes_log(text: str, told: str) -> None:
    outcome = NodesDiffer().judge(jobs.job(1, events=[jobs.event("mismatch", text)]))
    if told:
        (finding,) = outcome.findings
        assert told in finding.message
        assert finding.severity is Severity.ERROR
    else:
        assert outcome.status is Status.NOT_APPLICABLE
