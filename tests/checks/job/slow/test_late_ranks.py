"""JOB008: a rank that comes late to its collectives, and when the check stays silent."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.inspector import Fault, Shape, faults, findings, is_named, read
from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.files import laid
from tests.pasted import loud
from tests.tables import examples
from topodiag.api import diagnose
from topodiag.checks.job.slow.inspector import SlowHoursOfJob
from topodiag.checks.job.slow.late_ranks import LateArriver, late_kernels
from topodiag.checks.job.slow.slow_phase import SlowPartOfJob
from topodiag.model.connections import no_connections
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.inspector import (
    CallsOfOneSize,
    HourOfCalls,
    Inspection,
    InspectorCommunicator,
    InspectorMember,
    LastArrivals,
)
from topodiag.model.job import FlightRecord, Job

START, STEP = 1.7e9, 0.5
RANKS, CALLS = 8, 6


def job_with(late: Callable[[int, int], float], operation: str = "all_reduce") -> Job:
    """Eight ranks of one node and eight of another; `late(rank, seq)` is by how much a rank enqueues a call later."""
    records = []
    for rank in range(2 * RANKS):
        entries = tuple(("0", seq, operation, "completed") for seq in range(1, CALLS + 1))
        times = tuple(START + STEP * seq + 0.002 * (rank % 3) + late(rank, seq) for seq in range(1, CALLS + 1))
        members = {"0": tuple(range(2 * RANKS))}
        records.append(FlightRecord(rank, entries, members, {"0": "default_pg"}, jobs.origin(f"{rank}"), times))
    return replace(jobs.job(2), flight=tuple(records))


def found(job: Job) -> list[Finding]:
    return list(LateArriver().judge(job).findings)


def test_a_rank_that_came_late_once_is_named_with_the_operation() -> None:
    [finding] = found(job_with(lambda rank, seq: 12.4 if (rank, seq) == (5, 4) else 0.0))
    assert finding.message.startswith("rank 5 enters all_reduce number 4 of process group default_pg 12.4 s after")
    assert finding.where.ranks == (5,)
    assert finding.severity is Severity.WARNING


def test_a_rank_that_comes_after_the_others_of_its_host_each_time_is_named() -> None:
    outcome = found(job_with(lambda rank, seq: 0.2 if rank == 3 else 0.0))
    expect(outcome, message="rank 3 enters each collective of process group default_pg 1*", cost="*each time")


@pytest.mark.parametrize(
    "late",
    [
        lambda rank, seq: 0.0,
        lambda rank, seq: 90.0 if rank >= RANKS else 0.0,
        lambda rank, seq: 5.0 if rank % 2 and seq == 4 else 0.0,
        lambda rank, seq: 0.03 if rank == 3 else 0.0,
    ],
    ids=["noise", "another clock of a node", "half of the ranks", "less than a step varies by"],
)
def test_noise_clocks_and_lateness_of_many_are_silent(late: Callable[[int, int], float]) -> None:
    assert LateArriver().judge(job_with(late)).status is Status.CLEAN


def test_sends_and_receives_are_not_compared() -> None:
    outcome = LateArriver().judge(job_with(lambda rank, seq: 9.0 * (rank == 5 and seq == 4), "send 0->1"))
    assert outcome.status is Status.UNKNOWN


def test_dumps_without_times_and_jobs_without_dumps_are_unknown() -> None:
    timed = job_with(lambda rank, seq: 0.0)
    untimed = replace(timed, flight=tuple(replace(record, created_s=()) for record in timed.flight))
    assert LateArriver().judge(untimed).status is Status.UNKNOWN
    assert LateArriver().judge(jobs.job(2)).status is Status.UNKNOWN


# --- JOB008, JOB011 and JOB012 by NCCL's Inspector: the late rank, the slow part and the slow hours, and silence

SMALL = Shape(width=4, hours=8, steps_an_hour=14)


def job(*communicators: InspectorCommunicator) -> Job:
    return Job("Inspector", 8, (), (), (), no_connections(), (), inspection=Inspection(communicators))


def comm(
    number: int, ranks: Sequence[int], *, clean_us: float = 1000.0, nodes: int = 2, **other: object
) -> InspectorCommunicator:
    """A communicator of these world ranks, eight of which are on a node. `by_hour` gives medians from hour 100 on."""
    members = {at: InspectorMember(at, f"n{rank // 8}", 4000 + rank) for at, rank in enumerate(ranks)}
    by_hour = other.pop("by_hour", ())
    assert isinstance(by_hour, Sequence)
    hours = tuple(HourOfCalls(100 + at, 20, us) for at, us in enumerate(by_hour))
    size = CallsOfOneSize("AllReduce", 1 << 26, 200, clean_us, 67e3 / clean_us, 1, hours)
    communicator = InspectorCommunicator(number, f"c{number}", len(ranks), nodes, members, (size,), 200, 200 * clean_us)
    return replace(communicator, **other)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["healthy", "late rank", "slow NIC", "hour of congestion"])
def test_each_fault_of_a_simulated_job_is_named_and_a_healthy_one_is_silent(name: str, seed: int) -> None:
    fault = faults(SMALL, seed)[name]
    assert is_named(name, fault, findings(read(SMALL, fault, seed)), SMALL)


def test_who_is_late_only_because_a_peer_of_its_node_is_late_is_not_named() -> None:
    kernels = late_kernels(read(SMALL, Fault(late_rank=37, late_us=2500.0), 1))
    assert [[place.rank for place in late.who] for late in kernels] == [[37]]
    assert kernels[0].group == "tp_4"


CHECKS = {check.__name__: check for check in (LateArriver, SlowPartOfJob, SlowHoursOfJob)}


def comms(number: int = 1, count: int = 1, ranks: Sequence[int] = (0, 8), **told: Any) -> list[InspectorCommunicator]:
    """So many communicators of a row, numbered on, of the same world ranks: the first and the one behind the last,
    perhaps each so manieth; `last` has the times that a rank came last, and how long the others waited."""
    last = {int(rank): LastArrivals(*arrivals) for rank, arrivals in told.pop("last", {}).items()}
    return [comm(number + at, range(*ranks), **told, **({"last": last} if last else {})) for at in range(count)]


@examples("check", "communicators", "wanted")
def test_what_records_say_of_communicators(check: str, communicators: list[dict[str, Any]], wanted: Wanted) -> None:
    made = [each for told in communicators for each in comms(**told)]
    assert shown(CHECKS[check]().judge(job(*made)), wanted) == wanted


def test_a_job_without_records_is_not_judged_by_them() -> None:
    bare = replace(job(), inspection=None)
    assert SlowPartOfJob().judge(bare).status is Status.NOT_APPLICABLE
    assert SlowHoursOfJob().judge(bare).status is Status.NOT_APPLICABLE


# --- A rank that is late in a part of each step: said where the others wait for it, and nowhere else


Times = tuple[float, float, float]
"""Seconds of data, forward and backward."""


def line(rank: int, step: int, times: Times, form: str) -> str:
    data, forward, backward = times
    total = data + forward + backward + 0.001
    stamp = f"2026-03-01 10:00:{step % 60:02d}"
    if form == "ms":
        return (
            f"step {step} | loss 2.30 | iter time {total * 1e3:.1f} ms | load {data * 1e3:.1f} ms |"
            f" fwd {forward * 1e3:.1f} ms | bwd {backward * 1e3:.1f} ms"
        )
    head = f"{stamp} [rank{rank}] " if form == "head" else f"{stamp} "
    return (
        f"{head}step {step:4d}  loss 2.3002  step_time {total:.3f} s  data {data:.3f} s  forward {forward:.3f} s"
        f"  backward+allreduce {backward:.3f} s"
    )


def job_of(
    times: Callable[[int, int], Times], ranks: int = 4, steps: int = 40, form: str = "head"
) -> dict[int, list[str]]:
    return {rank: [line(rank, step, times(rank, step), form) for step in range(steps)] for rank in range(ranks)}


def named(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [finding for finding in document["findings"] if finding["severity"] != "info"]


def of_files(folder: Path, made: dict[int, list[str]]) -> dict[str, Any]:
    return of_folder(laid(folder, {f"rank{rank}.log": "\n".join(lines) + "\n" for rank, lines in made.items()}))


def of_folder(folder: Path) -> dict[str, Any]:
    got: dict[str, Any] = json.loads(diagnose(str(folder)).to_json())
    return got


def noisy(rank: int, step: int, late: int = -1, data: float = 0.0, forward: float = 0.0) -> Times:
    """A step of 0.3 s with noise of 25 %, in which one rank may be late by some seconds; the others wait for it."""
    chance = random.Random(1000 * rank + step)
    base = 0.05 * chance.uniform(0.75, 1.25)
    lost = data + forward
    if rank == late:
        return 0.002 + data, base + forward, 0.25 - base
    return 0.002, base, 0.25 - base + lost


def late_loader(rank: int, step: int) -> Times:
    return noisy(rank, step, 1, data=0.13)


def late_forward(rank: int, step: int) -> Times:
    return noisy(rank, step, 2, forward=0.1)


@pytest.mark.parametrize("form", ["head", "plain", "ms"])
@pytest.mark.parametrize(("times", "rank", "part"), [(late_loader, 1, ("data", "load")), (late_forward, 2, ("f",))])
def test_a_late_rank_is_named_with_its_part_and_where_the_others_wait(
    tmp_path: Path, form: str, times: Callable[[int, int], Times], rank: int, part: tuple[str, ...]
) -> None:
    answer = of_files(tmp_path, job_of(times, form=form))
    (first,) = named(answer)
    assert (first["id"], first["where"]["ranks"]) == ("JOB008", [rank])
    assert first["message"].startswith(f"rank {rank} is late in each step: its {part[0 if form != 'ms' else -1]}")
    assert first["message"].endswith("bwd" if form == "ms" else "backward+allreduce")
    assert answer["verdict"]["state"] == "slow"
    assert any("links alone" in each for each in first["fix"])


def test_ranks_mixed_in_one_file_are_told_apart_by_their_heads(tmp_path: Path) -> None:
    document = job_of(late_forward)
    mixed = [document[rank][step] for step in range(40) for rank in (2, 0, 3, 1)]
    assert loud(tmp_path, "\n".join(mixed)) == ["JOB008"]


def test_several_ranks_that_are_late_in_one_part_are_one_finding(tmp_path: Path) -> None:
    def two_late(rank: int, step: int) -> Times:
        return noisy(rank, step, rank if rank in (4, 5) else -1, data=0.13)

    (element,) = named(of_files(tmp_path, job_of(two_late, ranks=8)))
    assert element["where"]["ranks"] == [4, 5]
    assert element["message"].startswith("ranks 4-5 are late in each step: their data takes up to ")


def test_files_that_no_rank_is_named_in_are_told_apart_by_their_names(tmp_path: Path) -> None:
    for rank, lines in job_of(late_forward, form="plain").items():
        (tmp_path / f"worker-{'abcd'[rank]}.out").write_text("\n".join(lines) + "\n")
    (element,) = named(of_folder(tmp_path))
    assert element["message"].startswith("worker-c.out is late in each step: its forward takes")


def test_files_whose_names_differ_in_words_are_runs_and_no_ranks(tmp_path: Path) -> None:
    for rank, lines in job_of(late_forward, form="plain").items():
        (tmp_path / f"city_{('dali', 'plain', 'cached', 'old')[rank]}.out").write_text("\n".join(lines) + "\n")
    assert named(of_folder(tmp_path)) == []


def alike(rank: int, step: int) -> Times:
    return noisy(rank, step)


def slow_first(rank: int, step: int) -> Times:
    return (0.5, 3.0 + rank, 2.0) if step < 2 else noisy(rank, step)


def nobody_waits(rank: int, step: int) -> Times:
    """One rank loads longer in the background of its own step: no other rank waits the less."""
    data, forward, backward = noisy(rank, step)
    return (data + 0.05 if rank == 1 else data, forward, backward)


def two_kinds(rank: int, step: int) -> Times:
    """Half of the ranks are another stage of a pipeline."""
    return (0.001, 0.15, 0.1) if rank % 2 else (0.001, 0.05, 0.2)


def once_in_a_while(rank: int, step: int) -> Times:
    return late_loader(rank, step) if step % 10 == 0 else noisy(rank, step)


@pytest.mark.parametrize("times", [alike, slow_first, nobody_waits, two_kinds, once_in_a_while])
def test_ranks_that_nobody_waits_for_in_each_step_are_not_late(
    tmp_path: Path, times: Callable[[int, int], Times]
) -> None:
    answer = of_files(tmp_path, job_of(times))
    assert named(answer) == []


def test_one_rank_that_logs_alone_is_compared_with_nobody(tmp_path: Path) -> None:
    answer = of_files(tmp_path, {1: job_of(late_forward)[2]})
    assert named(answer) == []


def test_of_two_ranks_only_waiting_for_data_says_who_is_late(tmp_path: Path) -> None:
    def loads(rank: int, step: int) -> Times:
        return late_loader(rank, step)

    def stages(rank: int, step: int) -> Times:
        return (0.001, 0.05, 0.2) if rank else (0.001, 0.2, 0.05)

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert [element["where"]["ranks"] for element in named(of_files(tmp_path / "a", job_of(loads, ranks=2)))] == [[1]]
    assert named(of_files(tmp_path / "b", job_of(stages, ranks=2))) == []


def test_all_ranks_that_become_slow_in_their_communication_are_a_slow_job(tmp_path: Path) -> None:
    def slower(rank: int, step: int) -> Times:
        return (0.001, 0.03, 0.9 if step >= 25 else 0.07)

    answer = of_files(tmp_path, job_of(slower))
    assert (answer["verdict"]["state"], answer["verdict"]["causes"]) == ("slow", [])
    assert "from step 25 on" in answer["verdict"]["headline"]
    assert "in backward+allreduce" in answer["verdict"]["headline"]


def test_steps_that_become_longer_in_their_forward_pass_may_be_meant_so(tmp_path: Path) -> None:
    def longer(rank: int, step: int) -> Times:
        return (0.001, 0.1, 0.14) if step >= 25 else (0.001, 0.05, 0.07)

    answer = of_files(tmp_path, job_of(longer))
    assert (answer["verdict"]["state"], named(answer)) == ("unknown", [])
