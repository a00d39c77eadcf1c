"""A run of which one host differs: NCCL takes what all hosts have, which is less than what equal hosts agree on."""

from dataclasses import replace

import pytest

from tests.expect.measured_runs import run
from topodiag.expect.expect import expected
from topodiag.expect.rates import reached, reached_on
from topodiag.expect.setup import Setup
from topodiag.expect.unlike import MOST_HOSTS, one_of
from topodiag.nccl.topo.changes import apply, nets_of, rate


def setup(nodes: int = 2) -> Setup:
    estimate = expected(run("all_reduce", 8 * nodes, 180.0), system="DGX A100", nodes=nodes)
    assert estimate.setup is not None
    return estimate.setup


def with_slow_port(built: Setup) -> Setup:
    changed = apply(built.tree, (rate(f"{nets_of(built.tree)[0]}=100"),), built.env)
    return replace(built, tree=changed.tree, env=dict(changed.env))


def test_a_slow_port_of_one_host_is_set_among_hosts_as_built() -> None:
    built = setup()
    hosts = one_of(built, with_slow_port(built)).unlike
    assert len(hosts.kinds) == 2
    assert [member.host for member in hosts.members] == [0] * 8 + [1] * 8


def test_it_leaves_no_more_than_the_same_port_on_all_hosts() -> None:
    estimate = expected(run("all_reduce", 16, 180.0), system="DGX A100", nodes=2)
    assert estimate.setup is not None
    assert estimate.rates is not None
    slow = with_slow_port(estimate.setup)
    value = reached_on(estimate.rates, one_of(estimate.setup, slow), "all_reduce")
    assert 0 < value <= reached_on(estimate.rates, slow, "all_reduce")
    assert reached(estimate.rates, estimate.rates) == 1.0


@pytest.mark.parametrize("nodes", [1, MOST_HOSTS * 2])
def test_one_host_and_hundreds_are_taken_as_they_are(nodes: int) -> None:
    built = setup(nodes)
    slow = with_slow_port(built)
    assert one_of(built, slow) is slow
