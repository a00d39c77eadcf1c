"""Jobs rebuilt from small logs, with the settings that commands and shells show above."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checks.excerpts import HEAD, found, jobs_of
from tests.checks.excerpts import jobs_of as jobs
from tests.tables import examples, parts
from topodiag.model.job import Job


def rank_log(  # noqa: PLR0917 - one number each
    rank: int, nranks: int = 4, pid: int = 100, per_host: int = 2, comm_id: str = "0xabc", host: str = "", tid: int = 0
) -> list[str]:
    """One rank's lines: the world, a pair with its neighbour over P2P, and an error at the end."""
    host = host or f"n{rank // per_host}"
    dev = rank % per_host
    head = f"{host}:{pid + dev if pid > 1 else 1}:{tid or pid + dev} [{dev}] NCCL INFO "
    place = f"cudaDev {dev} nvmlDev {dev} busId {dev + 1}b000"
    world = f"ncclCommInitRank comm 0x7f00000000{dev}0 rank {rank} nranks {nranks} {place} commId {comm_id} - Init "
    pair = f"ncclCommSplit comm 0x7f00000001{dev}0 rank {rank % 2} nranks 2 {place} parent 0x7f00000000{dev}0 "
    pair += f"splitCount 1 color {rank // 2} key {rank}"
    after, before = (rank + 1) % nranks, (rank - 1) % nranks
    return [
        head + f"Bootstrap: Using eth0:10.0.0.{rank + 1}<0>",
        head + "cudaDriverVersion 12040",
        head + "NCCL version 2.28.9+cuda13.0",
        head + "NCCL_IB_TIMEOUT set by environment to 18446744073709551615.",
        head + "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
        head + "Using network IB",
        head + world + "START",
        head + f"Ring 00 : {before} -> {rank} -> {after}",
        head + f"Channel 00/0 : {before}[{before % per_host}] -> {rank}[{dev}] [receive] via NET/IB/0/GDRDMA",
        head + f"Channel 00/0 : {rank}[{dev}] -> {after}[{after % per_host}] [send] via NET/IB/{dev}/GDRDMA",
        head + world + "COMPLETE",
        head + "Comm config Comm name set to TP",
        head + f"Comm config Traffic class set to {1097472892 + rank}",
        head + "Using network IB",
        head + pair + "- Init START",
        head + f"Channel 00/0 : {rank % 2}[{dev}] -> {1 - rank % 2}[{1 - dev}] via P2P/CUMEM",
        head + pair + " - Init COMPLETE",
    ]


def text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


LOGS = [rank_log(rank) for rank in range(4)]


def shape(job: Job) -> object:
    """What does not depend on which file held the lines."""
    return (
        [(r.rank, r.host, r.pid, r.cuda_dev, r.bus_id) for r in job.ranks],
        [(c.ranks.tolist(), c.parent, c.color, c.name, c.network, dict(c.transports), dict(c.rings)) for c in
         job.communicators],
        job.world_size, job.hosts, job.nccl_versions,
    )  # fmt: skip


def test_a_job_is_put_together_from_its_ranks() -> None:
    (job,) = jobs(*map(text, LOGS))
    assert job.world_size == 4
    assert [(r.host, r.bus_id) for r in job.ranks] == [(f"n{r // 2}", f"0000:{r % 2 + 1}b:00.0") for r in range(4)]
    world, *pairs = job.communicators
    assert [pair.ranks.tolist() for pair in pairs] == [[0, 1], [2, 3]]
    assert {pair.parent for pair in pairs} == {0}
    assert [pair.name for pair in pairs] == ["TP", "TP"]
    assert world.name == ""
    assert world.rings == {0: (0, 1, 2, 3)}
    assert world.init_complete
    assert world.transports == {"NET/IB/0/GDRDMA": 6, "NET/IB/1/GDRDMA": 2}
    process = job.processes[0]
    assert process.settings["NCCL_IB_TIMEOUT"].value == "-1"
    assert [(hca.name, hca.link_layer) for hca in process.hcas] == [("mlx5_0", "IB"), ("mlx5_1", "RoCE")]
    assert process.bootstrap == "eth0:10.0.0.1<0>"
    assert process.versions == {"nccl": "2.28.9+cuda13.0", "driver": "12040"}


