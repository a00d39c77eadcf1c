"""The verdict: its state, its causes and what is beside them, what is ruled out, and what would settle what is open."""

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import jobs, nodes
from tests.tables import examples
from tests.verdict.judged import LOG, Given, measured, running, seen, shown, verdict, verdict_of
from tests.verdict.test_order import W
from topodiag.model.case import Case
from topodiag.model.connections import no_connections
from topodiag.model.finding import Confidence, Cost, Coverage, Outcome, Severity, Status, Where
from topodiag.model.identity import Host, Identity, Tie
from topodiag.model.job import FlightRecord, Job
from topodiag.model.node import Node
from topodiag.model.progress import Progress
from topodiag.model.provenance import Origin
from topodiag.model.result import Result, Trouble
from topodiag.model.topics import Topic
from topodiag.model.verdict import State
from topodiag.verdict.judge import judge

# -- the state --


@examples("case", "findings", "clean", "on", "benchmarks", "wanted")
def test_a_verdict(
    *,
    case: Given | None,
    findings: list[Any] | None,
    clean: str | None,
    on: list[str] | None,
    benchmarks: list[Any] | None,
    wanted: Given,
) -> None:
    judgement = verdict_of(case, findings, clean, on, benchmarks)
    assert shown(judgement, wanted) == wanted


@examples("clean", "state")
def test_gpus_and_drivers_alone_do_not_show_how_they_communicate(clean: str, state: State) -> None:
    judgement = verdict(clean=clean, case=Case(nodes=(replace(nodes.hgx_h100(), told=frozenset({Topic.GPUS})),)))
    assert judgement.state is state
    no_link = "nothing shows that a link or a network port is well" in judgement.headline
    assert no_link is (state is State.UNKNOWN)


def test_lines_of_init_alone_clear_no_job_and_progress_does() -> None:
    init = replace(running().jobs[0], connections=no_connections())
    judgement = verdict(case=Case(jobs=(init,)), clean="NET001")
    assert judgement.state is State.UNKNOWN
    assert judgement.headline.startswith("not judged: no connection, step or progress in the evidence; ")
    went_on = replace(init, progress=(Progress("progress.step", 9, Origin("job.log", 1), Origin("job.log", 9)),))
    assert verdict(case=Case(jobs=(went_on,)), clean="NET001").state is State.HEALTHY


def test_ranks_that_took_their_communicators_down_are_well_only_where_they_worked() -> None:
    job = running().jobs[0]
    down = tuple(replace(communicator, destroyed=1) for communicator in job.communicators)
    judgement = verdict(case=Case(jobs=(replace(job, communicators=down),)), clean="NET001")
    assert judgement.state is State.UNKNOWN
    assert judgement.headline.startswith("not judged: the ranks took their communicators down, and no step or")
    steps = (Progress("progress.step", 9, Origin("job.log", 1), Origin("job.log", 9)),)
    went_on = replace(job, communicators=down, progress=steps)
    assert verdict(case=Case(jobs=(went_on,)), clean="NET001").state is State.HEALTHY


def test_some_ranks_of_a_job_clear_it_only_where_it_went_on_or_a_run_on_all_of_its_ranks_is_normal() -> None:
    first = replace(running().jobs[0], world_size=32)
    judgement = verdict(case=Case(jobs=(first,)), clean="NET001")
    assert (judgement.state, judgement.headline) == (
        State.UNKNOWN,
        "not judged: the evidence has 16 of 32 ranks; 1 job of 16 ranks",
    )
    unsaid = verdict(case=Case(jobs=(replace(first, size_told=False, world_size=16),)), clean="NET001")
    assert unsaid.headline.startswith("not judged: the evidence does not say how many ranks the job has; ")
    went_on = replace(first, progress=(Progress("progress.step", 9, Origin("job.log", 1), Origin("job.log", 9)),))
    assert verdict(case=Case(jobs=(went_on,)), clean="NET001").state is State.HEALTHY
    whole, part = measured(hosts=("n0", "n1") * 16), measured()
    assert verdict(case=Case(jobs=(first,)), clean="NET001", benchmarks=(whole,)).state is State.HEALTHY
    assert verdict(case=Case(jobs=(first,)), clean="NET001", benchmarks=(part,)).state is State.UNKNOWN


def test_a_job_of_which_no_rank_was_met_is_never_healthy() -> None:
    job = replace(running().jobs[0], ranks=(), communicators=())
    assert verdict(case=Case(jobs=(job,)), clean="NET001").state is State.UNKNOWN


