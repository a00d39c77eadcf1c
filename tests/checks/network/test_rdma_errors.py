"""NET005 and NET008: plugins that did not load, and errors of RDMA devices."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.checks import jobs
from tests.tables import examples
from topodiag.checks.network.plugin import PluginNotLoaded
from topodiag.checks.network.rdma_errors import RdmaErrors
from topodiag.evidence.nccl_log.rebuild.events import classify
from topodiag.model.finding import Severity, Status
from topodiag.model.job import Process
from topodiag.words.own_data import own_data

USUAL = "NET/Plugin: Could not find: libnccl-net.so"
COMPLETION = (
    "NET/IB: Got completion from peer 10.4.0.21<49872> with status=12 opcode=32600 len=0 vendor err 129 (Send)"
    " localGid ::ffff:10.4.0.20 remoteGids::ffff:10.4.0.21 hca mlx5_3"
)


def test_no_plugin_asked_for_and_none_found_is_the_usual_case() -> None:
    job = jobs.job(messages=[jobs.message("net plugin missing", USUAL)])
    assert PluginNotLoaded().judge(job).status is Status.CLEAN


def test_a_plugin_that_a_setting_asks_for_is_missed() -> None:
    missing = jobs.message("net plugin missing", "NET/Plugin: Could not find: libnccl-net-ofi.so")
    job = jobs.job(messages=[missing], settings={"NCCL_NET_PLUGIN": "ofi"})
    (finding,) = PluginNotLoaded().judge(job).findings
    assert finding.severity is Severity.WARNING
    assert "NCCL_NET_PLUGIN=ofi" in finding.message


def test_sockets_in_its_place_are_an_error() -> None:
    missing = jobs.message("net plugin missing", "NET/Plugin: Could not find: libnccl-net-ofi.so")
    job = jobs.job(via="NET/Socket", messages=[missing], settings={"NCCL_NET_PLUGIN": "ofi"})
    assert PluginNotLoaded().judge(job).findings[0].severity is Severity.ERROR


@examples("text", "broken")
def test_only_a_library_that_is_there_and_broken_counts(text: str, broken: bool) -> None:
    outcome = PluginNotLoaded().judge(jobs.job(messages=[jobs.message("net plugin missing", text)]))
    assert (outcome.status is Status.FINDING) == broken


def test_a_plugin_that_gave_up_by_itself_is_not_looked_for_with_ldd() -> None:
    event = jobs.event("plugin", "NET/OFI aws-ofi-nccl initialization failed")
    (finding,) = PluginNotLoaded().judge(jobs.job(events=[event])).findings
    assert "does not start" in finding.message
    assert "fi_info" in finding.fix[0]


def test_a_plugin_that_carries_the_traffic_is_clean() -> None:
    def ofi(rank: int, host: int, process: Process) -> Process:
        return replace(process, network="AWS Libfabric")

    older = jobs.message("net plugin missing", "NET/Plugin: Failed to find ncclNetPlugin_v9 symbol.")
    job = jobs.job(process=ofi, settings={"NCCL_NET_PLUGIN": "ofi"})
    job = replace(job, processes=tuple(replace(process, messages=(older,)) for process in job.processes))
    assert PluginNotLoaded().judge(job).status is Status.CLEAN


def test_plugins_of_one_node_are_not_judged() -> None:
    assert PluginNotLoaded().judge(jobs.job(1)).status is Status.NOT_APPLICABLE
    silent = jobs.job(process=lambda rank, host, process: replace(process, network=""))
    assert PluginNotLoaded().judge(silent).status is Status.UNKNOWN


def test_a_job_without_device_errors_is_clean() -> None:
    assert RdmaErrors().judge(jobs.job()).status is Status.CLEAN


def test_a_completion_names_device_peer_and_gid_from_its_text() -> None:
    (finding,) = RdmaErrors().judge(jobs.job(events=[jobs.event("ib completion", COMPLETION, rank=3)])).findings
    assert "retries exceeded (status 12) on mlx5_3 towards 10.4.0.21<49872>" in finding.message
    assert "::ffff:10.4.0.21" in finding.observed
    assert finding.where.ranks == (3,)


def test_what_a_line_names_is_named() -> None:
    details = {"status": "10", "hca": "mlx5_7", "peer": "n1"}
    (finding,) = (
        RdmaErrors().judge(jobs.job(events=[jobs.event("ib completion", COMPLETION, details=details)])).findings
    )
    assert "status 10) on mlx5_7 towards n1" in finding.message


def test_flushed_work_is_left_out_beside_another_status() -> None:
    flushed = jobs.event("ib completion", COMPLETION.replace("status=12", "status=5"), host="n1")
    both = RdmaErrors().judge(jobs.job(events=[flushed, jobs.event("ib completion", COMPLETION)]))
    assert [finding.where.nodes for finding in both.findings] == [("n0",)]
    outcome = RdmaErrors().judge(jobs.job(events=[flushed]))
    assert "flushed" in outcome.findings[0].message


def test_equal_completions_fold() -> None:
    events = [jobs.event("ib completion", COMPLETION, host=f"n{at % 2}", pid=1000 + at, rank=at) for at in range(16)]
    (finding,) = RdmaErrors().judge(jobs.job(events=events)).findings
    assert finding.where.nodes == ("n0", "n1")
    assert str(finding.coverage) == "16 of 16 processes"


def test_a_port_that_fails_is_named() -> None:
    text = "NET/IB : mlx5_0:1 Got async error event: port error"
    (finding,) = RdmaErrors().judge(jobs.job(events=[jobs.event("ib async", text)])).findings
    assert finding.where.nics == ("mlx5_0",)
    assert finding.message == "n0: port error on mlx5_0"


@given(st.text(max_size=200), st.sampled_from(["ib completion", "ib async", "port"]))
def test_any_text_is_told(text: str, kind: str) -> None:
    assert RdmaErrors().judge(jobs.job(1, 1, events=[jobs.event(kind, text)])).status is Status.FINDING


TIMED_OUT = (
    "Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_5:1, curr state INIT, next state RTR,"
    " local GID index 3, local GID ::ffff:10.0.0.1, remote GID ::ffff:10.0.0.65"
)


@examples("text", "errno", "advice")
def test_a_queue_pair_that_cannot_be_connected_is_the_devices_error(text: str, errno: str, advice: str) -> None:
    [finding] = RdmaErrors().judge(jobs.job(events=[jobs.event("connect", text)])).findings
    assert finding.message.endswith(f": {errno}")
    assert advice in finding.fix[0]


def test_the_device_and_the_peer_of_a_queue_pair_are_named() -> None:
    details = {"hca": "mlx5_5", "remote_gid": "::ffff:10.0.0.65"}
    [finding] = RdmaErrors().judge(jobs.job(events=[jobs.event("connect", TIMED_OUT, details=details)])).findings
    assert finding.where.nics == ("mlx5_5",)
    assert "mlx5_5 cannot connect to ::ffff:10.0.0.65" in finding.message


def test_a_socket_that_cannot_connect_is_no_error_of_a_device() -> None:
    event = jobs.event("connect", "Net : Connect to 10.0.0.2<4000> failed : Connection timed out")
    assert RdmaErrors().judge(jobs.job(events=[event])).status is Status.CLEAN


def test_what_the_application_repeats_is_not_counted_again() -> None:
    own = jobs.event("ib completion", COMPLETION)
    repeated = jobs.event("ib completion", COMPLETION, "", level="APP", secondary=True)
    [finding] = RdmaErrors().judge(jobs.job(events=[own, repeated])).findings
    assert finding.observed.startswith("1 completion")
    [report] = RdmaErrors().judge(jobs.job(events=[replace(repeated, rank=5)])).findings
    assert report.message.startswith("rank 5: transport retries exceeded")


@examples("text", "severity", "what")
def test_an_event_of_a_device_is_as_grave_as_what_the_driver_names(text: str, severity: Severity, what: str) -> None:
    kind, _, details = classify("WARN", text)
    assert kind in ("ib async", "port")
    (finding,) = RdmaErrors().judge(jobs.job(events=[jobs.event(kind, text, details=dict(details))])).findings
    assert finding.severity is severity
    assert finding.message == f"n0: {what} on mlx5_0"


def test_the_advice_on_a_failed_completion_begins_with_what_to_do() -> None:
    completion = own_data("checks/shared/phrases")["completion"]
    assert {each["fix"].split()[0] for each in completion.values()} <= {"check", "compare", "install", "look", "read"}