def test_lines_that_tell_of_one_device_are_devices_and_no_messages() -> None:
    head = "n0:100:100 [0] NCCL INFO "
    long = "NET/IB: [1] mlx5_1:uverbs1:1/RoCE provider=Mlx5 speed=400000 context=0x7f00 pciPath=/sys/devices/b ar=1"
    (job,) = jobs(text([head + long, *LOGS[0]]))
    process = job.processes[0]
    assert [(hca.name, hca.speed_mbps) for hca in process.hcas] == [("mlx5_0", None), ("mlx5_1", 400000)]
    assert {hca.origin.text for hca in process.hcas if hca.origin} == {LOGS[0][4].removeprefix(head)}
    assert process.origin.text == long
    assert not process.said("hca")
    assert process.said("hcas")


def test_a_job_has_the_messages_of_its_processes_by_kind() -> None:
    (job,) = jobs(*map(text, LOGS))
    assert job.messages["bootstrap"] == [(i, *process.said("bootstrap")) for i, process in enumerate(job.processes)]
    assert sum(map(len, job.messages.values())) == sum(len(process.messages) for process in job.processes)


def test_a_ring_takes_of_each_rank_the_hop_that_was_printed_last() -> None:
    # One rank says of another what that one itself says otherwise, in a line of the same thread behind it.
    late = [line.replace("Ring 00 : 2 -> 3 -> 0", "Ring 00 : 1 -> 3 -> 0") for line in LOGS[3]]
    (job,) = jobs(*map(text, [*LOGS[:3], late]))
    assert job.communicators[0].rings == {}
    again = late[7].replace("1 -> 3 -> 0", "2 -> 3 -> 0")
    more = late[7].replace("1 -> 3 -> 0", "0 -> 1 -> 2")
    (job,) = jobs(*map(text, [*LOGS[:3], [*late[:8], again, more, *late[8:]]]))
    assert job.communicators[0].rings == {0: (0, 1, 2, 3)}


@settings(max_examples=15)
@given(st.randoms(use_true_random=False), st.booleans())
def test_interleaved_and_labelled_lines_give_the_same_job(random: object, labelled: bool) -> None:
    left = [list(lines) for lines in LOGS]
    mixed = []
    while any(left):
        rank = random.choice([i for i, lines in enumerate(left) if lines])  # type: ignore[attr-defined]
        mixed.append((f"{rank}: " if labelled else "") + left[rank].pop(0))
    (job,) = jobs(text(mixed))
    assert shape(job) == shape(jobs(*map(text, LOGS))[0])


def test_the_last_operations_have_no_gap_where_a_thread_printed_them_for_several_devices() -> None:
    """One thread calls for two GPUs in turn: NCCL heads the lines with the device that is current, not the one it
    means."""
    message = "AllReduce: opCount {0:x} sendbuff 0x1 recvbuff 0x2 count {0} datatype 7 op 0 root 0 comm 0x7f0000000000 "
    lines = [f"n0:100:100 [{int(n >= 60)}] NCCL INFO {message.format(n)}[nranks=4] stream 0x3" for n in range(90)]
    (job,) = jobs(text(LOGS[0] + lines))
    done = job.communicators[0].operations[0]
    assert done.calls_by_collective == {"AllReduce": 90}
    assert [elements for _, _, elements, *_ in done.tail] == list(range(90 - len(done.tail), 90))
    assert done.tail


def starts(first: int, last: int, comm_id: str, end: str = "", nranks: int = 8) -> str:
    """Init lines of some ranks of a world, on a host of their own."""
    lines = [
        f"h{first}:{rank}:{rank} [0] NCCL INFO ncclCommInitRank comm 0x7f{rank}0 rank {rank} nranks {nranks} cudaDev 0"
        f" nvmlDev 0 busId {rank + 1}b000 commId {comm_id} - Init {word}"
        for rank in range(first, last)
        for word in ("START", end)
        if word
    ]
    return text(lines)


