"""Where the ranks of a job ran, from its logs, also of ranks that left no line."""

import pytest

from topodiag.model.connections import no_connections
from topodiag.model.errors import InputError
from topodiag.model.job import Job, Rank
from topodiag.placement.rank_nodes import ranks_of


def job(hosts: str, *, without: tuple[int, ...] = (), gpus: bool = True) -> Job:
    """Hosts of one letter each, rank by rank."""
    ranks = [
        Rank(rank, host, 100 + rank, nvml_dev=hosts[:rank].count(host) if gpus else 0, bus_id=f"0000:{rank:02x}:00.0")
        for rank, host in enumerate(hosts)
        if rank not in without
    ]
    return Job("job", len(hosts), tuple(ranks), (), (), no_connections(), tuple(sorted(set(hosts))))


def places(run: Job) -> list[tuple[str, int]]:
    rank_hosts = ranks_of(run, "log")
    return [
        (rank_hosts.hosts[at], gpu) for at, gpu in zip(rank_hosts.host.tolist(), rank_hosts.gpu.tolist(), strict=True)
    ]


def test_ranks_are_where_their_lines_say() -> None:
    assert places(job("abab")) == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    assert ranks_of(job("abab"), "log").notes == ()


def test_gpus_that_all_processes_call_0_are_counted_by_bus_id() -> None:
    assert places(job("aabb", gpus=False)) == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


@pytest.mark.parametrize(("hosts", "without"), [("abab", (1,)), ("aabb", (2,)), ("abababab", (5, 7))])
def test_ranks_without_a_line_are_where_the_others_leave_room(hosts: str, without: tuple[int, ...]) -> None:
    document = job(hosts, without=without)
    pairs = places(document)
    assert [pairs[rank] for rank in without] == [("b", -1)] * len(without)
    assert [pair for rank, pair in enumerate(pairs) if rank not in without] == [
        (rank.host, rank.nvml_dev) for rank in document.ranks
    ]


def test_it_is_said() -> None:
    (note,) = ranks_of(job("abab", without=(1,)), "log").notes
    assert note == "ranks without a line in the log are taken to be on b, where others of the job leave room: 1"


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (job("abab", without=(0, 1)), "2 of 4 ranks left no line"),  # one of each host: either could be on either
        (job("aabb", without=(2, 3)), "2 of 4 ranks left no line"),  # a host that nobody has seen
        (job("abab", without=(0, 1, 2, 3)), "names no rank"),
    ],
)
def test_ranks_that_can_be_anywhere_are_one_clear_line(made: Job, says: str) -> None:
    with pytest.raises(InputError) as caught:
        ranks_of(made, "log")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
