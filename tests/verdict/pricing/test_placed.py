"""A group that spans nodes though it fits into one: NCCL's figures of both places."""

from dataclasses import replace

import numpy as np
import pytest

from tests.verdict.pricing.machines import bus_of, cause, finding, node
from topodiag.model.connections import no_connections
from topodiag.model.dimensions import Role
from topodiag.model.finding import Cost, Where
from topodiag.model.job import Communicator, Job, Rank
from topodiag.model.result import Case
from topodiag.verdict.price import priced

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
