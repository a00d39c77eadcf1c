"""Settings of commands and shells above the lines of a job, and where they are none of that job."""

from tests.checks.excerpts import HEAD, found, jobs_of
from tests.evidence.nccl_log.rebuild.test_rebuild import LOGS, jobs, rank_log, text
from tests.tables import examples

LINES = (
    f"{HEAD}Bootstrap: Using eth0:10.0.0.1<0>",
    f"{HEAD}NET/IB : No device found.",
    f"{HEAD}NET/Socket : Using [0]eth0:10.0.0.1<0>",
    f"{HEAD}Using network Socket",
    f"{HEAD}ncclCommInitRank comm 0x7f1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0x9 - Init START",
    f"{HEAD}comm 0x7f1 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0",
    f"{HEAD}ncclCommInitRank comm 0x7f1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0x9 - Init COMPLETE",
)
EXPORT = "+ export NCCL_NET=Socket"


def settings(*above: str, below: tuple[str, ...] = ()) -> dict[str, tuple[str, str, int | None]]:
    """By name the value, how it was given, and the line that gave it."""
    (job,) = jobs_of("".join(f"{line}\n" for line in (*above, *LINES, *below)))
    return {
        given.name: (given.value, given.how, given.origin.line if given.origin is not None else None)
        for process in job.processes
        for given in process.settings.values()
    }


@examples("above", "line")
def test_what_a_command_gives_is_a_setting_of_the_job_with_its_place(above: tuple[str, ...], line: int) -> None:
    assert settings(*above) == {"NCCL_NET": ("Socket", "command", line)}


@examples("above")
def test_what_is_no_setting_of_this_job_stays_silent(above: tuple[str, ...]) -> None:
    assert "NCCL_NET" not in settings(*above)


def test_a_command_below_the_jobs_lines_is_one_of_the_next() -> None:
    assert settings(below=(EXPORT,)) == {}


def test_sockets_by_a_command_are_a_setting_that_costs_bandwidth() -> None:
    assert found("ENV001", *LINES) == []
    (finding,) = found("ENV001", EXPORT, *LINES)
    assert finding.settings == (("NCCL_NET", None),)
    assert [(origin.line, origin.text) for origin in finding.evidence] == [(1, EXPORT)]


# --- names of communicators, and calls that never began one ---------------------------------------------------

OPENS = "Comm config Comm name set to TP"


def without(lines: list[str], *parts: str) -> list[str]:
    return [line for line in lines if not any(part in line for part in parts)]


def opened(*logs: list[str]) -> dict[int, str]:
    """By world rank, what its process said of a call that began nothing."""
    (job,) = jobs(*map(text, logs))
    table = {rank.rank: job.processes[rank.process].opening for rank in job.ranks}
    return {rank: opening.text for rank, opening in table.items() if opening is not None}


def test_the_name_is_that_of_the_communicator_that_begins_next_and_not_of_the_one_before() -> None:
    (job,) = jobs(*map(text, LOGS))
    assert [communicator.name for communicator in job.communicators] == ["", "TP", "TP"]
    assert not opened(*LOGS)


def test_a_name_whose_communicator_never_begins_is_nobodys_name_and_an_opening() -> None:
    logs = [without(rank_log(rank), "ncclCommSplit") for rank in range(4)]
    (job,) = jobs(*map(text, logs))
    assert [communicator.name for communicator in job.communicators] == [""]
    assert opened(*logs) == dict.fromkeys(range(4), OPENS)


def test_a_rank_that_takes_no_part_entered_the_call() -> None:
    last = without(rank_log(3), "ncclCommSplit", "Comm config")
    last.append(last[-1].partition("NCCL INFO")[0] + "NCCL INFO Rank 3 has color with NCCL_SPLIT_NOCOLOR, not creating")
    assert opened(*LOGS[:3], last) == {3: "Rank 3 has color with NCCL_SPLIT_NOCOLOR, not creating"}


def test_several_names_before_the_first_beginning_name_nobody() -> None:
    """In a group the communicators begin in any order."""
    logs = []
    for rank in range(4):
        lines = rank_log(rank)
        at = next(i for i, line in enumerate(lines) if OPENS in line)
        logs.append([*lines[: at + 1], lines[at].replace(" TP", " DP"), *lines[at + 1 :]])
    (job,) = jobs(*map(text, logs))
    assert [communicator.name for communicator in job.communicators] == ["", "", ""]


def test_a_log_without_any_init_has_no_opening() -> None:
    head = "n0:100:100 [0] NCCL INFO "
    (job,) = jobs(text([head + "NCCL version 2.28.9+cuda13.0", head + OPENS]))
    assert [process.opening for process in job.processes] == [None]
