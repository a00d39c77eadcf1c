"""NET006 beside captures: graphs of a log against those that NCCL would find on the machines as they were captured."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.checks import jobs
from tests.scanned import node_at
from topodiag.checks.network.captured_search import Searched, gap_of, searched_on_captures
from topodiag.checks.network.channels import SearchCollapsed
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.job import Channels, Hca, Job, Process
from topodiag.model.node import Node
from topodiag.model.provenance import known

VERSION = "2.28.9"
Edit = Callable[[Job], Job]


def capture() -> Node:
    """A DGX H100 with all of its NVLinks and NICs."""
    return node_at("fixture:dgx-h100-healthy")


def listed() -> tuple[Hca, ...]:
    """The NICs as NCCL lists them there: every port that is active."""
    up = [nic for nic in capture().nics if nic.rdma_name and nic.ports and nic.ports[0].state.value == "ACTIVE"]
    return tuple(Hca(number, nic.rdma_name or "", link_layer="IB") for number, nic in enumerate(up))


def job(hosts: int = 1, **changes: Any) -> Job:
    """A job on captured DGX H100 that found what NCCL finds there, with something changed."""
    ring = jobs.graph(channels=16 if hosts > 1 else 12, bw_intra=24.0 if hosts > 1 else 30.0, bw_inter=24.0)
    found = [changes.pop("ring", ring), jobs.graph(pattern=1), jobs.graph(pattern=5, channels=8, bw_intra=40.0)]
    process: Callable[..., Process] = changes.pop("process", lambda rank, host, process: process)

    def on_machine(rank: int, host: int, made: Process) -> Process:
        return process(rank, host, replace(made, hcas=listed(), versions={"nccl": VERSION}))

    document = jobs.job(hosts, process=on_machine, graphs=lambda host, graphs: tuple(found), **changes)
    buses = [gpu.bus_id or "" for gpu in capture().gpus]
    ranks = tuple(replace(rank, bus_id=buses[rank.cuda_dev]) for rank in document.ranks)
    world = replace(document.communicators[0], channels=Channels(24, 0, 16, 32, 32))
    machines = {host: replace(capture(), host=host) for host in document.hosts}
    return replace(document, ranks=ranks, communicators=(world,), machines=machines, nccl_versions=(VERSION,))


def slow(hosts: int = 1, **changes: Any) -> Job:
    """The same with two rings over PCIe: what must be found wherever nothing leaves the comparison open."""
    return job(hosts, ring=jobs.graph(channels=2, bw_intra=10.0, bw_inter=10.0, type_intra="PHB"), **changes)


def only(run: Job) -> Finding:
    (finding,) = SearchCollapsed().judge(run).findings
    return finding


def beside(run: Job) -> Searched:
    searched = searched_on_captures(run, across=len(run.hosts) > 1)
    assert isinstance(searched, Searched), searched
    return searched


@pytest.mark.parametrize("hosts", [1, 2])
def test_the_graphs_that_nccl_finds_on_the_capture_are_clean(hosts: int) -> None:
    document = job(hosts)
    assert gap_of(document, beside(document), across=hosts > 1) is None
    assert SearchCollapsed().judge(document).status is Status.CLEAN


@pytest.mark.parametrize("hosts", [1, 2])
def test_rings_over_pcie_beside_nvlinks_that_are_up_name_both_sources(hosts: int) -> None:
    finding = only(slow(hosts))
    assert finding.severity is Severity.ERROR
    assert "2 rings of 10 GB/s over PHB" in finding.observed
    assert "predict of the capture of n" in finding.expected
    assert "over NVL" in finding.expected
    assert f"NCCL {VERSION}" in finding.expected
    assert finding.where.nodes == tuple(f"n{number}" for number in range(hosts))
    assert {origin.text[:9] for origin in finding.evidence if origin.source == "job.log"} == {"Pattern 4", "=== Syste"}
    assert any("Pattern 4" in step and "container" in step for step in finding.fix)


def test_the_cost_is_the_price_of_both_graphs_by_one_model() -> None:
    run = slow()
    searched = beside(run)
    whole = searched.prediction.all_reduce
    cost = only(run).cost
    assert cost.gbs_lost < whole.busbw_gbs
    assert f"instead of {whole.busbw_gbs:.1f}".removesuffix(".0") in cost.text
    assert searched.cost(searched.prediction.graphs).gbs_lost is None


def test_a_far_nic_is_found_by_the_type_of_the_way() -> None:
    ring = jobs.graph(channels=16, bw_intra=24.0, bw_inter=24.0, type_inter="SYS")
    assert "SYS to NICs" in only(job(2, ring=ring)).observed


@pytest.mark.parametrize(("coll", "nvls"), [(24, 16), (24, 0), (12, 16), (12, 0)])
def test_half_the_channels_and_more_of_a_log_without_graphs_leave_it_open(coll: int, nvls: int) -> None:
    assert SearchCollapsed().judge(without_graphs(coll, nvls)).status is Status.UNKNOWN


def without_graphs(coll: int, nvls: int) -> Job:
    document = job()
    counted = Channels(coll, 0, nvls, 4, 4)
    return replace(
        document, communicators=(replace(document.communicators[0], graphs={}, systems={}, channels=counted),)
    )


@pytest.mark.parametrize("nvls", [0, 16])
def test_few_channels_are_found_in_a_log_without_graphs(nvls: int) -> None:
    assert only(without_graphs(2, nvls)).observed == "NCCL's log: 2 coll channels"


def test_one_step_of_the_search_is_no_contradiction() -> None:
    document = job(ring=jobs.graph(channels=12, bw_intra=24.0))
    assert gap_of(document, beside(document), across=False) is None


def test_more_than_predicted_accuses_nobody() -> None:
    document = job()
    down = replace(capture(), gpus=tuple(replace(gpu, nvlinks=gpu.nvlinks[:6]) for gpu in capture().gpus))
    assert gap_of(document, beside(replace(document, machines={"n0": down})), across=False) is None


# --- where the comparison is not made --------------------------------------------------------------------------------


def of_process(**changes: Any) -> Callable[..., Process]:
    return lambda rank, host, process: replace(process, **changes)


def on_world(**changes: Any) -> Edit:
    def edit(run: Job) -> Job:
        return replace(run, communicators=(replace(run.communicators[0], **changes),))

    return edit


def on_node(edit: Callable[[Node], Node]) -> Edit:
    return lambda run: replace(run, machines={host: edit(node) for host, node in run.machines.items()})


def each_gpu(**changes: Any) -> Edit:
    return on_node(lambda node: replace(node, gpus=tuple(replace(gpu, **changes) for gpu in node.gpus)))


def each_nic(edit: Callable[[Any], Any]) -> Edit:
    return on_node(lambda node: replace(node, nics=tuple(map(edit, node.nics))))


def settings(name: str, value: str) -> Mapping[str, Any]:
    return {"settings": {name: value}}


IN_THE_LOG: dict[str, tuple[Job, str]] = {
    "a newer version": (replace(slow(), nccl_versions=("2.99.1",)), "not modelled"),
    "an old version": (replace(slow(), nccl_versions=("2.4.8",)), "not modelled"),
    "two versions": (replace(slow(), nccl_versions=(VERSION, "2.27.7")), "not modelled"),
    "a cut log": (replace(slow(), cut_logs=("job.log",)), "is cut"),
    "the logs of some ranks": (replace(slow(), ranks=slow().ranks[:5]), "5 of 8 ranks"),
    "a split of which some members are unknown": (
        on_world(ranks=np.array([0, 1, -1, -1, -1, -1, -1, -1]))(slow()),
        "2 of 8 ranks",
    ),
    "no line of a communicator": (on_world(inferred=True)(slow()), "of 8 ranks"),
    "a net plugin": (slow(process=of_process(network="AWS Libfabric")), "a plugin"),
    "a tuner plugin": (slow(process=of_process(versions={"tuner plugin": "v3"})), "a plugin"),
    "a topology file that was loaded": (
        slow(messages=[jobs.message("topo file", "Loading topology file /opt/x.xml")]),
        "topology file",
    ),
    "peer-to-peer refused by the driver": (
        slow(messages=[jobs.message("p2p off", "P2P is disabled between connected GPUs 0 and 1")]),
        "P2P001",
    ),
    "NVLinks left out": (slow(messages=[jobs.message("nvlink untold", "RemoteDeviceType for NVLink 3")]), "NVL004"),
    **{
        f"{name} is set": (slow(**settings(name, "1")), name)
        for name in (
            "NCCL_MIN_NCHANNELS",
            "NCCL_MIN_CTAS",
            "NCCL_TOPO_FILE",
            "NCCL_NET",
            "NCCL_NET_PLUGIN",
            "NCCL_TUNER_PLUGIN",
            "NCCL_MNNVL_ENABLE",
            "NCCL_SYM_CTAS",
            "Max CTAs",
            "Net name",
        )
    },
    "NCCL_HOSTID, and no count of nodes": (on_world(nodes=-1)(slow(**settings("NCCL_HOSTID", "a"))), "NCCL_HOSTID"),
}
OF_MACHINES: dict[str, tuple[Job, str]] = {
    "no capture": (replace(slow(), machines={}), "no capture"),
    "captures of some nodes": (replace(slow(2), machines={"n0": capture()}), "no capture of n1"),
    "a capture of another machine": (each_gpu(bus_id="0000:77:00.0")(slow()), "not those in the capture"),
    "MIG": (each_gpu(mig=known(True))(slow()), "MIG"),
    "no NVLinks read": (
        on_node(lambda node: replace(node, smi_matrix={}))(each_gpu(nvlinks=(), nvlink_note=known(None))(slow())),
        "does not show the NVLinks",
    ),
    "one NVLink domain of several hosts": (on_world(mnnvl=True)(slow(2)), "NCCL counts"),
    "two hosts as one node": (on_world(nodes=1)(slow(2)), "NCCL counts 1 node"),
    "containers that part a host": (on_world(nodes=8)(slow()), "NCCL counts 8 nodes"),
    "a part of the GPUs of each node": (slow(2, gpus_per_host=4), "a part of the GPUs"),
    "NICs hidden from the job": (slow(2, process=of_process(hcas=listed()[:4])), "the NICs that NCCL lists"),
    "NICs of an unknown rate": (
        each_nic(lambda nic: replace(nic, ports=tuple(replace(p, rate_gbps=known(None)) for p in nic.ports)))(slow(2)),
        "rate",
    ),
    "no PCI bus read": (on_node(lambda node: replace(node, pci={}))(slow(2)), "PCI bus"),
    "GPUs without a name": (each_gpu(name=known(None), sm=known(None))(slow()), "compute capability"),
}


@pytest.mark.parametrize("name", [*IN_THE_LOG, *OF_MACHINES])
def test_what_leaves_the_comparison_open_is_said_and_nothing_is_found(name: str) -> None:
    run, why = (IN_THE_LOG | OF_MACHINES)[name]
    searched = searched_on_captures(run, across=len(run.hosts) > 1)
    assert isinstance(searched, str)
    assert why in searched
    assert not any("predict of" in finding.message for finding in SearchCollapsed().judge(run).findings)


@pytest.mark.parametrize("name", ["NCCL_MAX_NCHANNELS", "NCCL_P2P_LEVEL", "NCCL_GRAPH_FILE", "NCCL_IB_HCA"])
def test_limits_on_purpose_are_not_compared(name: str) -> None:
    assert SearchCollapsed().judge(slow(settings={name: "1"})).status is not Status.FINDING


def test_a_subset_of_known_gpus_of_one_node_is_compared() -> None:
    run = slow(gpus_per_host=4)
    assert "predict of" in only(run).message
