"""JOB001, JOB002, JOB004 and JOB007: ranks that did not come up, versions, shared GPUs, known faults of NCCL."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.pasted import said
from tests.tables import examples
from topodiag.api import diagnose
from topodiag.checks.job.shared_gpu import SharedGpu
from topodiag.checks.job.start.init import InitNotFinished
from topodiag.checks.job.start.versions import KnownLibraryFault, VersionsDiffer, library_faults, release_of
from topodiag.evidence.nccl_log.grammar.job_lines import end_of
from topodiag.model.finding import Finding, Outcome, Severity, Status
from topodiag.model.job import Communicator, Event, GivenSetting, Job, Operations, Process
from topodiag.model.provenance import Origin


def stuck(ranks: Iterable[int]) -> Job:
    def world(communicator: Communicator) -> Communicator:
        completed, init_s = communicator.completed.copy(), communicator.init_s.copy()
        for rank in ranks:
            completed[rank], init_s[rank] = False, np.nan
        return replace(communicator, completed=completed, init_s=init_s)

    return jobs.job(world=world)


def without(job: Job, *missing: int) -> Job:
    return replace(job, ranks=tuple(rank for rank in job.ranks if rank.rank not in missing))


@examples("waiting", "missing", "wanted")
def test_inits_that_do_not_end(waiting: list[int], missing: list[int], wanted: Wanted) -> None:
    """Ranks from the first to the last that wait, and ranks of which no line is there."""
    ranks = [rank for rank in range(*waiting) if rank not in missing]
    assert shown(InitNotFinished().judge(without(stuck(ranks), *missing)), wanted) == wanted


def test_a_rank_that_ran_operations_was_complete() -> None:
    job = stuck([3])
    world = replace(job.communicators[0], operations={3: Operations(4, 5)})
    assert InitNotFinished().judge(replace(job, communicators=(world,))).status is Status.CLEAN


def test_missing_ranks_are_an_error_where_the_others_wait() -> None:
    waiting = InitNotFinished().judge(without(stuck([r for r in range(16) if r not in {5, 6}]), 5, 6)).findings
    assert [finding.severity for finding in waiting] == [Severity.ERROR, Severity.ERROR]
    assert waiting[1].where.ranks == (5, 6)


@examples("silent", "nodes", "says")
def test_ranks_without_a_line_are_named_with_the_only_host_that_has_room(
    silent: tuple[int, ...], nodes: tuple[str, ...], says: str
) -> None:
    job = without(stuck([rank for rank in range(16) if rank not in silent]), *silent)
    ranks = job.communicators[0].ranks.copy()
    ranks[list(silent)] = -1
    completed = np.zeros(16, bool)
    world = replace(job.communicators[0], ranks=ranks, completed=completed)
    [first, *_] = InitNotFinished().judge(replace(job, communicators=(world,))).findings
    assert first.message.endswith(f"; {says} printed no line at all")
    assert first.fix[0] == f"look first at {says}, which printed no line"
    assert (first.where.nodes, first.where.ranks) == (nodes, silent)


def test_without_init_lines_the_answer_is_unknown() -> None:
    none = np.zeros(16, bool)
    job = jobs.job(world=lambda communicator: replace(communicator, started=none, completed=none))
    assert InitNotFinished().judge(job).status is Status.UNKNOWN


def without_a_rank(*events: Event) -> Outcome:
    """What is judged of a process that printed these before it had a rank."""
    job = replace(jobs.job(1, 1), ranks=(), communicators=(), processes=(Process("n0", 7),), unplaced=(0,))
    return InitNotFinished().judge(replace(job, events=events))


def test_a_process_that_failed_before_it_had_a_rank_is_told() -> None:
    error = jobs.event("bootstrap", "Bootstrap : no socket interface found", pid=7)
    expect(without_a_rank(error), severity="ERROR", message="*1 process on n0*")
    assert without_a_rank().status is Status.UNKNOWN


def test_a_warning_after_which_nccl_goes_on_is_no_failed_init() -> None:
    note = jobs.event("other", "Failed to open libibverbs.so[.1]", pid=7)
    assert without_a_rank(note).status is Status.UNKNOWN
    unwound = jobs.event("unwind", "init.cc:1093 -> 2", pid=7, level="UNWIND", secondary=True)
    assert without_a_rank(note, unwound).status is Status.FINDING


def test_a_log_of_warnings_alone_says_nothing_of_init() -> None:
    full = jobs.event("memory", "Call to posix_fallocate failed : No space left on device", pid=7)
    late = jobs.event("ib completion", "NET/IB : Got completion with error 12", pid=7)
    silent, rank = Process("n0", 7), Process("n0", 7, bootstrap="eth0:10.0.0.1<0>")
    job = replace(jobs.job(1, 1), ranks=(), communicators=(), unplaced=(0,))
    for process, event, status in (
        (silent, full, Status.UNKNOWN),
        (rank, full, Status.FINDING),
        (silent, late, Status.UNKNOWN),
        (rank, late, Status.UNKNOWN),
        (replace(rank, versions={"nccl": "2.17.1+cuda12.0"}), full, Status.FINDING),
        (replace(rank, versions={"nccl": "2.21.5+cuda12.4"}), full, Status.UNKNOWN),
    ):
        assert InitNotFinished().judge(replace(job, processes=(process,), events=(event,))).status is status


def on_one_gpu(job: Job) -> Job:
    ranks = tuple(replace(rank, bus_id=job.ranks[1].bus_id) if rank.rank == 2 else rank for rank in job.ranks)
    return replace(job, ranks=ranks)


def test_nccls_own_word_makes_a_shared_gpu_an_error() -> None:
    event = jobs.event("duplicate gpu", "Duplicate GPU detected : rank 2 and rank 1 both on CUDA device 43000", rank=2)
    outcome = SharedGpu().judge(replace(on_one_gpu(jobs.job()), events=(event,)))
    expect(outcome, severity="ERROR", ranks=(1, 2), message="*ranks 1-2 share one GPU on n0*")


def test_ranks_on_one_gpu_of_which_nccl_does_not_warn_are_told() -> None:
    expect(SharedGpu().judge(on_one_gpu(jobs.job())), severity="INFO", message="*share one GPU*")


def test_machines_of_one_name_share_no_gpu() -> None:
    job = on_one_gpu(jobs.job(world=lambda communicator: replace(communicator, nodes=4)))
    assert SharedGpu().judge(job).status is Status.CLEAN


def test_a_node_with_fewer_ranks_than_the_others_is_told() -> None:
    job = jobs.job(4, 8)
    moved = tuple(replace(rank, host="n4") if rank.rank == 31 else rank for rank in job.ranks)
    expect(SharedGpu().judge(replace(job, ranks=moved)), severity="INFO", nodes=("n3", "n4"))


def test_a_log_that_ends_in_the_middle_of_init_is_no_hang() -> None:
    job = without(stuck(range(16)), *range(2, 16))
    world = job.communicators[0]
    ranks, started = world.ranks.copy(), world.started.copy()
    ranks[2:], started[2:] = -1, False
    job = replace(job, communicators=(replace(world, ranks=ranks, started=started),))
    assert {finding.severity for finding in InitNotFinished().judge(job).findings} == {Severity.INFO}
    failing = replace(job, events=(jobs.event("connect", "Connect to 10.0.0.2<4000> failed : No route to host"),))
    assert Severity.ERROR in {finding.severity for finding in InitNotFinished().judge(failing).findings}


def test_ranks_that_only_torch_names_are_told() -> None:
    text = "Duplicate GPU detected : rank 3 and rank 0 both on CUDA device f000"
    details = {"ranks": "3,0", "bus_id": "0000:0f:00.0"}
    event = jobs.event("duplicate gpu", text, host="", details=details, level="APP", secondary=True)
    job = replace(jobs.job(1, 1), ranks=(), communicators=(), processes=(), events=(event,))
    expect(SharedGpu().judge(job), ranks=(0, 3), message="*ranks 0, 3 share one GPU (0000:0f:00.0)*")


SINGLE = (
    "n0:{pid}:{pid} [0] NCCL INFO NCCL version 2.18.1+cuda12.1\n"
    "n0:{pid}:{thread} [0] NCCL INFO comm 0x{pid}0 rank 0 nranks 1 cudaDev 0 busId ca000 commId 0x{pid}7"
    " - Init COMPLETE\n"
)


@examples("pids", "files", "severity")
def test_ranks_of_a_launch_that_came_up_alone_are_a_warning(
    tmp_path: Path, pids: tuple[int, ...], files: int, severity: Severity
) -> None:
    for number, pid in enumerate(pids):
        with tmp_path.joinpath(f"run_{'ab'[number % files]}.log").open("a", encoding="utf-8") as stream:
            stream.write(SINGLE.format(pid=pid, thread=pid + 40))
    alone = [finding for finding in diagnose(str(tmp_path)).findings if finding.id == "JOB001"]
    assert {finding.severity for finding in alone} == {severity}


# --- JOB001 by numbers of ranks that do not fit, JOB003 by worlds of different sizes


WARN = "[2025-05-08 15:42:42] n1:746:946 [0] bootstrap.cc:334 NCCL WARN "
TWICE = WARN + "Bootstrap Root : rank {} of {} ranks has already checked in\n"


def test_a_rank_of_which_the_log_has_lines_did_come(tmp_path: Path) -> None:
    came = "n2:5:5 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 2 nranks 4 cudaDev 0 busId 60 commId 0x9 - Init START\n"
    messages = [
        finding["message"]
        for finding in said(tmp_path, TWICE.format(1, 4) + came)["findings"]
        if finding["id"] == "JOB001"
    ]
    assert any("rank 1 of 4; rank 3 never came" in message for message in messages)


# --- JOB002: versions that differ between ranks


def other(key: str, value: str) -> Callable[[int, int, Process], Process]:
    """Rank 3 prints another version than the others."""

    def hook(number: int, host: int, process: Process) -> Process:
        versions = {"nccl": "2.28.9", "net plugin": "IB (v11)", **process.versions}
        return replace(process, versions={**versions, key: value} if number == 3 else versions)

    return hook


def prints(third: dict[str, str], **others: str) -> Callable[[int, int, Process], Process]:
    """What rank 3 prints of its versions, and what the others do."""
    return lambda number, host, process: replace(process, versions=third if number == 3 else others)


def first_alone(number: int, host: int, process: Process) -> Process:
    return process if number == 0 else replace(process, versions={})


def noticed(text: str) -> Callable[[int, int, Process], Process]:
    notice = jobs.message("git mismatch", text)
    return lambda number, host, process: replace(
        process, versions={"nccl": "2.32.3"}, messages=(*process.messages, notice)
    )


def worded(*texts: tuple[str, str]) -> Callable[[int, int, Process], Process]:
    """Lines of the first node and of the second; rank 0 alone prints its version, 2.23.4."""

    def hook(number: int, host: int, process: Process) -> Process:
        versions = process.versions if number == 0 else {}
        return replace(process, versions=versions, messages=(*process.messages, jobs.message(*texts[host])))

    return hook


def of_rccl(*texts: tuple[str, str]) -> Callable[[int, int, Process], Process]:
    hook = worded(*texts)
    return lambda number, host, process: replace(hook(number, host, process), versions={"rccl": "2.20.5"})


HOOKS: dict[str, Any] = {
    "other": other, "prints": prints, "first_alone": first_alone,
    "noticed": noticed, "worded": worded, "of_rccl": of_rccl,
}  # fmt: skip


@examples("given", "wanted")
def test_versions_that_differ_between_ranks(given: jobs.Given, wanted: Wanted) -> None:
    assert shown(VersionsDiffer().judge(jobs.of_row(given, **HOOKS)), wanted) == wanted


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


def faults_of_rccl(text: str, version: str) -> list[Finding]:
    kind, details = end_of(text) or ("other", {})
    job = replace(jobs.job(2, events=[jobs.event(kind, text, details=details)]), nccl_versions=(version,))
    return list(KnownLibraryFault().judge(replace(job, library="RCCL")).findings)


@examples("text", "having", "fixed", "other")
def test_faults_of_rccl_by_version_and_signature(text: str, having: str, fixed: str, other: str) -> None:
    expect(faults_of_rccl(text, having), message=f"a known fault of RCCL {having}: *")
    assert faults_of_rccl(text, fixed) == []
    assert faults_of_rccl(other, having) == []


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
