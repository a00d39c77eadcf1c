"""Settings of commands and shells above the lines of a job, and where they are none of that job."""

from tests.checks.excerpts import HEAD, found, jobs_of
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
