"""JOB003 and what logs show for ENV001, ENV002 and ENV003."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.checks import jobs
from tests.tables import examples
from topodiag.checks.env.job import CostlySettingInLog, MisreadSettingInLog, UnknownSettingInLog
from topodiag.checks.host.job import HostSettingWarned
from topodiag.checks.job.settings.differ import SettingsDiffer
from topodiag.model.finding import Confidence, Severity, Status
from topodiag.model.job import Hca, Job, Process

E, W, I = Severity.ERROR, Severity.WARNING, Severity.INFO  # noqa: E741


def settings(values: Callable[[int, int], Mapping[str, str]], **changes: Any) -> Job:
    """A job whose ranks print `values(rank, host)`."""

    def hook(rank: int, host: int, process: Process) -> Process:
        return replace(process, settings={name: jobs.given(name, value) for name, value in values(rank, host).items()})

    return jobs.job(process=hook, **changes)


def test_equal_settings_are_clean_and_none_at_all_unknown() -> None:
    assert SettingsDiffer().judge(jobs.job(settings={"NCCL_IB_TC": "106"})).status is Status.CLEAN
    assert SettingsDiffer().judge(jobs.job(subsystems=frozenset({"INIT"}))).status is Status.UNKNOWN


def test_channels_set_on_one_node_only_are_an_error() -> None:
    job = settings(lambda _, host: {"NCCL_RAS_ENABLE": "0", **({"NCCL_MAX_NCHANNELS": "2"} if host else {})})
    [finding] = SettingsDiffer().judge(job).findings
    assert finding.severity is E
    assert finding.message == "NCCL_MAX_NCHANNELS differs between ranks: not set, 2"
    assert finding.where.nodes == ("n1",)
    assert finding.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    "values",
    [
        lambda rank, host: {"NCCL_IB_TC": "0", **({} if rank else {"NCCL_ALGO": "Ring", "NCCL_GRAPH_DUMP_FILE": "g"})},
        lambda rank, host: {"NCCL_IB_TC": "0", **({"NCCL_MAX_NCHANNELS": "2"} if rank % 2 else {})},
        lambda rank, host: {"NCCL_MAX_NCHANNELS": "2"} if host else {},
        lambda rank, host: {"NCCL_HOSTID": f"n{host}", "NCCL_DEBUG_FILE": f"/tmp/{rank}"},
    ],
    ids=["rank 0 prints it", "half of a node", "others print nothing", "meant to differ"],
)
def test_a_setting_that_some_ranks_did_not_print_says_nothing(values: Any) -> None:
    assert SettingsDiffer().judge(settings(values)).status is Status.CLEAN


def on_one_node(_: int, host: int) -> Mapping[str, str]:
    return {"NCCL_IB_TC": "0", **({"NCCL_IB_TIMEOUT": "22"} if host else {})}


def test_a_setting_of_one_of_two_like_nodes_is_a_hint() -> None:
    [finding] = SettingsDiffer().judge(settings(on_one_node)).findings
    assert (finding.severity, finding.confidence, finding.where.nodes) == (I, Confidence.LOW, ("n1",))


def test_nodes_that_are_not_alike_may_have_had_no_need_of_a_setting() -> None:
    job = settings(on_one_node)
    roce = tuple(
        replace(process, hcas=tuple(replace(hca, link_layer="RoCE") for hca in process.hcas))
        if process.host == "n1"
        else process
        for process in job.processes
    )
    hung = jobs.event("watchdog", "Watchdog caught collective operation timeout", level="APP")
    for other in (replace(job, processes=roce), replace(job, events=(hung,)), settings(on_one_node, gpus_per_host=1)):
        assert SettingsDiffer().judge(other).status is Status.CLEAN


def test_ranks_that_did_not_come_up_may_not_have_printed_it_yet() -> None:
    job = settings(lambda _, host: {"NCCL_RAS_ENABLE": "0", **({"NCCL_BUFFSIZE": "1"} if host else {})})
    world = replace(job.communicators[0], completed=job.communicators[0].completed & False)
    assert SettingsDiffer().judge(replace(job, communicators=(world,))).status is Status.CLEAN


def test_two_values_differ_and_names_of_devices_are_only_told() -> None:
    assert SettingsDiffer().judge(settings(lambda _, host: {"NCCL_ALGO": f"{host}"})).findings[0].severity is E
    assert SettingsDiffer().judge(settings(lambda _, host: {"NCCL_IB_TC": f"{host}"})).findings[0].severity is W
    job = settings(lambda _, host: {"NCCL_SOCKET_IFNAME": f"eth{host}"})
    assert SettingsDiffer().judge(job).findings[0].severity is I


def costs(pair: str, given: jobs.Given) -> Any:
    name, _, value = pair.partition("=")
    hooks = {"of_a_plugin": lambda rank, host, process: replace(process, network="AWS Libfabric")}
    return CostlySettingInLog().judge(jobs.of_row({"settings": {name: value}, **given}, **hooks))


@examples("pair", "given", "severity")
def test_a_costly_setting_is_told_where_the_log_shows_the_loss(
    pair: str, given: jobs.Given, severity: Severity
) -> None:
    [finding] = costs(pair, given).findings
    assert finding.severity is severity
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
    [finding] = MisreadSettingInLog().judge(job).findings
    assert "refuses" in finding.message
    assert MisreadSettingInLog().judge(jobs.job(settings={"NCCL_IB_HCA": "mlx5"})).status is Status.CLEAN


def test_old_names_are_told_and_one_that_the_library_printed_is_no_slip() -> None:
    [finding] = UnknownSettingInLog().judge(jobs.job(settings={"NCCL_CHECK_POINTERS": "1"})).findings
    assert "NCCL_CHECK_MODE" in finding.fix[0]
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


def _hca_list_on_one_node(ring: str = "ring 0 does not loop back to start (12 != 0)", less: bool = True) -> Job:
    """Node n0 is told to use fewer devices than it has, n1 is not; NCCL ends in `ring`."""

    def hook(rank: int, host: int, process: Process) -> Process:
        own = {"NCCL_SOCKET_IFNAME": "eth0", **({} if host else {"NCCL_IB_HCA": "mlx5_0,mlx5_1"})}
        hcas = tuple(Hca(at, f"mlx5_{at}") for at in range(4 if host or not less else 2))
        return replace(process, hcas=hcas, settings={name: jobs.given(name, value) for name, value in own.items()})

    return jobs.job(process=hook, events=[jobs.event("topology", f"Error : {ring}", "n0")])


def test_an_hca_list_of_one_node_is_an_error_where_a_ring_does_not_close() -> None:
    [finding] = SettingsDiffer().judge(_hca_list_on_one_node()).findings
    assert finding.severity is E
    assert "not set" in finding.message


@pytest.mark.parametrize(
    "job",
    [_hca_list_on_one_node("Could not find a path for pattern"), _hca_list_on_one_node(less=False)],
    ids=["no word of a ring", "equally many devices"],
)
def test_an_hca_list_of_one_node_is_no_error_otherwise(job: Job) -> None:
    assert all(finding.severity is I for finding in SettingsDiffer().judge(job).findings)


def test_what_rccl_says_of_numa_balancing_is_a_setting_of_the_host() -> None:
    text = "NUMA auto balancing enabled which can lead to variability in the RCCL performance!"
    job = jobs.job(events=[jobs.event("other", text)])
    assert not CostlySettingInLog().judge(job).findings
    [finding] = HostSettingWarned().judge(job).findings
    assert (finding.id, finding.severity, finding.where.nodes) == ("HST003", I, ("n0",))
    assert HostSettingWarned().judge(jobs.job()).status is Status.NOT_APPLICABLE


@examples("name", "value", "network", "expected")
def test_a_setting_is_cleared_only_where_the_log_shows_what_it_would_switch_off(
    name: str, value: str, network: str, expected: Status
) -> None:
    job = settings(lambda rank, host: {name: value}, systems=lambda *_: None)
    job = replace(job, processes=tuple(replace(process, network=network) for process in job.processes))
    assert CostlySettingInLog().judge(job).status is expected