def test_a_line_of_trouble_that_nothing_explains_is_not_healthy() -> None:
    trouble = (Trouble("NCCL WARN", "something odd", "job", LOG),)
    judgement = verdict(case=running(), clean="NET001", unexplained=trouble)
    assert judgement.state is State.UNKNOWN
    assert judgement.not_explained == ("job.log:3: something odd",)


def test_a_line_that_is_known_as_harmless_keeps_nobody_from_being_healthy() -> None:
    trouble = (Trouble("NCCL WARN", "teardown", "job", LOG, harmless="after the end"),)
    assert verdict(case=running(), clean="NET001", unexplained=trouble).state is State.HEALTHY


@examples("check", "kind", "state")
def test_a_job_that_ended_failed_and_one_that_waited_hung(check: str, kind: str, state: State) -> None:
    case = Case(jobs=(jobs.job(2, events=[jobs.event(kind, kind)]),))
    assert verdict(seen(check, line=LOG), case=case).state is state


def test_the_case_is_as_its_worst_job_and_each_job_has_its_own_state() -> None:
    first, second = jobs.job(1, name="one"), jobs.job(2, name="two")
    case = Case(jobs=(first, second))
    judgement = verdict(seen("NIC005", nodes=("n1",), jobs=("two",), cost=Cost(50.0, 0.125)), case=case, clean="NET001")
    assert [(job.name, job.state, job.causes) for job in judgement.jobs] == [
        ("one", State.HEALTHY, ()),
        ("two", State.SLOW, (0,)),
    ]
    assert judgement.state is State.SLOW


def test_of_jobs_with_one_name_a_finding_is_of_the_one_whose_log_shows_it() -> None:
    other = jobs.job(2, files=("other.log",))
    case = Case(jobs=(jobs.job(2, files=("job.log",)), other))
    slow = seen("NET003", W, line=Origin("other.log", 4), jobs=("job",), cost=Cost(350.0, 0.9))
    assert [job.state for job in verdict(slow, case=case, clean="NET001").jobs] == [State.HEALTHY, State.SLOW]


# -- causes, consequences, and what is beside them --


def test_consequences_are_below_their_cause_with_their_depth() -> None:
    links, search, low = seen("NVL001"), seen("TOP004"), seen("BEN001", W)
    [cause] = verdict(links, search, low, case=running()).causes
    assert cause.finding.id == "NVL001"
    assert {consequence.finding.id: consequence.depth for consequence in cause.consequences} == {
        "TOP004": 1,
        "BEN001": 1,
    }


@pytest.mark.parametrize(("count", "names"), [(2, "n[0-1]: "), (64, "64 nodes: ")])
def test_the_headline_names_few_nodes_and_counts_many(count: int, names: str) -> None:
    odd = [f"n{number * number}" for number in range(count)]
    fault = seen("BEN003", W, nodes=tuple(odd), message="a size is slow")
    assert f"{names}a size is slow" in verdict(fault).headline


# -- what it is not, what is open, what comes next --


def test_parts_that_were_judged_clean_are_ruled_out_and_those_that_nobody_judged_are_not() -> None:
    judgement = verdict(case=running(), clean="NVL001 NET001", on=("n0", "n1"))
    assert [ruled_out.what for ruled_out in judgement.ruled_out] == ["NVLink", "sockets instead of RDMA"]
    assert judgement.ruled_out[1].evidence


def test_the_proof_of_what_is_ruled_out_stands_in_the_order_of_the_job() -> None:
    """A set of hosts would put it in another order in each run, and cut it to four other lines."""
    job = jobs.job(8, files=("job.log",))
    own = tuple(
        replace(
            process, messages=(replace(jobs.message("network", "Using network IB"), origin=Origin("job.log", at, "")),)
        )
        for at, process in enumerate(job.processes)
    )
    judgement = verdict(case=Case(jobs=(replace(job, processes=own),)), clean="NET001")
    assert [line.line for line in judgement.ruled_out[0].evidence] == [0, 8, 16, 24]


def test_sockets_are_not_ruled_out_where_no_line_names_the_network() -> None:
    job = jobs.job(2, files=("job.log",))
    silent = tuple(replace(process, network="", messages=()) for process in job.processes)
    assert not verdict(case=Case(jobs=(replace(job, processes=silent),)), clean="NET001").ruled_out


