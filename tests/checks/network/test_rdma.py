"""NET005 and NET008 to NET010: plugins, errors of RDMA devices, a class that loses packets, RDMA that is unused."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.evidence.filled import node_of
from tests.tables import examples
from topodiag.checks.network.lossy_class import LossyClass
from topodiag.checks.network.plugin import PluginNotLoaded
from topodiag.checks.network.rdma_errors import RdmaErrors
from topodiag.checks.network.rdma_unused import RdmaUnused
from topodiag.evidence.intake.bundle import Evidence
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.interface import Blob
from topodiag.evidence.nccl_log.rebuild.events import classify
from topodiag.model.finding import Outcome, Severity, Status
from topodiag.model.job import Process
from topodiag.model.node import Node
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
