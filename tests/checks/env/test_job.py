"""JOB003 and what logs show for ENV001, ENV002 and ENV003."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.env.job import CostlySettingInLog, MisreadSettingInLog, UnknownSettingInLog
from topodiag.checks.host.job import HostSettingWarned
from topodiag.checks.job.settings.differ import SettingsDiffer
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.job import Communicator, Event, Job, Process

E, W, I = Severity.ERROR, Severity.WARNING, Severity.INFO  # noqa: E741


@examples("values", "nics", "given", "wanted")
def test_settings_of_ranks(
    values: dict[str, dict[str, str]], nics: dict[str, tuple[int, str]] | None, given: jobs.Given | None, wanted: Wanted
) -> None:
    """What all ranks print, the odd ones, those of a node or one alone, and how many NICs of which kind a node has."""

    def printed(rank: int, host: int, process: Process) -> Process:
        names = ("all", "odd" if rank % 2 else "even", f"n{host}", f"rank {rank}")
        told = {name: jobs.given(name, value) for who in names for name, value in values.get(who, {}).items()}
        number, layer = (nics or {}).get(f"n{host}", (8, "IB"))
        return replace(process, settings=told, hcas=tuple(jobs.hca(at, link_layer=layer) for at in range(number)))

    def not_up(world: Communicator) -> Communicator:
        return replace(world, completed=world.completed & False)

    job = jobs.of_row({"process": "printed", **(given or {})}, printed=printed, not_up=not_up)
    assert shown(SettingsDiffer().judge(job), wanted) == wanted


def costs(pair: str, given: jobs.Given) -> Any:
    name, _, value = pair.partition("=")
    hooks = {"of_a_plugin": lambda rank, host, process: replace(process, network="AWS Libfabric")}
    return CostlySettingInLog().judge(jobs.of_row({"settings": {name: value}, **given}, **hooks))


@examples("pair", "given", "severity")
def test_a_costly_setting_is_told_where_the_log_shows_the_loss(
    pair: str, given: jobs.Given, severity: Severity
) -> None:
    finding = expect(costs(pair, given), severity=severity.name)
    assert finding.where.ranks
    assert finding.cost.text


@examples("pair", "given")
def test_a_setting_that_costs_nothing_here_is_silent(pair: str, given: jobs.Given) -> None:
    assert costs(pair, given).status is Status.CLEAN


def test_no_settings_and_no_env_lines_leave_it_unknown() -> None:
    job = jobs.job(subsystems=frozenset({"INIT"}))
    for check in (CostlySettingInLog(), MisreadSettingInLog(), UnknownSettingInLog()):
        assert check.judge(job).status is Status.UNKNOWN


@examples("value", "what")
def test_values_show_what_nccl_misread(value: str, what: str) -> None:
    [finding] = MisreadSettingInLog().judge(jobs.job(settings={"NCCL_IB_HCA": value})).findings
    assert what in finding.message


def test_values_that_nccl_refused_are_told() -> None:
    refused = {"NCCL_BUFFSIZE": jobs.given("NCCL_BUFFSIZE", "4M", "invalid")}
    job = jobs.job(process=lambda rank, host, process: replace(process, settings=refused))
    expect(MisreadSettingInLog().judge(job), message="*refuses*")
    assert MisreadSettingInLog().judge(jobs.job(settings={"NCCL_IB_HCA": "mlx5"})).status is Status.CLEAN


def test_old_names_are_told_and_one_that_the_library_printed_is_no_slip() -> None:
    expect(UnknownSettingInLog().judge(jobs.job(settings={"NCCL_CHECK_POINTERS": "1"})), first_step="*NCCL_CHECK_MODE*")
    forked = jobs.job(settings={"NCCL_NCHANNELS_PER_PEER": "16"})
    assert UnknownSettingInLog().judge(forked).status is Status.CLEAN
    assert (
        UnknownSettingInLog().judge(jobs.job(settings={"NCCL_OFI_X": "1", "NCCL_IB_HCA": "a"})).status is Status.CLEAN
    )


@examples("text", "told")
def test_what_rccl_finds_amiss_in_a_node_is_told_in_its_words(text: str, told: str) -> None:
    [finding] = CostlySettingInLog().judge(jobs.job(events=[jobs.event("other", text)])).findings
    assert told in finding.message
    assert (finding.severity, finding.where.nodes) == (I, ("n0",))


def test_what_rccl_says_of_numa_balancing_is_a_setting_of_the_host() -> None:
    text = "NUMA auto balancing enabled which can lead to variability in the RCCL performance!"
    job = jobs.job(events=[jobs.event("other", text)])
    assert not CostlySettingInLog().judge(job).findings
    expect(HostSettingWarned().judge(job), id="HST003", severity=I.name, nodes=("n0",))
    assert HostSettingWarned().judge(jobs.job()).status is Status.NOT_APPLICABLE


@examples("name", "value", "network", "expected")
def test_a_setting_is_cleared_only_where_the_log_shows_what_it_would_switch_off(
    name: str, value: str, network: str, expected: Status
) -> None:
    job = jobs.job(settings={name: value}, systems=lambda *_: None)
    job = replace(job, processes=tuple(replace(process, network=network) for process in job.processes))
    assert CostlySettingInLog().judge(job).status is expected


# --- A setting that made a job fail is an error that names the variable and cites the line that shows it ------

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
    outcome = found(lone("NCCL_IB_HCA", "mlx5_77", says=NO_DEVICE, events=[event, UNWIND]))
    finding = expect(outcome, severity="ERROR", message="NCCL_IB_HCA=mlx5_77 leaves NCCL without an RDMA device*")
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
    outcome = SettingsDiffer().judge(replace(job, processes=processes))
    expect(outcome, message="NCCL_ALGO differs between ranks: not set, Tree", severity="ERROR", confidence="LOW")
    healthy = replace(job, processes=processes, events=())
    assert SettingsDiffer().judge(healthy).findings == ()
