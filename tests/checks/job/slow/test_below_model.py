"""JOB015: the Inspector's bandwidth beside what NCCL's model expects of the job's machines, and silence."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from benchmarks import inspector_machine
from tests.checks import jobs
from tests.checks.wanted import expect
from tests.tables import examples
from topodiag.app.case.build import _related as related
from topodiag.app.scan import scan
from topodiag.checks.job.slow.below_model import BelowModel
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
