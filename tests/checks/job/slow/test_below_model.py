"""JOB014 and JOB015: bandwidth beside what NCCL's model expects, and what the steps of transfers wait for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks import inspector_machine
from tests.checks import jobs
from tests.checks.wanted import expect
from tests.tables import examples
from topodiag.app.case.build import _related as related
from topodiag.app.case.ras import with_step_waits
from topodiag.app.logs import logs
from topodiag.app.scan import scan
from topodiag.checks.job.slow.inspector import BelowModel
from topodiag.checks.job.slow.slow_phase import OddStepWaits
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live.diagnostics import STATES, read_trace
from topodiag.expect.inspector import beside_model
from topodiag.model.finding import Coverage, Finding, Outcome, Status
from topodiag.model.inspector import CallsOfOneSize, Inspection, InspectorCommunicator, InspectorMember, MadeOf
from topodiag.model.job import Job, Process
from topodiag.model.node import Node
from topodiag.model.result import Case

EXPECTED = 470
"""About what 16 H100 with eight NICs of 400 Gb/s reach in an AllReduce of 1 GiB, in GB/s."""


def comm(
    gbs: float,
    ranks: Sequence[int] = range(16),
    *,
    number: int = 1,
    size: int = 1 << 30,
    calls: int = 500,
    collective: str = "AllReduce",
    best: float = 1.0,
    **other: object,
) -> InspectorCommunicator:
    """A communicator of these world ranks whose calls reach `gbs` of bus bandwidth, the best of them `best` as much."""
    members = {at: InspectorMember(at, f"n{rank // 8}", 1000 + rank) for at, rank in enumerate(ranks)}
    count = len(members)
    factor = 2 * (count - 1) / count if collective == "AllReduce" else count - 1
    clean = size * factor / gbs / 1e3
    own = CallsOfOneSize(collective, size, calls, clean, gbs, gbs, best_us=clean / best)
    communicator = InspectorCommunicator(
        number, f"c{number}", count, len({member.host for member in members.values()}), members, (own,), calls,
        calls * clean,
    )  # fmt: skip
    return replace(communicator, **other)  # type: ignore[arg-type]


@cache
def captured() -> dict[str, Node]:
    (node,) = scan(["fixture:dgx-h100-healthy"]).nodes
    return {host: replace(node, host=host) for host in ("n0", "n1")}


def judged(
    *communicators: InspectorCommunicator, machines: dict[str, Node] | None = None, logged: bool = True
) -> Outcome:
    job = logged_job()
    if not logged:
        job = replace(job, communicators=tuple(replace(communicator, comm_id=99) for communicator in job.communicators))
    return of_job(job, *communicators, machines=machines)


def logged_job(**changes: object) -> Job:
    """A job of 16 H100 whose log shows the communicator 1."""
    job = jobs.job(world=lambda communicator: replace(communicator, comm_id=1), **changes)  # type: ignore[arg-type]
    return replace(job, ranks=tuple(replace(rank, bus_id=buses()[rank.cuda_dev]) for rank in job.ranks))


def buses() -> list[str]:
    return [gpu.bus_id or "" for gpu in captured()["n0"].gpus]


def of_job(
    job: Job, *communicators: InspectorCommunicator, machines: dict[str, Node] | None = None, transfers: int = 0
) -> Outcome:
    job = replace(
        job,
        machines=captured() if machines is None else machines,
        inspection=Inspection(communicators, records=1000, transfers=transfers),
    )
    return BelowModel().judge(replace(job, inspection=beside_model(job)))


def only(outcome: Outcome) -> Finding:
    (finding,) = outcome.findings
    return finding


def test_a_kind_of_communicators_that_reaches_a_third_of_what_its_machines_should_is_told() -> None:
    outcome = judged(comm(EXPECTED / 3))
    finding = expect(outcome, message="AllReduce of 1 GiB reaches 3*", nodes=("n0", "n1"), confidence="MEDIUM")
    assert finding.cost.gbs_lost == pytest.approx(EXPECTED * 2 / 3, rel=0.15)


def test_what_confirms_it_is_the_same_operation_on_the_same_hosts() -> None:
    again = [("all_reduce_perf", "mpirun -np 16 -H n0:8,n1:8 all_gather_perf"), ("-b 64M -e 4G", "-b 64M -e 64M")]
    low = comm(100.0, collective="AllGather", size=1 << 26)
    expect(judged(low), confirm=again, fix="run all_gather_perf on n0, n1 *")


@examples("communicators", "status", "why", "machines", "logged")
def test_what_a_communicator_reaches_is_judged(
    *,
    communicators: list[dict[str, Any]],
    status: Status,
    why: str | None,
    machines: dict[str, Node] | None,
    logged: bool,
) -> None:
    made = [
        comm(**row) if "made_of" not in row else comm(**row | {"made_of": MadeOf[row["made_of"]]})
        for row in communicators
    ]
    outcome = judged(*made, machines=machines, logged=logged is not False)
    assert outcome.status is status
    assert (why or "") in outcome.why


def test_captures_of_other_machines_are_none_of_the_jobs() -> None:
    job = logged_job()
    other = replace(job, ranks=tuple(replace(rank, bus_id="0000:ee:00.0") for rank in job.ranks))
    assert "other machines" in of_job(other, comm(100.0)).why


def test_where_not_all_nodes_were_captured_it_is_less_sure() -> None:
    finding = expect(judged(comm(EXPECTED / 3), machines={"n0": captured()["n0"]}), confidence="LOW")
    assert finding.coverage == Coverage(1, 2, "nodes captured")


def test_a_host_that_the_inspector_calls_by_its_long_name_is_that_of_the_capture() -> None:
    own = comm(EXPECTED / 3)
    members = {rank: replace(member, host=f"{member.host}.cluster.example") for rank, member in own.members.items()}
    assert judged(replace(own, members=members)).status is Status.FINDING


def test_an_application_that_limits_ctas_is_slow_by_intent() -> None:
    def limited(_rank: int, _host: int, process: Process) -> Process:
        return replace(process, settings={"Max CTAs": jobs.given("Max CTAs", "4", "application")})

    assert "Max CTAs 4" in of_job(logged_job(process=limited), comm(100.0)).why


def test_sends_and_receives_count_as_one_more_that_shares_the_wires() -> None:
    third = comm(EXPECTED / 3)
    assert of_job(logged_job(), third, transfers=10).status is Status.CLEAN
    rows = jobs.healthy_rows(2, 8, 8)
    rows.append({"rank": 0, "peer": 8, "via": jobs.INTER, "net_dev": 0, "direction": 1, "conn": 1})
    assert of_job(logged_job(rows=rows), third).status is Status.CLEAN
    assert of_job(logged_job(rows=rows), comm(EXPECTED / 6)).status is Status.FINDING


def test_a_case_sets_the_records_beside_the_captures_of_the_jobs_hosts() -> None:
    job = replace(logged_job(), inspection=Inspection((comm(EXPECTED / 3),), records=1000))
    (run,) = related(Case(nodes=tuple(captured().values()), jobs=(job,))).jobs
    assert BelowModel().judge(replace(run, inspection=beside_model(run))).status is Status.FINDING


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", inspector_machine.WANTED)
def test_a_simulated_machine_that_is_slow_is_told_and_a_late_rank_neither_hides_nor_feigns_it(
    name: str, seed: int
) -> None:
    machine = inspector_machine.cases(seed)[name]
    findings = inspector_machine.findings(inspector_machine.read(machine, seed))
    assert inspector_machine.is_named(name, machine, findings), [finding.message for finding in findings]


# --- JOB014: what the steps of transfers wait for, by the trace of NCCL's example profiler plug-in


HASH = 0x1F4C3D2A9B8E7F60
USUAL = {"SendGpuWait": 300.0, "SendPeerWait": 50.0, "SendWait": 200.0, "RecvWait": 900.0, "RecvGpuWait": 60.0}


def event(name: str, category: str, phase: str, ident: int, ts: float, *, args: str = "") -> str:
    more = f', "args": {{{args}}}' if args else ""
    head = (
        f'{{"name": "{name}", "cat": "{category}", "ph": "{phase}", "id": {ident}, "pid": 4711, "tid": 1, "ts": {ts:f}'
    )
    return f"{head}{more}}},"


def lines(rank: int, waits: Mapping[str, float], steps: int = 4, peer: int = 1) -> Iterator[str]:
    yield "["
    args = f'"SeqNum": 0, "CommHash": {HASH}, "Rank": {rank}, "Count": 262144, "Datatype": "ncclFloat32"'
    yield event("AllReduce", "COLL", "b", 0, 0.0, args=args)
    yield event("ProgressSend", "PROXY", "b", 0, 1.0, args=f'"Channel": 0, "Peer": {peer}, "Steps": {steps}')
    now = 1.0
    for step in range(steps):
        for name, us in waits.items():
            yield event(name, "NET", "b", step, now, args=f'"Step": {step}')
            now += us
            yield event(name, "NET", "e", step, now)
    yield event("ProgressSend", "PROXY", "e", 0, now)
    yield event("AllReduce", "COLL", "e", 0, now)


def trace(rank: int, waits: Mapping[str, float], **more: int) -> str:
    return "\n".join(lines(rank, waits, **more)) + "\n"


def found(odd: Mapping[str, float], ranks: int = 4, odd_rank: int = 2) -> list[Finding]:
    waits = [
        step_waits
        for rank in range(ranks)
        for step_waits in read_trace(
            trace(rank, odd if rank == odd_rank else USUAL, peer=(rank + 1) % ranks), f"t{rank}"
        )
    ]
    return list(OddStepWaits().judge(with_step_waits((), waits)[0]).findings)


def test_the_waits_of_a_rank_are_summed_by_state_and_peer() -> None:
    (waits,) = read_trace(trace(3, USUAL, peer=5), "trace-n0-1.txt")
    assert (waits.comm, waits.rank) == (HASH, 3)
    assert waits.us["RecvWait"] == pytest.approx(3600)
    assert waits.peers == pytest.approx({5: 200})
    assert set(waits.us) <= set(STATES)


@examples("state", "words")
def test_the_state_in_which_one_rank_alone_waits_names_the_place(state: str, words: str) -> None:
    finding = expect(found({**USUAL, state: 3000.0}), ranks=(2,))
    assert finding.message == words


@pytest.mark.parametrize("state", ["RecvWait", "SendGpuWait"])
def test_waiting_for_another_rank_blames_nobody(state: str) -> None:
    assert found({**USUAL, state: 9000.0}) == []


def test_a_state_that_is_common_and_traces_that_are_alike_are_silent() -> None:
    busy = {**USUAL, "SendWait": 3000.0}
    waits = [step_waits for rank in range(4) for step_waits in read_trace(trace(rank, busy), "t")]
    assert OddStepWaits().judge(with_step_waits((), waits)[0]).status is Status.CLEAN
    assert found(USUAL) == []


def test_two_traces_and_short_ones_are_unknown() -> None:
    short = [step_waits for rank in range(4) for step_waits in read_trace(trace(rank, {"SendWait": 9.0}), "t")]
    assert OddStepWaits().judge(with_step_waits((), short)[0]).status is Status.UNKNOWN
    two = [step_waits for rank in range(2) for step_waits in read_trace(trace(rank, USUAL), "t")]
    assert OddStepWaits().judge(with_step_waits((), two)[0]).status is Status.UNKNOWN


def test_files_of_a_job_are_known_by_their_steps_and_may_lack_their_end(tmp_path: Path) -> None:
    for rank in range(4):
        text = trace(rank, {**USUAL, "RecvGpuWait": 5000.0} if rank == 1 else USUAL)
        (tmp_path / f"trace-node{rank}-99.txt").write_text(text[:-40] if rank == 3 else text)
    result = logs([str(tmp_path)])
    assert [(finding.id, finding.where.ranks) for finding in result.findings] == [("JOB014", (1,))]
    assert Kind.TRACE not in kind_of_file(b'[{"name": "SendWait", "cat": "cpu", "ph": "b"}]').kinds
