"""A group that spans nodes though it fits into one: NCCL's figures of both places."""

from dataclasses import replace

import numpy as np
import pytest

from tests.checks import jobs
from tests.tables import examples
from tests.verdict.pricing.machines import bus_of, cause, finding, node
from topodiag.model.connections import no_connections
from topodiag.model.events import Progress
from topodiag.model.finding import Cost, Where
from topodiag.model.job import Communicator, Event, Job, Rank
from topodiag.model.layout import Role
from topodiag.model.provenance import Origin
from topodiag.model.result import Case
from topodiag.verdict.price import ended, priced

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
