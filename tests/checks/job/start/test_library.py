"""JOB007: known faults of NCCL by version and signature."""

import re
from dataclasses import replace

from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.job.start.library import KnownLibraryFault, library_faults, release_of
from topodiag.evidence.nccl_log.grammar.job_lines import end_of
from topodiag.model.finding import Finding
from topodiag.model.job import Event, GivenSetting
from topodiag.model.provenance import Origin


def frame(text: str) -> Event:
    kind, details = end_of(text) or ("", {})
    return jobs.event(kind, text, "", level="APP", details=details)


def found(*events: Event, version: str = "") -> list[Finding]:
    job = replace(jobs.job(2, events=list(events)), nccl_versions=(version,) if version else ())
    return list(KnownLibraryFault().judge(job).findings)


@examples("lines", "version", "wanted")
def test_faults_of_nccl_by_their_signature(lines: list[str], version: str, wanted: Wanted) -> None:
    """Lines of a stack trace, or with `cuda: ` in front errors of CUDA."""
    events = [
        jobs.event("cuda", line.removeprefix("cuda: "), level="APP") if line.startswith("cuda: ") else frame(line)
        for line in lines
    ]
    job = replace(jobs.job(2, events=events), nccl_versions=(version,) if version else ())
    assert shown(KnownLibraryFault().judge(job), wanted) == wanted


def of_rccl(text: str, version: str) -> list[Finding]:
    kind, details = end_of(text) or ("other", {})
    job = replace(jobs.job(2, events=[jobs.event(kind, text, details=details)]), nccl_versions=(version,))
    return list(KnownLibraryFault().judge(replace(job, library="RCCL")).findings)


@examples("text", "having", "fixed", "other")
def test_faults_of_rccl_by_version_and_signature(text: str, having: str, fixed: str, other: str) -> None:
    expect(of_rccl(text, having), message=f"a known fault of RCCL {having}: *")
    assert of_rccl(text, fixed) == []
    assert of_rccl(other, having) == []


def with_setting(name: str, value: str, version: str, hosts: int = 2) -> list[Finding]:
    job = jobs.job(2)
    given = {name: GivenSetting(name, value, origin=Origin("job.log", 3, f"{name} set by environment to {value}"))}
    processes = tuple(replace(process, settings=given) for process in job.processes)
    names = tuple(f"n{number}" for number in range(hosts))
    job = replace(job, processes=processes, hosts=names, library="RCCL", nccl_versions=(version,) if version else ())
    return list(KnownLibraryFault().judge(job).findings)


@examples("name", "value", "having", "without", "harmless")
def test_a_fault_without_a_line_is_a_note_where_release_and_setting_are_seen(
    name: str, value: str, having: str, without: str, harmless: str
) -> None:
    finding = expect(with_setting(name, value, having), severity="INFO")
    assert name in finding.message
    assert finding.evidence[0].line == 3
    assert with_setting(name, value, without) == []
    assert with_setting(name, value, "") == []
    assert with_setting(name, harmless, having) == []


def test_batches_of_transfers_hang_on_more_than_32_nodes_alone() -> None:
    assert with_setting("RCCL_P2P_BATCH_ENABLE", "1", "2.27.7", hosts=32) == []
    expect(with_setting("RCCL_P2P_BATCH_ENABLE", "1", "2.27.7-HEAD:0d2c4fd", hosts=33), message="*more than 32 nodes*")
    assert with_setting("RCCL_P2P_BATCH_ENABLE", "0", "2.27.7", hosts=33) == []


def test_each_fault_has_range_signature_control_and_source() -> None:
    names = [fault.name for fault in library_faults()]
    assert len(set(names)) == len(names)
    for fault in library_faults():
        low, high = release_of(fault.since), release_of(fault.fixed)
        assert low is not None or fault.reported  # the library says it itself: no release needs to be named
        assert low is None or high is None or low < high
        assert fault.text or fault.frames or fault.setting
        assert re.compile(fault.text or fault.frames or fault.setting)
        assert fault.sure in ("high", "medium")
        assert "github.com/" in fault.source
        assert fault.what
        assert fault.control


@examples("line")
def test_a_backtrace_of_abseil_or_glog_names_the_function(line: str) -> None:
    expect(found(frame(line), version="2.28.9+cuda13.0"), message="*proxy operations*")
    assert found(frame(line), version="2.29.3") == []


def test_a_backtrace_without_a_function_of_nccl_names_no_fault() -> None:
    assert end_of("    @     0x7f2b3c4d5e6f  (unknown)  PyEval_EvalFrameDefault()") is None


RETRIES = (
    "NET/IB: Got completion from peer 10.0.0.9<51234> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1)"
    " vendor_err=129 localGid ::ffff:1.1.1.4 remoteGids::ffff:1.1.2.2 hca mlx5_3"
)


def after_a_shrink(line: int, version: str = "2.29.3", func: str = "ncclCommShrink") -> list[Finding]:
    """Retries that run out at a line of a log whose line 90 made a communicator."""
    job = jobs.job(2, events=[replace(jobs.event("ib completion", RETRIES), origin=jobs.origin(RETRIES, line))])
    smaller = replace(job.communicators[0], index=1, parent=0, func=func, origin=jobs.origin("Init COMPLETE", 90))
    job = replace(job, communicators=(*job.communicators, smaller), nccl_versions=(version,))
    return list(KnownLibraryFault().judge(job).findings)


def test_retries_that_run_out_after_a_shrink_are_a_known_fault() -> None:
    expect(after_a_shrink(120), message="*ncclCommShrink*", confidence="MEDIUM")


@examples("line", "version", "func")
def test_retries_of_another_reason_are_left_to_the_network(line: int, version: str, func: str) -> None:
    assert after_a_shrink(line, version, func) == []


def test_the_calls_own_line_shows_the_shrink_too() -> None:
    line = jobs.origin("ncclCommShrink: excluded 1 rank", 60)
    message = replace(jobs.message("split", line.text), origin=line)
    job = jobs.job(1, events=[replace(jobs.event("ib completion", RETRIES), origin=jobs.origin(RETRIES, 70))])
    first = replace(job.processes[0], messages=(message,))
    job = replace(job, processes=(first, *job.processes[1:]), nccl_versions=("2.30.4",))
    assert len(KnownLibraryFault().judge(job).findings) == 1
