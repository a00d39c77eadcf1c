"""NET005 and NET008: plugins that did not load, and errors of RDMA devices."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.network.plugin import PluginNotLoaded
from topodiag.checks.network.rdma_errors import RdmaErrors
from topodiag.evidence.nccl_log.rebuild.events import classify
from topodiag.model.finding import Severity, Status
from topodiag.model.job import Process
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
