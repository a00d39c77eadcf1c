"""What torch and Python say of the store at which ranks meet: no name, no port, no answer; and noise beside it."""

from __future__ import annotations

import pytest

from topodiag.checks.shared.phrases import advice_by_words
from topodiag.evidence.nccl_log.grammar.job_lines import said_of

GAI = "network addresses of (master-0, 29500) cannot be retrieved (gai error: -2 - Name or service not known)."
LISTEN = "The server socket has failed to"


@pytest.mark.parametrize(
    ("text", "kind", "advice"),
    [
        ("[rank4]: socket.gaierror: [Errno -3] Temporary failure in name resolution", "connect", "getent hosts"),
        (f"torch.distributed.DistNetworkError: The IPv4 {GAI}", "connect", "getent hosts"),
        (
            "The client socket has timed out after 9ms while trying to connect to (10.0.0.1, 29500).",
            "connect",
            "rank 0",
        ),
        ("[E1 ProcessGroupNCCL.cpp:1] [Rank 7] Heartbeat monitor timed out! Process will be", "watchdog", "py-spy"),
    ],
)
def test_a_store_without_name_port_or_answer_is_an_error_with_its_own_advice(text: str, kind: str, advice: str) -> None:
    said = said_of(text)
    assert said is not None
    assert said[0] == kind
    assert advice in advice_by_words(text)


@pytest.mark.parametrize(
    "text",
    [
        f"[W socket.cpp:697] [c10d] The IPv6 {GAI}",
        "Port 8265 is already in use, using 8266 for the dashboard",
    ],
)
def test_one_family_of_addresses_or_the_port_of_a_side_service_is_none(text: str) -> None:
    assert said_of(text) is None


@pytest.mark.parametrize(
    "text",
    [
        f"RuntimeError: {LISTEN} bind to [::]:29500 (errno: 98 - Address already in use).",
        f"{LISTEN} listen on any local network address. code: -98, name: EADDRINUSE",
    ],
)
def test_a_port_that_another_process_has_ends_the_one_that_wants_it(text: str) -> None:
    assert said_of(text) == ("ended", {"how": "port taken"})
    assert said_of(f"{LISTEN} bind to [::]:29500 (errno: 97 - Address family not supported by protocol).") == (
        "connect",
        {},
    )


NO_FAMILY = "[W socket.cpp:401] [c10d] The server socket cannot be initialized on [::]:29500 (errno: {})."


def test_an_address_family_that_the_host_lacks_is_gone_past() -> None:
    assert said_of(NO_FAMILY.format("97 - Address family not supported by protocol")) == ("note", {})
    files = said_of(NO_FAMILY.format("24 - Too many open files"))
    assert files is None or files[0] != "note"