def test_a_plugin_that_fails_in_part_asks_for_no_devices_where_every_rank_uses_rdma() -> None:
    failed = seen("NET005", Severity.WARNING, line=LOG, confidence=Confidence.MEDIUM)
    commands = [
        [step.command for step in verdict(failed, case=running(), clean=clean).next_evidence]
        for clean in ("", "NET001")
    ]
    assert [any(step.startswith("ibv_devinfo") for step in steps) for steps in commands] == [True, False]


# -- words --


def test_it_says_how_much_of_each_kind_of_evidence_was_there() -> None:
    case = replace(running(), nodes=(Node("n0"),))
    assert verdict(case=case).joined == ("log 16/16 ranks", "captures 1/2 nodes", "nccl-tests none")
    nameless = Job("job", 0, (), (), (), no_connections(), ())
    assert verdict(case=Case(jobs=(nameless,))).joined[0] == "log of 1 job, no rank named"


def test_a_rank_behind_that_recorder_and_watchdog_show_is_one_cause_of_one_job() -> None:
    dump = FlightRecord(5, (("0", 7, "all_gather", "started"),))
    recorder = replace(jobs.job(1), name="flight recorder", hosts=(), files=(), flight=(dump,))
    case = Case(jobs=(jobs.job(2, files=("job.log",)), recorder))
    findings = [
        replace(seen("JOB006", line=LOG, message=name), where=Where(ranks=(5,), jobs=(name,)))
        for name in ("job", "flight recorder")
    ]
    judgement = verdict(*findings, case=case)
    assert [len(cause.consequences) for cause in judgement.causes] == [1]
    assert [job.name for job in judgement.jobs] == ["job"]


def test_of_a_job_whose_hosts_are_not_known_any_node_may_be_one() -> None:
    case = Case(jobs=(replace(jobs.job(2), hosts=()),))
    assert verdict(seen("JOB009", nodes=("n5",)), case=case).state is State.FAILED


def test_what_the_container_sees_is_asked_inside_the_pod() -> None:
    pods = replace(jobs.job(2, via="NET/Socket/0"), hosts=("pod-0", "pod-1"))
    case = Case(jobs=(pods,), identity=Identity((Host("n0", ("pod-0",)), Host("n1", ("pod-1",)))))
    judgement = verdict(seen("NET001", line=LOG, cost=Cost(1.0, 0.9)), case=case)
    assert judgement.next_evidence[0].where == "pod-0"


def test_what_confirms_a_cause_is_run_in_the_pods_where_there_are_pods() -> None:
    finding = seen("JOB003", nodes=("n0",))
    assert verdict(finding, case=running()).causes[0].confirm[0].startswith("srun env")
    pods = replace(running(), ties=(Tie(("n0", "trainer-0")),))
    assert verdict(finding, case=pods).causes[0].confirm[0].startswith("kubectl exec POD -- env")


def test_what_could_not_be_judged_of_a_job_is_not_ruled_out_by_its_nodes() -> None:
    case = replace(running(), nodes=(Node("n0"),))
    clean, unsure = Outcome("ENV001", Status.CLEAN, "n0"), Outcome("ENV001", Status.UNKNOWN, "job")
    clean = (clean, replace(clean, node="n1"))
    answer = judge(Result(nodes=case.nodes, jobs=case.jobs, outcomes=clean), case)
    assert [ruled_out.what for ruled_out in answer.ruled_out] == ["settings"]
    assert not judge(Result(nodes=case.nodes, jobs=case.jobs, outcomes=(*clean, unsure)), case).ruled_out


def test_what_some_ranks_of_a_job_show_is_not_ruled_out_for_the_others() -> None:
    case = running()
    [job] = case.jobs
    clean = (Outcome("NET001", Status.CLEAN, job.name),)
    assert judge(Result(jobs=case.jobs, outcomes=clean), case).ruled_out
    for some in (replace(job, world_size=job.world_size + 1), replace(job, size_told=False)):
        assert not judge(Result(jobs=(some,), outcomes=clean), Case(jobs=(some,))).ruled_out
    on_one_node = (replace(clean[0], coverage=Coverage(1, 2, "nodes")),)
    assert not judge(Result(jobs=case.jobs, outcomes=on_one_node), case).ruled_out


@examples("fault", "text", "state")
def test_a_job_whose_own_line_names_a_fault_that_ends_it_failed(fault: str, text: str, state: State) -> None:
    event = replace(jobs.event("device", text), details={"fault": fault})
    case = Case(jobs=(jobs.job(2, events=[event]),))
    assert verdict(seen("HST001", line=LOG), case=case).state is state
