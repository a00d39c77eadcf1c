"""NET005, NET006 beside captures, NET008 to NET010: plugins, graphs, errors and use of RDMA devices."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.evidence.filled import node_of
from tests.scanned import node_at
from tests.tables import examples
from topodiag.checks.network.captured_search import Searched, gap_of, searched_on_captures
from topodiag.checks.network.channels import SearchCollapsed
from topodiag.checks.network.node import LossyClass, RdmaUnused
from topodiag.checks.network.plugin import PluginNotLoaded
from topodiag.checks.network.rdma_errors import RdmaErrors
from topodiag.evidence.intake.bundle import Evidence
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.interface import Blob
from topodiag.evidence.nccl_log.rebuild.events import classify
from topodiag.model.finding import Finding, Outcome, Severity, Status
from topodiag.model.job import Channels, Hca, Job, Process
from topodiag.model.node import Node
from topodiag.model.provenance import known
from topodiag.words.own_data import own_data

COMPLETION = (
    "NET/IB: Got completion from peer 10.4.0.21<49872> with status=12 opcode=32600 len=0 vendor err 129 (Send)"
    " localGid ::ffff:10.4.0.20 remoteGids::ffff:10.4.0.21 hca mlx5_3"
)


def carries(rank: int, host: int, process: Process) -> Process:
    """A plugin that carries the traffic, and did not find one form of itself."""
    older = jobs.message("net plugin missing", "NET/Plugin: Failed to find ncclNetPlugin_v9 symbol.")
    return replace(process, network="AWS Libfabric", messages=(older,))


def silent(rank: int, host: int, process: Process) -> Process:
    return replace(process, network="")


@examples("given", "wanted")
def test_plugins_that_are_not_loaded(given: jobs.Given, wanted: Wanted) -> None:
    assert shown(PluginNotLoaded().judge(jobs.of_row(given, carries=carries, silent=silent)), wanted) == wanted


@examples("text", "broken")
def test_only_a_library_that_is_there_and_broken_counts(text: str, broken: bool) -> None:
    outcome = PluginNotLoaded().judge(jobs.job(messages=[jobs.message("net plugin missing", text)]))
    assert (outcome.status is Status.FINDING) == broken


@examples("events", "wanted")
def test_errors_of_rdma_devices(events: list[list[Any]], wanted: Wanted) -> None:
    texts = {"COMPLETION": COMPLETION, "FLUSHED": COMPLETION.replace("status=12", "status=5"), "TIMED_OUT": TIMED_OUT}
    named = [[kind, texts.get(text, text), *more] for kind, text, *more in events]
    assert shown(RdmaErrors().judge(jobs.of_row({"events": named})), wanted) == wanted


def test_equal_completions_fold() -> None:
    events = [jobs.event("ib completion", COMPLETION, host=f"n{at % 2}", pid=1000 + at, rank=at) for at in range(16)]
    finding = expect(RdmaErrors().judge(jobs.job(events=events)), nodes=("n0", "n1"))
    assert str(finding.coverage) == "16 of 16 processes"


@given(st.text(max_size=200), st.sampled_from(["ib completion", "ib async", "port"]))
def test_any_text_is_told(text: str, kind: str) -> None:
    assert RdmaErrors().judge(jobs.job(1, 1, events=[jobs.event(kind, text)])).status is Status.FINDING


TIMED_OUT = (
    "Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_5:1, curr state INIT, next state RTR,"
    " local GID index 3, local GID ::ffff:10.0.0.1, remote GID ::ffff:10.0.0.65"
)


@examples("text", "errno", "advice")
def test_a_queue_pair_that_cannot_be_connected_is_the_devices_error(text: str, errno: str, advice: str) -> None:
    finding = expect(RdmaErrors().judge(jobs.job(events=[jobs.event("connect", text)])), message=f"*: {errno}")
    assert advice in finding.fix[0]


@examples("text", "severity", "what")
def test_an_event_of_a_device_is_as_grave_as_what_the_driver_names(text: str, severity: Severity, what: str) -> None:
    kind, _, details = classify("WARN", text)
    assert kind in ("ib async", "port")
    outcome = RdmaErrors().judge(jobs.job(events=[jobs.event(kind, text, details=dict(details))]))
    expect(outcome, severity=severity.name, message=f"n0: {what} on mlx5_0")


def test_the_advice_on_a_failed_completion_begins_with_what_to_do() -> None:
    completion = own_data("checks/shared/phrases")["completion"]
    assert {each["fix"].split()[0] for each in completion.values()} <= {"check", "compare", "install", "look", "read"}


# --- NET009: RoCE traffic rides a class without flow control


PORT = "/sys/class/infiniband/mlx5_0/ports/1"


def qos(lossless: str = "0 0 0 1 0 0 0 0", trust: str = "dscp") -> str:
    return f"# mlnx_qos -i eth1\nPriority trust state: {trust}\nPFC configuration:\n enabled {lossless}\n"


def tclass(value: int) -> str:
    return f"$ cat /sys/class/infiniband/mlx5_0/tc/1/traffic_class\nGlobal tclass={value}\n"


def judge(*texts: str) -> Outcome:
    return LossyClass().judge(node_of(*texts))


def node_of_samples(**texts: str) -> Node:
    """What files of these names show: `before` and `after` are two samples of one node."""
    blobs = [Blob(f"{name}.txt", text.encode()) for name, text in texts.items() if text]
    return read_node(Evidence("pasted", blobs=blobs)).node


def sampled(before: str, after: str) -> Outcome:
    return LossyClass().judge(node_of_samples(before=before, after=after))


def counters(*, lost: int = 0, pause: int = 0, marked: int = 0) -> str:
    return (
        f"$ ethtool -S eth1 | grep prio\n  rx_prio0_bytes: {lost + 5}\n  rx_prio3_pause: {pause}\n\n"
        f"{PORT}/hw_counters/out_of_sequence:{lost}\n{PORT}/hw_counters/np_ecn_marked_roce_packets:{marked}\n"
    )


@examples("texts", "wanted")
def test_the_priority_of_the_traffic(texts: list[str], wanted: Wanted) -> None:
    """The table of the port with its trust, the class of the kernel, or a setting."""
    told = {"qos": qos(), "pcp": qos(trust="pcp")}
    made = [told.get(text) or (tclass(int(text)) if text.isdecimal() else text) for text in texts]
    assert shown(judge(*made), wanted) == wanted


@examples("after", "wanted")
def test_counters_of_the_priorities(after: dict[str, int], wanted: Wanted) -> None:
    assert shown(sampled(counters(), counters(**after)), wanted) == wanted


# --- NET010: RDMA is configured and its counters do not move


SENT = "/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_packets:{}\n"
TCP = "/sys/class/net/{}/statistics/tx_bytes:{}\n"


def unused(before: str, after: str = "", settings: str = "") -> Outcome:
    return RdmaUnused().judge(node_of_samples(before=before, after=after, env=settings))


@examples("sent", "tcp", "settings", "wanted")
def test_rdma_devices_that_send_nothing(
    sent: list[int], tcp: list[int] | None, settings: str | None, wanted: Wanted
) -> None:
    """Packets that a port sent at each reading, and the bytes of the interface `tcp`."""
    interface, *carried = tcp or ["eth0"]
    texts = [SENT.format(count) for count in sent]
    for at, count in enumerate(carried):
        texts[at] += TCP.format(interface, count)
    assert shown(unused(*texts, settings=settings or ""), wanted) == wanted


def test_what_stays_on_the_host_is_no_traffic() -> None:
    (finding,) = unused(SENT.format(5) + TCP.format("lo", 0), SENT.format(5) + TCP.format("lo", 9 * 10**9)).findings
    assert "lo carried" not in finding.message


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


NOT_FOLLOWED = (
    "NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS", "NCCL_TOPO_FILE", "NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN",
    "NCCL_MNNVL_ENABLE", "NCCL_SYM_CTAS", "Max CTAs", "Net name",
)  # fmt: skip
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
    **{f"{name} is set": (slow(**settings(name, "1")), name) for name in NOT_FOLLOWED},
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
