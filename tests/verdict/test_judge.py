"""The verdict: its state, its causes and what is beside them, what is ruled out, and what would settle what is open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checks import jobs, nodes
from tests.tables import examples
from tests.verdict.judged import LOG, measured, running, seen, verdict
from tests.verdict.test_order import I, W
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
from topodiag.model.verdict import CauseStatus, State
from topodiag.verdict.judge import judge

# -- the state --


def test_nothing_judged_is_unknown_and_not_healthy() -> None:
    assert verdict().state is State.UNKNOWN
    assert verdict(case=running()).state is State.UNKNOWN


def test_healthy_is_said_where_something_was_judged_and_nothing_speaks_against_it() -> None:
    assert verdict(case=running(), clean="NET001").state is State.HEALTHY
    assert verdict(clean="NVL001").state is State.HEALTHY


@examples("clean", "state")
def test_gpus_and_drivers_alone_do_not_show_how_they_communicate(clean: str, state: State) -> None:
    judgement = verdict(clean=clean, case=Case(nodes=(replace(nodes.hgx_h100(), told=frozenset({Topic.GPUS})),)))
    assert judgement.state is state
    assert ("nothing shows that a link or a network port is well" in judgement.headline) == (
        clean == "GPU001 GPU002 HST004 JOB004"
    )


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


def test_tcp_between_machines_whose_adapters_nobody_saw_is_open_and_accuses_nobody() -> None:
    note = seen("NET001", severity=Severity.INFO, confidence=Confidence.LOW, message="sockets", line=LOG)
    judgement = verdict(note, case=running(), clean="NET003")
    assert (judgement.state, judgement.headline) == (State.UNKNOWN, "n0: sockets")
    assert [cause.status for cause in judgement.causes] == [CauseStatus.HYPOTHESIS]
    assert judgement.next_evidence[0].command.startswith("ibv_devinfo; ")
    answer = verdict(replace(note, confidence=Confidence.HIGH), case=running(), clean="NET003")
    assert (answer.state, answer.causes) == (State.HEALTHY, ())


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


def test_a_fault_with_a_price_on_a_node_of_the_job_makes_it_slow() -> None:
    lost = seen("NVL001", cost=Cost(123.6, 0.33))
    assert verdict(lost, case=running()).state is State.SLOW


def test_a_fault_that_no_job_met_is_a_risk() -> None:
    assert verdict(seen("NVL001", cost=Cost(123.6, 0.33))).state is State.AT_RISK
    elsewhere = seen("HST001", W, nodes=("n9",))
    judgement = verdict(elsewhere, case=running(), clean="NET001")
    assert judgement.state is State.AT_RISK
    assert [job.state for job in judgement.jobs] == [State.HEALTHY]


def test_the_case_is_as_its_worst_job_and_each_job_has_its_own_state() -> None:
    first, second = jobs.job(1, name="one"), jobs.job(2, name="two")
    case = Case(jobs=(first, second))
    judgement = verdict(seen("NIC005", nodes=("n1",), jobs=("two",), cost=Cost(50.0, 0.125)), case=case, clean="NET001")
    assert [(job.name, job.state, job.causes) for job in judgement.jobs] == [
        ("one", State.HEALTHY, ()),
        ("two", State.SLOW, (0,)),
    ]
    assert judgement.state is State.SLOW


def test_a_slow_benchmark_makes_no_healthy_job_slow() -> None:
    low = seen("BEN001", W, nodes=("n0", "n1"), line=Origin("all_reduce.txt", 1))
    judgement = verdict(low, case=running(), clean="NET001", benchmarks=(measured("low", made=200.0),))
    assert [(job.name, job.state) for job in judgement.jobs] == [
        ("job", State.HEALTHY),
        ("all_reduce (nccl-tests)", State.SLOW),
    ]


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


def test_one_fault_that_two_sources_show_is_one_cause() -> None:
    of_bundle = replace(seen("NIC005", cost=Cost(50.0, 0.125)), where=Where(("n0",), gpus=("GPU7",)))
    of_log = replace(seen("NIC005", W, line=LOG), where=Where(("n0",), nics=("mlx5_11",), ranks=(7,)))
    [cause] = verdict(of_bundle, of_log, case=running()).causes
    assert [(consequence.finding.id, consequence.why) for consequence in cause.consequences] == [
        ("NIC005", "the same fault, as another source shows it")
    ]


def test_the_same_check_on_another_device_is_another_cause() -> None:
    one = replace(seen("NIC001", message="a"), where=Where(("n0",), nics=("mlx5_1",)))
    other = replace(seen("NIC001", message="b"), where=Where(("n0",), nics=("mlx5_2",)))
    assert len(verdict(one, other, case=running()).causes) == 2


def test_a_rank_that_is_stuck_in_one_group_explains_its_absence_in_another() -> None:
    finding = seen("JOB006", message="rank 5 called all_gather")
    findings = [seen("JOB006", W, message=f"rank {rank} did not enter", line=LOG) for rank in range(4)]
    [cause] = verdict(finding, *findings, case=running()).causes
    assert len(cause.consequences) == 4


def test_a_warning_that_shows_no_effect_is_beside_a_cause_that_does() -> None:
    judgement = verdict(seen("NVL001"), seen("BEN001", W), seen("HST001", W, nodes=("n1",)), case=running())
    assert [cause.finding.id for cause in judgement.causes] == ["NVL001"]
    assert [finding.id for finding in judgement.unrelated] == ["HST001"]


@pytest.mark.parametrize(("count", "names"), [(2, "n[0-1]: "), (64, "64 nodes: ")])
def test_the_headline_names_few_nodes_and_counts_many(count: int, names: str) -> None:
    odd = [f"n{number * number}" for number in range(count)]
    fault = seen("BEN003", W, nodes=tuple(odd), message="a size is slow")
    assert f"{names}a size is slow" in verdict(fault).headline


LOW = seen("BEN001", W, nodes=("n0", "n1"), line=Origin("all_reduce.txt", 1))


def test_a_fault_that_takes_its_part_of_a_loss_is_a_second_cause_and_likely_at_most() -> None:
    port = seen("NIC002", W, nodes=("n1",), message="mlx5_7 runs at 100 of 200 Gb/s")
    iommu = seen("PCI004", W, nodes=("n0",), message="the IOMMU translates DMA")
    judgement = verdict(port, LOW, iommu, case=running())
    assert [cause.finding.id for cause in judgement.causes] == ["NIC002", "PCI004"]
    assert judgement.causes[1].status is CauseStatus.LIKELY
    assert judgement.causes[1].mechanism.endswith("a part of a loss that a dearer cause explains")


def test_what_all_nodes_of_a_run_have_alike_takes_no_part_of_its_loss() -> None:
    far = seen("GDR002", W, nodes=("n0", "n1"), message="GPU2 has no NIC near it")
    judgement = verdict(seen("NIC002", W, nodes=("n1",)), LOW, far, case=running())
    assert [finding.id for finding in judgement.unrelated] == ["GDR002"]


def test_without_a_loss_or_as_a_note_such_a_fault_is_none() -> None:
    iommu = seen("PCI004", W, nodes=("n0",), message="the IOMMU translates DMA")
    ended = verdict(seen("NVL005"), seen("JOB005"), iommu, case=running())
    assert [finding.id for finding in ended.unrelated] == ["PCI004"]
    noted = verdict(seen("NIC002", W), LOW, replace(iommu, severity=I), case=running())
    assert [finding.id for finding in noted.unrelated] == ["PCI004"]


def test_a_smaller_mtu_takes_a_part_and_never_explains_a_loss_alone() -> None:
    small = seen("NIC004", W, nodes=("n0",), message="compute NICs differ in MTU: 1024 on mlx5_5 instead of 4096")
    firmware = replace(small, message="compute NICs differ in firmware")
    assert [cause.finding.id for cause in verdict(seen("NVL001"), LOW, small, case=running()).causes] == [
        "NVL001",
        "NIC004",
    ]
    assert all(not cause.consequences for cause in verdict(LOW, small, case=running()).causes)
    assert [finding.id for finding in verdict(seen("NVL001"), LOW, firmware, case=running()).unrelated] == ["NIC004"]


def test_notes_are_no_causes() -> None:
    judgement = verdict(seen("NIC003", I), case=running(), clean="NET001")
    assert not judgement.causes
    assert [finding.id for finding in judgement.unrelated] == ["NIC003"]


def test_what_ended_the_job_stands_before_what_costs_more() -> None:
    case = Case(jobs=(jobs.job(2, events=[jobs.event("memory", "ibv_reg_mr")]),))
    judgement = verdict(seen("NVL001", cost=Cost(300.0, 0.9)), seen("HST001"), seen("JOB005", line=LOG), case=case)
    assert [cause.finding.id for cause in judgement.causes][:2] == ["HST001", "NVL001"]


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


def test_an_accused_part_is_never_ruled_out() -> None:
    judgement = verdict(seen("NVL002", W), case=running(), clean="NVL001")
    assert "NVLink" not in {ruled_out.what for ruled_out in judgement.ruled_out}


def test_what_was_seen_on_some_of_the_nodes_is_not_ruled_out() -> None:
    assert not verdict(case=running(), clean="NVL001", on=("n0",)).ruled_out
    [all_seen] = verdict(case=running(), clean="NVL001", on=("n0", "n1")).ruled_out
    assert all_seen.by == "all NVLinks of every GPU are active on n[0-1] (NVL001)"


def test_what_is_ruled_out_names_what_was_compared() -> None:
    [part] = verdict(case=running(), clean="NVL001 NVL002", on=("n0", "n1")).ruled_out
    assert part.by == "all NVLinks of every GPU are active, at their rate on n[0-1] (NVL001, NVL002)"
    [part] = verdict(case=running(), clean="ENV001", on=("n0", "n1")).ruled_out
    assert part.by == "none that is printed costs bandwidth on n[0-1] (ENV001)"


@pytest.mark.parametrize("check", ["NIC005", "NET003 NIC005"])
def test_missing_nics_are_not_ruled_out_without_captures_that_list_them(check: str) -> None:
    assert not verdict(case=running(), clean=check, on=("n0", "n1")).ruled_out


def test_sockets_are_not_ruled_out_where_no_line_names_the_network() -> None:
    job = jobs.job(2, files=("job.log",))
    silent = tuple(replace(process, network="", messages=()) for process in job.processes)
    assert not verdict(case=Case(jobs=(replace(job, processes=silent),)), clean="NET001").ruled_out


@pytest.mark.parametrize("check", ["NVL003", "NVL004"])
def test_a_warning_about_a_part_speaks_against_ruling_it_out(check: str) -> None:
    judgement = verdict(seen(check, W), case=running(), clean="NVL001", on=("n0", "n1"))
    assert "NVLink" not in {part.what for part in judgement.ruled_out}


def test_the_next_evidence_is_a_capture_of_the_odd_node_whose_siblings_are_known() -> None:
    case = replace(running(), nodes=(Node("n0"),))
    finding = seen("NIC005", W, nodes=("n1",), line=LOG, cost=Cost(50.0, 0.125))
    [step] = verdict(finding, case=case).next_evidence
    assert (step.where, step.command) == ("n1", "topodiag scan --save n1.tar.gz")
    assert step.why.endswith("its peers n0 have captures")


def test_a_rank_that_is_behind_is_asked_for_its_stack() -> None:
    finding = replace(seen("JOB006", line=LOG), where=Where(("n0",), ranks=(5,)))
    [step] = verdict(finding, case=running()).next_evidence
    assert (step.where, step.command) == ("n0", "py-spy dump --pid 1005")


def test_sockets_are_settled_inside_the_container() -> None:
    judgement = verdict(seen("NET001", line=LOG, cost=Cost(1.0, 0.9)), case=running(via="NET/Socket/0"))
    assert judgement.next_evidence[0].command == "ibv_devinfo; ls /dev/infiniband; ulimit -l"


def test_a_plugin_that_fails_in_part_asks_for_no_devices_where_every_rank_uses_rdma() -> None:
    failed = seen("NET005", Severity.WARNING, line=LOG, confidence=Confidence.MEDIUM)
    commands = [
        [step.command for step in verdict(failed, case=running(), clean=clean).next_evidence]
        for clean in ("", "NET001")
    ]
    assert [any(step.startswith("ibv_devinfo") for step in steps) for steps in commands] == [True, False]


def test_an_established_cause_asks_for_no_more_evidence() -> None:
    assert not verdict(seen("NVL001"), case=running()).next_evidence


# -- words --


def test_the_headline_names_host_object_and_effect() -> None:
    links = seen("NVL001", message="GPU3 has 12 of 18 NVLinks active")
    low = seen("BEN001", W, nodes=("n0", "n1"))
    judgement = verdict(links, low, case=running(), benchmarks=(measured("low", made=282.0),))
    assert judgement.headline == "n0: GPU3 has 12 of 18 NVLinks active; all_reduce reaches 282 of 470 GB/s (-40 %)"


def test_the_headline_of_a_hypothesis_says_that_it_is_one() -> None:
    judgement = verdict(seen("PCI001", confidence=Confidence.LOW, cost=Cost(1.0, 0.3)), case=running())
    assert judgement.headline.startswith("possible cause, not proven: ")
    assert judgement.confidence is Confidence.LOW


def test_a_time_limit_says_nothing_of_topology() -> None:
    assert verdict(seen("JOB009", W, message="the job on n7 reached its time limit"), case=running()).first == ()


def test_a_program_that_diverged_is_no_question_of_topology() -> None:
    judgement = verdict(seen("JOB006"), case=running())
    assert judgement.first == (
        "Topology does not matter here: the program or one of its processes is the cause, not a link.",
    )


def test_where_other_causes_remain_possible_no_link_is_cleared() -> None:
    judgement = verdict(seen("JOB009", confidence=Confidence.MEDIUM), case=running())
    assert (judgement.causes[0].status, judgement.first) == (CauseStatus.LIKELY, ())


def test_a_normal_measurement_says_that_an_expectation_above_it_is_wrong() -> None:
    judgement = verdict(case=running(), clean="NET001", benchmarks=(measured(),))
    assert judgement.state is State.HEALTHY
    assert judgement.first == ("The measured bandwidth is what this machine can do: an expectation above it is wrong.",)


def test_a_loss_that_no_cause_explains_is_open() -> None:
    low = seen("BEN001", W, nodes=("n0", "n1"), line=Origin("all_reduce.txt", 1))
    judgement = verdict(low, case=running(), benchmarks=(measured("low", made=235.0),))
    assert "all_reduce reaches 235 of 470 GB/s (-50 %)" in judgement.not_explained


def test_it_says_how_much_of_each_kind_of_evidence_was_there() -> None:
    case = replace(running(), nodes=(Node("n0"),))
    assert verdict(case=case).joined == ("log 16/16 ranks", "captures 1/2 nodes", "nccl-tests none")
    nameless = Job("job", 0, (), (), (), no_connections(), ())
    assert verdict(case=Case(jobs=(nameless,))).joined[0] == "log of 1 job, no rank named"


def test_a_log_without_a_host_and_the_one_node_that_shows_the_fault_are_one_cause_with_its_place() -> None:
    nameless = seen("NVL005", nodes=(), line=LOG, message="a node: the fabric is not up")
    located = seen("NVL005", nodes=("n1",), message="the Fabric Manager has failed")
    for order in ((nameless, located), (located, nameless)):
        [cause] = verdict(*order, case=running()).causes
        assert cause.finding.where.nodes == ("n1",)
        assert [consequence.finding.message for consequence in cause.consequences] == ["a node: the fabric is not up"]


ECC = "a node: a GPU has an uncorrectable memory error"


def test_a_cause_without_a_host_is_on_the_one_node_that_shows_what_follows_from_it() -> None:
    nameless = seen("GPU002", nodes=(), line=LOG, message=ECC)
    asks = seen("GPU005", W, nodes=("n1",), message="GPU6 asks for a reset")
    judgement = verdict(nameless, asks, case=running())
    assert judgement.causes[0].finding.where.nodes == ("n1",)
    assert judgement.headline == "n1: a GPU has an uncorrectable memory error"


def test_a_cause_without_a_host_is_not_where_a_peer_says_what_follows() -> None:
    nameless = seen("GPU002", nodes=(), line=LOG, message=ECC)
    case = Case(jobs=(jobs.job(2, events=[jobs.event("cuda", "ECC")]),))
    judgement = verdict(nameless, seen("JOB005", nodes=("n1",)), case=case)
    assert judgement.causes[0].finding.where.nodes == ()
    evidence = Case(jobs=(jobs.job(1, events=[jobs.event("cuda", "ECC")]),))
    assert verdict(nameless, seen("JOB005", nodes=("n0",)), case=evidence).causes[0].finding.where.nodes == ("n0",)


def test_a_cause_without_a_host_whose_traces_are_on_two_nodes_stays_without_one() -> None:
    nameless = seen("GPU002", nodes=(), line=LOG, message=ECC)
    asks = [seen("GPU005", W, nodes=(name,), message=f"{name} asks for a reset") for name in ("n0", "n1")]
    assert verdict(nameless, *asks, case=running()).causes[0].finding.where.nodes == ()


def test_a_log_without_a_host_is_of_none_of_two_nodes_that_show_the_fault() -> None:
    nameless = seen("NVL005", nodes=(), line=LOG)
    located = [seen("NVL005", nodes=(name,), message=name) for name in ("n0", "n1")]
    assert len(verdict(nameless, *located, case=running()).causes) == 3


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


def test_a_port_that_fails_stands_above_its_peers_whose_retries_were_exceeded() -> None:
    peer = seen("NET008", line=LOG, message="n0: transport retries exceeded on mlx5_6 towards 10.0.0.2<43112>")
    owner = seen("NET008", line=LOG, nodes=("n1",), message="n1: port error on mlx5_6")
    case = replace(running(), identity=Identity((Host("n1", ("10.0.0.2",)), Host("n0", ("10.0.0.1",)))))
    [cause] = verdict(peer, owner, case=case).causes
    assert cause.finding.message == "n1: port error on mlx5_6"
    assert [consequence.why for consequence in cause.consequences] == ["the peers of a port that fails get no answer"]


def test_retries_towards_another_host_do_not_follow_from_this_port() -> None:
    peer = seen("NET008", line=LOG, message="n0: transport retries exceeded on mlx5_6 towards 10.0.0.3<43112>")
    owner = seen("NET008", line=LOG, nodes=("n1",), message="n1: port error on mlx5_6")
    case = replace(running(), identity=Identity((Host("n1", ("10.0.0.2",)), Host("n0", ("10.0.0.1",)))))
    assert len(verdict(peer, owner, case=case).causes) == 2


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


def test_settings_are_not_ruled_out_where_any_finding_names_one() -> None:
    clean = "ENV001 ENV002 JOB003"
    assert "settings" in [ruled_out.what for ruled_out in verdict(seen("NET003", W), clean=clean).ruled_out]
    named = replace(seen("NET003", W), settings=(("NCCL_IB_HCA", "^m4"),))
    assert "settings" not in [ruled_out.what for ruled_out in verdict(named, clean=clean).ruled_out]