def log_of(told: str | list[Any]) -> str:
    """A log of a row: its text, or parts of `rank_log` and `starts` with their arguments and those that have a name."""
    if isinstance(told, str):
        return told
    builders = {"rank": lambda *numbers, **named: text(rank_log(*numbers, **named)), "starts": starts,
                "groups": lambda rank: text(LOGS[rank][:6] + LOGS[rank][11:])}  # fmt: skip
    return "".join(builders[name](*own, **(named or {})) for name, own, named in ([*part, None][:3] for part in told))


@examples("logs", "wanted")
def test_jobs_of_small_logs(logs: list[str | list[Any]], wanted: list[dict[str, Any]]) -> None:
    """Parts of each job."""
    made = list(jobs(*map(log_of, logs)))
    assert parts(made, wanted) == wanted


NUMBERS = st.sampled_from(["-1", "0", "1", "3", "9", "99999999", "2147483647", "99999999999999999999", "x", ""])


@given(st.data())
def test_damaged_numbers_never_raise(data: st.DataObject) -> None:
    lines = [line for rank in LOGS for line in rank]
    for _ in range(data.draw(st.integers(1, 8))):
        i = data.draw(st.integers(0, len(lines) - 1))
        words = lines[i].split(" ")
        words[data.draw(st.integers(0, len(words) - 1))] = data.draw(NUMBERS)
        lines[i] = " ".join(words)
    jobs(text(lines))


@pytest.mark.parametrize("event", ["START", "COMPLETE"])
@pytest.mark.parametrize("rank", ["4", "99999999", "2147483647"])
def test_a_rank_beyond_its_communicator_is_a_damaged_line_and_no_rank(rank: str, event: str) -> None:
    message = "comm 0x7f0000000010 rank 3 nranks 4 cudaDev 1 nvmlDev 1 busId 2b000 commId 0xabc - Init "
    damaged = message.replace("rank 3 nranks", f"rank {rank} nranks")
    (job,) = jobs(*(text(lines).replace(message + event, damaged + event) for lines in LOGS))
    assert [rank.rank for rank in job.ranks] == [0, 1, 2, 3]
    assert job.communicators[0].ranks.tolist() == [0, 1, 2, 3]
    assert job.communicators[0].completed.tolist() == [True, True, True, event == "START"]


@examples("line", "kind", "secondary", "details")
def test_an_error_is_read_to_its_parts(line: str, kind: str, secondary: bool, details: dict[str, str]) -> None:
    head = LOGS[0][0].split(" NCCL INFO ")[0]
    (job,) = jobs(text([*LOGS[0], "", f"{head} {line}"]), *map(text, LOGS[1:]))
    (event,) = job.events
    assert (event.kind, event.secondary, event.rank, event.host) == (kind, secondary, 0, "n0")
    assert {name: event.details.get(name) for name in details} == details
    assert event.origin.line == len(LOGS[0]) + 2


# --- settings of commands and shells above the lines of a job, and where they are none of that job


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


def given_above(*above: str, below: tuple[str, ...] = ()) -> dict[str, tuple[str, str, int | None]]:
    """By name the value, how it was given, and the line that gave it."""
    (job,) = jobs_of("".join(f"{line}\n" for line in (*above, *LINES, *below)))
    return {
        given.name: (given.value, given.how, given.origin.line if given.origin is not None else None)
        for process in job.processes
        for given in process.settings.values()
    }


@examples("above", "line")
def test_what_a_command_gives_is_a_setting_of_the_job_with_its_place(above: tuple[str, ...], line: int) -> None:
    assert given_above(*above) == {"NCCL_NET": ("Socket", "command", line)}


@examples("above")
def test_what_is_no_setting_of_this_job_stays_silent(above: tuple[str, ...]) -> None:
    assert "NCCL_NET" not in given_above(*above)


def test_a_command_below_the_jobs_lines_is_one_of_the_next() -> None:
    assert given_above(below=(EXPORT,)) == {}


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
