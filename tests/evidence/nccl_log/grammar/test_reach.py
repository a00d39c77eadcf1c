"""A peer that is not reached is read by the system's error and by whom it was, whichever program says it."""

from __future__ import annotations

import pytest

from topodiag.evidence.nccl_log.grammar.job_lines import said_of
from topodiag.evidence.nccl_log.grammar.reach import peer_of, why_unreached


@pytest.mark.parametrize(
    ("text", "why", "peer"),
    [
        ("socket has timed out after 60s while trying to connect to 198.51.100.7:1234", "silent", "198.51.100.7"),
        (
            "The client socket has failed to connect to any network address of (node-a, 51733): gai error: -2 - Name or"
            " service not known",
            "name",
            "node-a",
        ),
        ("[h][[1,1],1][btl_tcp_endpoint.c:803] connect() to 172.17.0.1 failed: Connection refused (111)",
         "refused", "172.17.0.1"),
        ("dial tcp: lookup worker-3.svc on 10.0.0.10:53: no such host", "name", "worker-3.svc"),
        ("rdma_cm: connect to 10.2.0.9 failed: No route to host", "route", "10.2.0.9"),
        ("ORTE: unable to connect to peer [fd00::12]:4101: Network is unreachable", "route", "fd00::12"),
    ],
)  # fmt: skip
def test_the_error_and_the_peer_are_read_in_any_tool(text: str, why: str, peer: str) -> None:
    assert (why_unreached(text), peer_of(text)) == (why, peer)


@pytest.mark.parametrize(
    "text",
    [
        "[W socket.cpp:697] [c10d] The client socket has failed to connect to [10.0.0.4]:29500 (No route to host).",
        "2024-05-01 WARNING connect to 10.0.0.4:29500: No route to host, attempt 3 of 30",
        "connect to 10.0.0.4:29500 failed: Connection timed out, retrying",
        "requests: HTTPSConnectionPool(host='huggingface.co', port=443): Connection to huggingface.co timed out",
        "wandb: Network error: connection to 10.0.0.9 timed out",
        "Call to recv from 10.0.0.9<41000> failed : Connection timed out",
        "[Rank 3] Watchdog caught collective operation timeout: it timed out after 600000 ms",
        "slurmstepd: error: Failed to send MESSAGE_TASK_EXIT: Connection refused",
        "connected to 10.0.0.4:29500",
        "could not connect to server: Connection timed out. Is it running on host db-1.internal, port 3306?",
        "mlflow: dial tcp 10.0.0.80:5000: i/o timeout",
    ],
)
def test_what_is_tried_again_fetched_or_no_attempt_is_none(text: str) -> None:
    said = said_of(text)
    assert said is None or "why" not in said[1]


def test_a_peer_that_refuses_was_reached_but_for_the_bridge_of_each_host() -> None:
    assert said_of("oob_tcp: connect to 10.4.0.2:4000 failed: Connection refused") is None
    assert said_of("oob_tcp: connect to 172.17.0.1:4000 failed: Connection refused") == (
        "connect",
        {"peer": "172.17.0.1", "why": "own"},
    )
