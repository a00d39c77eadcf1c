"""`rdma statistic show`: counters of ports, on one line or on many."""

from __future__ import annotations

import pytest

from tests.evidence.filled import node_of, recognises
from topodiag.model.topics import Topic

ONE_LINE = "$ rdma statistic show\nlink mlx5_0/1 rx_write_requests 12 out_of_sequence 41002 local_ack_timeout_err 7\n"
PRETTY = (
    "link mlx5_0/1 \n    rx_write_requests 12 \n    out_of_sequence 41002\n    local_ack_timeout_err 7\n$ date\nx 1\n"
)


@pytest.mark.parametrize("text", [ONE_LINE, PRETTY])
def test_counters_are_those_of_the_port(text: str) -> None:
    made = node_of(text)
    counters = made.nics[0].ports[0].counters
    assert {name: counter.first.value for name, counter in counters.items()} == {
        "rx_write_requests": 12, "out_of_sequence": 41002, "local_ack_timeout_err": 7,
    }  # fmt: skip
    assert Topic.RDMA_DEVICES not in made.told


def test_the_state_of_links_is_another_command() -> None:
    assert not recognises("rdma-statistic", "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth0\n")
