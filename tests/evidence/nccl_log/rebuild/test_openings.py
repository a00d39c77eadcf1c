"""Names of communicators, and calls that never began one."""

from tests.evidence.nccl_log.rebuild.test_rebuild import LOGS, jobs, rank_log, text

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
