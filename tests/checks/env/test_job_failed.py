"""A setting that made a job fail is an error that names the variable and cites the line that shows it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tests.checks import jobs
from tests.tables import examples
from topodiag.checks.env.job import CostlySettingInLog
from topodiag.checks.job.settings.differ import SettingsDiffer
from topodiag.model.finding import Confidence, Finding, Severity
from topodiag.model.job import Event, Job

NO_DEVICE = "NET/IB : No device found."
UNWIND = jobs.event("unwind", "init.cc:416 -> 3", level="UNWIND", secondary=True)


def lone(name: str, value: str, *, says: str = "", events: Sequence[Event] = ()) -> Job:
    """One process with this setting, which lists no RDMA device."""
    job = jobs.job(1, events=list(events))
    messages = (jobs.message("no hca", says),) if says else ()
    first = replace(job.processes[0], hcas=(), settings={name: jobs.given(name, value)}, messages=messages)
    return replace(job, processes=(first,))


def found(job: Job) -> list[Finding]:
    return [finding for finding in CostlySettingInLog().judge(job).findings if finding.severity is not Severity.INFO]


def test_a_device_that_is_not_there_fails_the_job_and_is_named() -> None:
    event = jobs.event("plugin", "Failed to initialize any NET plugin")
    [finding] = found(lone("NCCL_IB_HCA", "mlx5_77", says=NO_DEVICE, events=[event, UNWIND]))
    assert finding.severity is Severity.ERROR
    assert finding.message.startswith("NCCL_IB_HCA=mlx5_77 leaves NCCL without an RDMA device")
    assert [origin.text for origin in finding.evidence] == ["NCCL_IB_HCA set by environment to mlx5_77.", NO_DEVICE]


def test_a_job_that_goes_on_without_the_device_is_left_to_the_check_of_the_network() -> None:
    assert found(lone("NCCL_IB_HCA", "mlx5_77", says=NO_DEVICE)) == []


def test_devices_that_are_left_out_or_found_are_silent() -> None:
    assert found(lone("NCCL_IB_HCA", "^mlx5_1", says=NO_DEVICE)) == []
    assert found(lone("NCCL_IB_HCA", "mlx5_0")) == []


@examples("words")
def test_an_algorithm_that_has_no_protocol_left_is_an_error(words: str) -> None:
    event = jobs.event("other", words)
    event = replace(event, pid=jobs.job(1).processes[0].pid)
    job = lone("NCCL_ALGO", "NVLS", events=[event, UNWIND])
    assert [finding.message.split(" ")[0] for finding in found(job)] == ["NCCL_ALGO=NVLS"]


def of_two(first: dict[str, str], second: dict[str, str], *, hung: bool, searched: bool) -> Job:
    """Two nodes of one process each, with these settings."""
    wait = jobs.event("watchdog", "Watchdog caught", level="APP", details={"op": "ALLREDUCE", "seq": "3"})
    job = jobs.job(2, events=[wait] if hung else [])
    picked = [next(process for process in job.processes if process.host == host) for host in ("n0", "n1")]
    processes = [
        replace(process, settings={name: jobs.given(name, value) for name, value in given.items()})
        for process, given in zip(picked, (first, second), strict=True)
    ]
    world = replace(job.communicators[0], completed=np.zeros(job.communicators[0].nranks, bool),
                    graphs={"n0": (), "n1": ()} if searched else {})  # fmt: skip
    return replace(job, processes=tuple(processes), ranks=(), communicators=(world,))


def differs(job: Job) -> list[tuple[str, Severity]]:
    return [(finding.message, finding.severity) for finding in SettingsDiffer().judge(job).findings]


def test_a_setting_on_some_ranks_and_unset_on_others_differs() -> None:
    both, one = {"NCCL_CROSS_NIC": "0", "NCCL_ALGO": "Ring"}, {"NCCL_CROSS_NIC": "0"}
    job = of_two(both, one, hung=True, searched=True)
    assert differs(job) == [("NCCL_ALGO differs between ranks: not set, Ring", Severity.ERROR)]


def test_a_rank_that_did_not_come_so_far_would_not_have_printed_it() -> None:
    both, one = {"NCCL_CROSS_NIC": "0", "NCCL_ALGO": "Ring"}, {"NCCL_CROSS_NIC": "0"}
    assert differs(of_two(both, one, hung=True, searched=False)) == []
    assert differs(of_two(both, {}, hung=True, searched=True)) == []


def test_whole_nodes_that_print_no_setting_lack_it_where_the_job_hangs_behind_its_init() -> None:
    wait = jobs.event("watchdog", "Watchdog caught", level="APP", details={"op": "ALLREDUCE", "seq": "1"})
    job = jobs.job(16, events=[wait])
    processes = tuple(
        replace(process, settings={"NCCL_ALGO": jobs.given("NCCL_ALGO", "Tree")} if process.host == "n1" else {})
        for process in job.processes
    )
    [finding] = SettingsDiffer().judge(replace(job, processes=processes)).findings
    assert finding.message == "NCCL_ALGO differs between ranks: not set, Tree"
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LOW)
    healthy = replace(job, processes=processes, events=())
    assert SettingsDiffer().judge(healthy).findings == ()
