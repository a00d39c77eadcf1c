"""JOB003 and what logs show for ENV001, ENV002 and ENV003."""

from dataclasses import replace
from typing import Any

from tests.checks import jobs
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.env.job import CostlySettingInLog, MisreadSettingInLog, UnknownSettingInLog
from topodiag.checks.host.job import HostSettingWarned
from topodiag.checks.job.settings.differ import SettingsDiffer
from topodiag.model.finding import Severity, Status
from topodiag.model.job import Communicator, Process

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
    job = jobs.job(settings={name: value}, systems=lambda *_: None)
    job = replace(job, processes=tuple(replace(process, network=network) for process in job.processes))
    assert CostlySettingInLog().judge(job).status is expected
