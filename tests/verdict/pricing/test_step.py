"""What a cause takes of a training step, and a group that spans nodes though it fits into one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.checks import jobs
from tests.tables import examples
from tests.verdict.pricing.machines import SIZE, bus_of, case, cause, finding, node, tree
from tests.verdict.test_price import LINKS, NIC
from topodiag.app.judge.placing import place_jobs
from topodiag.model.connections import no_connections
from topodiag.model.events import Progress
from topodiag.model.finding import Cost, Where
from topodiag.model.job import Communicator, Event, Job, Rank
from topodiag.model.layout import JobSettings, Layout, Role
from topodiag.model.provenance import Origin
from topodiag.model.result import Case
from topodiag.model.verdict import Price
from topodiag.nccl.predict import predict_tree
from topodiag.nccl.topo.changes import Change, down, remove
from topodiag.placement.job_groups import JobStep
from topodiag.verdict.price import ended, priced

TRAINED: dict[str, Any] = {
    "params": 8e9, "layers": 32, "hidden": 4096, "seq": 4096, "micro_batch": 1, "global_batch": None,
    "precision": "bf16", "experts": 0, "top_k": 2, "capacity": 1.0, "active_params": None, "kv_share": 1.0, "chunks": 1,
    "zero": 1, "shard": None, "sequence_parallel": False, "ulysses": False, "recompute": "selective",
    "overlap": {"dp": 0.0}, "efficiency": 0.5, "peak_tflops": None,
}  # fmt: skip


def job_case(*changes: Change, sizes: Layout | None = None) -> Case:
    """A job on two nodes of which n2 has these changes; nobody measured it."""
    document = jobs.job(2)
    ranks = tuple(replace(rank, host=f"n{rank.rank // 8 + 1}", bus_id=bus_of(rank.rank % 8)) for rank in document.ranks)
    hosts = ("n1", "n2")
    world = replace(document.communicators[0], hosts=hosts, systems={}, graphs={})
    job = replace(document, ranks=ranks, hosts=hosts, communicators=(world,), processes=())
    return replace(case(*changes), runs=(), jobs=(job,), sizes=sizes)


def step_of(evidence: Case, trained: dict[str, Any] | None = None) -> JobStep:
    (step,) = place_jobs(evidence, trained).steps
    return step


def price_of(what: Any, evidence: Case, trained: dict[str, Any] | None = None) -> Price:
    (price,) = priced([what], evidence, place_jobs(evidence, trained).steps)
    return price


def test_a_missing_nic_takes_more_of_a_step_the_more_of_it_leaves_the_node() -> None:
    inside = price_of(cause(NIC), job_case(remove("mlx5_4"), sizes=Layout(tp=8)))
    across = price_of(cause(NIC), job_case(remove("mlx5_4"), sizes=Layout(tp=16)))
    assert 0 <= inside.step_share < across.step_share < inside.job_share


def test_links_down_slow_the_groups_inside_the_node_by_nccls_figures_of_it() -> None:
    evidence = job_case(down("nvlink:GPU3:6"), sizes=Layout(tp=8))
    (model, *_) = step_of(evidence).models
    model = replace(model, demands=tuple(demand for demand in model.demands if demand.demand.dimension == "tp"))
    (price,) = priced([cause(LINKS)], evidence, [replace(step_of(evidence), models=(model,))])
    whole, less = (
        predict_tree(element, nodes=1, version="2.23.4", sizes=(SIZE,)).all_reduce
        for element in (tree(), tree(down("nvlink:GPU3:6")))
    )
    share = less.busbw_gbs / whole.busbw_gbs
    tensor = sum(demand.step_us for demand in model.demands)
    assert price.step_share == pytest.approx(1 - model.step_us / (model.step_us + tensor * (1 / share - 1)), rel=0.02)


def test_the_range_is_of_models_that_nobody_named_and_says_so() -> None:
    price = price_of(cause(NIC), job_case(remove("mlx5_4"), sizes=Layout(tp=16)))
    assert price.step_range[0] < price.step_range[1]
    assert price.step_range[0] <= price.step_share <= price.step_range[1]
    assert "assumed" in price.step_said
    assert "as declared" in price.step_said


def test_a_cause_that_costs_the_job_nothing_costs_no_step() -> None:
    evidence = job_case(sizes=Layout(tp=8))
    price = price_of(cause(finding("ENV001", "n1", settings=(("NCCL_IB_HCA", None),))), evidence)
    assert price.step_share == 0.0


def test_the_step_of_other_gpus_prices_nothing() -> None:
    evidence = job_case(remove("mlx5_4"), sizes=Layout(tp=8))
    (price,) = priced([cause(NIC)], evidence, [replace(step_of(evidence), sm=80)])
    assert price.step_share is None


def test_a_job_that_ended_has_no_share_of_a_step() -> None:
    evidence = job_case(remove("mlx5_4"), sizes=Layout(tp=8))
    price = price_of(cause(NIC, finding("JOB005")), evidence)
    assert (price.share, price.step_share) == (1.0, None)


def test_what_a_check_of_layouts_says_of_a_step_is_the_share_of_its_cause() -> None:
    (price,) = priced([cause(finding("PLC003", cost=Cost(None, 0.1, "1 of the 10 ms of a step", 0.1)))], Case())
    assert price.step_share == 0.1
    assert "place audit" in price.step_said


def logged(evidence: Case, **others: Any) -> Case:
    """The case whose job printed its arguments."""
    training = JobSettings("train.log", {"tp": 8}, 16, {"params": 8e9, "layers": 32, "hidden": 4096, "seq": 4096})
    return replace(evidence, jobs=(replace(evidence.jobs[0], training=replace(training, **others)),))


@examples("declared", "given", "log", "said", "ranged")
def test_what_gives_layout_and_model_of_a_step(
    declared: int | None, given: bool | None, log: dict[str, Any] | None, said: list[str] | None, ranged: bool | None
) -> None:
    """A tensor size that is declared, whether a model is given, the arguments that the job's log prints but for these
    others; words of what is said of the step, nothing where none is priced, and whether its share is a range."""
    evidence = job_case(remove("mlx5_4"), sizes=Layout(tp=declared) if declared else None)
    evidence = evidence if log is None else logged(evidence, **log)
    assert bool(place_jobs(evidence).steps) is bool(said)
    price = price_of(cause(NIC), evidence, TRAINED if given else None)
    assert (price.step_share is None) is (not said)
    assert [words for words in said or () if words not in price.step_said] == []
    assert ranged is not False or price.step_range == (price.step_share, price.step_share)


PLC001 = replace(finding("PLC001"), where=Where(("n1", "n2")), cost=Cost(178.8, 0.48, "192 of 370.8 GB/s"))


def job(hosts: list[str], *groups: tuple[Role, list[int]]) -> Job:
    """Rank r on hosts[r], on the next free GPU there, and these groups."""
    free = {"n1": 0, "n2": 0}
    ranks = []
    for number, host in enumerate(hosts):
        ranks.append(Rank(number, host, number, free[host], free[host], bus_of(free[host])))
        free[host] += 1
    world = Communicator(0, len(hosts), np.arange(len(hosts)), role=Role.WORLD)
    below = [Communicator(1 + at, len(m), np.array(m), role=role) for at, (role, m) in enumerate(groups)]
    return Job(
        "job", len(hosts), tuple(ranks), (), (world, *below), no_connections(), ("n1", "n2"), ("2.29.7+cuda13.0",)
    )


def case_of(run: Job) -> Case:
    return Case(nodes=(node("n1"), node("n2")), jobs=(run,))


DEALT = ["n1", "n2"] * 8
PACKED = ["n1"] * 8 + ["n2"] * 8


def test_a_spread_group_reaches_what_the_network_carries() -> None:
    (price,) = priced([cause(PLC001)], case_of(job(DEALT, (Role.TP, list(range(8))))))
    assert price.predicted.value < price.all_gone.value
    assert price.job_share == pytest.approx(1 - price.predicted.value / price.all_gone.value)
    assert (price.gbs_lost, price.share) == (178.8, 0.48), "the numbers of the finding, as every view prints them"


def test_the_price_is_that_of_what_follows_from_the_order_of_ranks() -> None:
    (price,) = priced([cause(finding("PLC006"), PLC001)], case_of(job(DEALT, (Role.TP, list(range(8))))))
    assert price.predicted is not None


def test_experts_are_priced_by_alltoall() -> None:
    (price,) = priced([cause(replace(PLC001, id="PLC002"))], case_of(job(DEALT, (Role.EP, list(range(8))))))
    assert "alltoall" in price.predicted.what
    assert price.job_share > 0


@pytest.mark.parametrize(
    "made",
    [
        job(PACKED, (Role.TP, list(range(8)))),
        job(DEALT, (Role.TP, list(range(16)))),
        job(DEALT, (Role.DP, list(range(8)))),
        job(DEALT),
    ],
    ids=["fits", "larger than a node", "another dimension", "no group"],
)
def test_no_number_where_the_place_takes_nothing(made: Job) -> None:
    (price,) = priced([cause(PLC001)], case_of(made))
    assert price.predicted is None
    assert price.gbs_lost == 178.8


# --- what a cause that ended a job costs, and since when, as far as the log shows it --------------------------

ENDED_S = 1_766_280_682.0
"""When the first line about the end stands: 2025-12-21 01:31:22."""
STOPPED = "100 %: the job stopped"


@examples("world", "steps_after_s", "said")
def test_steps_are_missed_only_where_some_were_seen_and_none_came_later(
    *, world: bool, steps_after_s: float | None, said: str
) -> None:
    end = Event("ended", "out of memory", "", ts=ENDED_S, level="APP")
    job = jobs.job(1, events=(end,))
    if not world:
        job = replace(job, communicators=(), ranks=(), processes=())
    if steps_after_s is not None:
        lines = Origin("job.log", 1), Origin("job.log", 9)
        job = replace(job, progress=(Progress("progress.step", 9, *lines, last_s=ENDED_S + steps_after_s),))
    price = ended(cause(finding("JOB009")), Case(jobs=(job,)))
    assert (price.share, price.text) == (1.0, said)


def test_no_step_is_missed_of_a_server() -> None:
    served = Progress("progress.request", 9, Origin("job.log", 1), Origin("job.log", 9))
    end = Event("ended", "out of memory", "", ts=ENDED_S, level="APP")
    job = replace(jobs.job(1, events=(end,)), communicators=(), ranks=(), processes=(), progress=(served,))
    said = ended(cause(finding("JOB009")), Case(jobs=(job,))).text
    assert said == "100 %: the job stopped at 2025-12-21 01:31:22 (the log's own clock)"


@examples("dated_s", "said")
def test_no_step_ran_since_a_watchdog_began_to_wait(dated_s: float | None, said: str) -> None:
    wait = Event("watchdog", "caught", "", ts=dated_s, level="APP", details={"ran_ms": "1800000"})
    end = Event("ended", "Sending process 1 closing signal SIGTERM", "", ts=ENDED_S + 1801, level="APP")
    price = ended(cause(finding("JOB006")), Case(jobs=(jobs.job(1, events=(wait, end)),)))
    assert price.text == said


@pytest.mark.parametrize(("inferred", "said"), [(False, "100 %: no step ran"), (True, STOPPED)])
def test_no_step_ran_where_init_is_seen_and_not_its_end(*, inferred: bool, said: str) -> None:
    job = jobs.job(1, events=(Event("ended", "out of memory", "", ts=ENDED_S, level="APP"),))
    started = replace(job.communicators[0], completed=np.zeros(8, bool), inferred=inferred)
    assert ended(cause(finding("JOB009")), Case(jobs=(replace(job, communicators=(started,)),))).text == said
