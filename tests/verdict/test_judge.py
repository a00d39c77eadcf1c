"""The verdict: its state, its causes and what is beside them, what is ruled out, and what would settle what is open."""

import json
from dataclasses import replace
from typing import Any

import pytest

import topodiag
from tests.checks import jobs, nodes
from tests.tables import examples
from tests.verdict.judged import LOG, Given, measured, running, seen, shown, verdict, verdict_of
from tests.verdict.test_order import W, found
from topodiag.model.bench import BenchRun, Hypothesis
from topodiag.model.connections import no_connections
from topodiag.model.finding import Confidence, Cost, Coverage, Follows, Outcome, Severity, Status, Where
from topodiag.model.job import FlightRecord, Job
from topodiag.model.node import Node
from topodiag.model.provenance import Origin, Topic
from topodiag.model.result import Case, Host, Identity, Result, Trouble
from topodiag.model.verdict import CauseStatus, State
from topodiag.verdict.judge import judge
from topodiag.words.dialect import Maker

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
    judgement = verdict(clean=clean, case=Case(nodes=(replace(nodes.hgx_h100(), topics=frozenset({Topic.GPUS})),)))
    assert judgement.state is state
    no_link = "nothing shows that a link or a network port is well" in judgement.headline
    assert no_link is (state is State.UNKNOWN)


def test_a_line_of_trouble_that_nothing_explains_is_not_healthy() -> None:
    trouble = (Trouble("NCCL WARN", "something odd", "job", LOG),)
    judgement = verdict(case=running(), clean="NET001", unexplained=trouble)
    assert judgement.state is State.UNKNOWN
    assert judgement.headline.startswith("not judged: 1 line of trouble without an explanation; ")
    assert judgement.not_explained == ("job.log:3: something odd",)


def test_a_line_that_is_known_as_harmless_keeps_nobody_from_being_healthy() -> None:
    trouble = (Trouble("NCCL WARN", "teardown", "job", LOG, harmless="after the end"),)
    assert verdict(case=running(), clean="NET001", unexplained=trouble).state is State.HEALTHY


# -- causes, consequences, and what is beside them --


def test_consequences_are_below_their_cause_with_their_depth() -> None:
    links, search, low = seen("NVL001"), seen("TOP004"), seen("BEN001", W)
    [cause] = verdict(links, search, low, case=running()).causes
    assert cause.finding.id == "NVL001"
    told = {consequence.finding.id: consequence.depth for consequence in cause.consequences}
    assert told == {"TOP004": 1, "BEN001": 1}


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
    [job] = running().jobs
    one = replace(job, world_size=-1, ranks=job.ranks[:1])
    assert verdict(case=Case(jobs=(one,))).joined[0] == "log 1/16 ranks"
    assert verdict(case=Case(jobs=(replace(one, communicators=()),))).joined[0] == "log 1/1 ranks"
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


@pytest.mark.parametrize(
    ("offered", "out"),
    [
        (Hypothesis("a slow link", 200.0, 0.4, check="PCI001"), {"settings"}),
        (Hypothesis("another level (NCCL_NET_GDR_LEVEL=SYS)", 200.0, 0.4, check="GDR002"), {"PCIe links"}),
        (Hypothesis("sockets", 200.0, 0.4, check="NET001", settings=("NCCL_NET",)), {"PCIe links"}),
    ],
)
def test_what_is_offered_as_a_cause_of_a_slow_run_is_not_ruled_out(offered: Hypothesis, out: set[str]) -> None:
    run = replace(measured("low", made=200.0), hypotheses=(offered,))
    clean = "ENV001 ENV002 JOB003 PCI001 PCI002"
    judgement = verdict(seen("BEN001", W), clean=clean, on=("n0", "n1"), benchmarks=(run,))
    assert {part.what for part in judgement.ruled_out} == out


# --- how well each cause is founded, and what speaks against it: never more certain than the evidence ---------

# -- how well a cause is founded --


@examples("case", "findings", "benchmarks", "wanted")
def test_how_well_a_cause_is_founded(
    case: Given, findings: list[Any], benchmarks: list[Any] | None, wanted: Given
) -> None:
    assert shown(verdict_of(case, findings, benchmarks=benchmarks), wanted) == wanted


@pytest.mark.parametrize("check", ["BEN001", "NET006", "NET007", "NET008", "NIC005", "TOP004", "NET001", "JOB001"])
def test_an_effect_that_is_seen_without_its_cause_is_never_established(check: str) -> None:
    [cause] = verdict(seen(check, line=LOG, cost=Cost(1.0, 0.3)), case=running()).causes
    assert cause.status is not CauseStatus.ESTABLISHED


def test_a_note_that_a_job_follows_from_is_never_established() -> None:
    note, below = seen("HST006", Severity.INFO), seen("JOB006", line=LOG)
    above = Follows("HST006", note.message, "it lasted as long")
    [cause] = judge(Result(findings=(note, replace(below, follows=above))), running()).causes
    assert (cause.finding.id, cause.status) == ("HST006", CauseStatus.LIKELY)


def test_a_cause_without_a_line_of_evidence_is_not_established() -> None:
    assert verdict(found("PCI001")).causes[0].status is CauseStatus.LIKELY


# --- whose words a verdict speaks: AMD's for AMD's evidence, and that evidence of two makers is said ----------

AMD = Node("mi-1", makers=frozenset({Maker.AMD}))
OF_TWO = "GPUs of two makers"


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        ((AMD,), False),
        ((replace(nodes.hgx_h100(), host="h-1"),), False),
        ((AMD, replace(nodes.hgx_h100(), host="h-1")), True),
    ],
)
def test_evidence_of_two_makers_is_said_with_their_nodes(hosts: tuple[Node, ...], said: bool) -> None:
    first = " ".join(verdict(case=Case(nodes=hosts)).first)
    assert (OF_TWO in first) is said
    assert ("NVIDIA: h-1" in first and "AMD: mi-1" in first) is said


def test_a_run_on_amd_is_not_measured_against_a_machine_of_nvidia() -> None:
    result = topodiag.diagnose(
        ["fixture:dgx-h100-healthy", "fixture:mi300x-gpu1-gpu5-no-xgmi"]
    )  # each node in its own words
    answer = json.loads(result.to_json())
    (cause,) = answer["verdict"]["causes"]
    assert cause["check"] == "NVL004"
    assert not any("nvidia" in step for step in cause["confirm"])
    assert OF_TWO in " ".join(answer["verdict"]["first"])


LOG_OF_NCCL, CAPTURE = (['eval "$(topodiag env)"'], ["topodiag scan --save NODE.tar.gz"])


@pytest.mark.parametrize(("program", "commands"), [("nccl-tests", LOG_OF_NCCL), ("OSU", CAPTURE)])
def test_a_table_of_mpi_asks_for_the_machines_and_for_no_log_of_nccl(program: str, commands: list[str]) -> None:
    case = Case(runs=(BenchRun("a table", (), program=program),))
    assert [step.command for step in verdict(case=case).next_evidence] == commands
