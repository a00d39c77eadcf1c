"""NET002 by connects that are tried again: a cause where a log ends with them, and the wait of any start else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud, said

TRIES = "[W socket.cpp:{0}] [c10d] The client socket has failed to connect to [{1}]:29500 (errno: {2}).\n"
NEWER = "[W1012 03:04:05.123456789 socket.cpp:{0}] [c10d] The client socket has failed to connect to [{1}]:29500 (errno: {2}).\n"  # noqa: E501
REACHED = "[I socket.cpp:884] [c10d - debug] The client socket has connected to [10.4.0.2]:29500 on [10.4.0.3]:41234.\n"
SILENT, NO_WAY, REFUSED = "110 - Connection timed out", "113 - No route to host", "111 - Connection refused"
NOT_HERE = "99 - Cannot assign requested address"
STEPS = "".join(f"Epoch: [0][{at}/500]\tTime 0.210 (0.215)\tData 0.002 (0.002)\tLoss 6.9\n" for at in range(1, 9))


@pytest.mark.parametrize(
    ("text", "peer"),
    [
        (TRIES.format(663, "::ffff:10.4.0.2", SILENT), "10.4.0.2"),
        (3 * NEWER.format(752, "10.4.0.2", SILENT), "10.4.0.2"),
        (3 * TRIES.format(697, "node-a.cluster", NO_WAY), "node-a.cluster"),
        ("prted: oob_tcp connect to 10.4.0.2:4001: Connection timed out, attempt 5\n" * 3, "10.4.0.2"),
    ],
)
def test_a_log_that_ends_with_its_trials_names_whom_nobody_reaches(tmp_path: Path, text: str, peer: str) -> None:
    finding = said(tmp_path, "starting on node-b\n" + text)["findings"][0]
    assert (finding["id"], finding["severity"]) == ("NET002", "warning")
    assert peer in finding["message"]


@pytest.mark.parametrize(
    "text",
    [
        3 * TRIES.format(663, "10.4.0.2", REFUSED),
        TRIES.format(663, "localhost", NOT_HERE) + TRIES.format(663, "::1", SILENT),
        3 * TRIES.format(663, "10.4.0.2", SILENT) + REACHED,
        3 * TRIES.format(663, "10.4.0.2", SILENT) + STEPS,
        TRIES.format(663, "10.4.0.2", SILENT) + 200 * "loading the tokenizer and the weights of the model\n",
        TRIES.format(663, "10.4.0.2", SILENT) + "INFO:root:Added key: store_based_barrier_key:1 to store for rank: 1\n",
        "[W socket.cpp:601] [c10d] The IPv6 network addresses of (10.4.0.2, 29500) cannot be retrieved (gai error: -9 -"
        " Address family for hostname not supported).\n",
        "WARNING wandb: connect to 10.0.0.9:443 timed out, retrying\n",
    ],
)
def test_a_first_process_that_comes_later_is_nobodys_fault(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []


TAKEN = (
    "RuntimeError: The server socket has failed to listen on any local network address. useIpv6: 0, code: -98,"
    " name: EADDRINUSE, message: address already in use\n"
)
TIMED_OUT = (
    "torch.distributed.DistNetworkError: The client socket has timed out after 600s while trying to connect to"
    " (node-a, 29500).\n"
)


@pytest.mark.parametrize(("text", "is_network"), [(TIMED_OUT, True), (TAKEN + TIMED_OUT, False)])
def test_who_did_not_listen_since_its_port_was_taken_is_no_fault_of_the_network(
    tmp_path: Path, text: str, is_network: bool
) -> None:
    findings = said(tmp_path, "starting on node-b, 2 nodes\n" + text)["findings"]
    assert ("NET002" in {finding["id"] for finding in findings}) is is_network
