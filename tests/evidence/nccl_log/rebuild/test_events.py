"""What kind of trouble a line speaks of, and what it names."""

from __future__ import annotations

import pytest

from topodiag.evidence.nccl_log.rebuild.events import classify


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("NET/IB : mlx5_3:1 async fatal event: local catastrophic error", "local catastrophic error"),
        ("NET/IB : mlx5_3:1 async fatal event on CQ (0x7f01) handle=4 cqe=16: CQ error", "CQ error"),
        ("NET/IB : mlx5_3:1 GID table changed", "GID table changed"),
        ("NET/IB : mlx5_3:1 unknown event type (23)", "unknown event type (23)"),
        ("NET/IB : mlx5_3:1 Got non-fatal async event: P_Key change(12)", "P_Key change"),
    ],
)
def test_an_event_of_a_device_names_the_device_its_port_and_what_happened(text: str, event: str) -> None:
    kind, secondary, details = classify("WARN", text)
    assert (kind, secondary) == ("ib async", False)
    assert dict(details) == {"hca": "mlx5_3", "port": "1", "event": event}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Call to ibv_create_cq failed with error Cannot allocate memory", "memory"),
        ("Call to ibv_create_qp failed with error Unknown error -12", "memory"),
        (
            "ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2) nor AF_INET6(10)",
            "bootstrap",
        ),
        ("failed to open CUDA IPC handle : 217 peer access is not supported between these two devices", "cuda"),
        ("hipIpcGetMemHandle failed : invalid argument", "cuda"),
    ],
)
def test_a_warning_has_the_kind_of_its_cause_in_nccls_own_line(text: str, kind: str) -> None:
    assert classify("WARN", text)[0] == kind


def test_a_connect_that_failed_names_its_peer_in_all_spellings() -> None:
    for text in (
        "socketPollConnect: Connect to 10.0.0.4<56849> returned 113(No route to host) errno 115(In progress)",
        "socketStartConnect: Connect to 10.0.0.4<56849> failed : No route to host",
    ):
        assert classify("WARN", text) == ("connect", False, (("peer", "10.0.0.4<56849>"),))
    assert classify("WARN", "socketStartConnect: exceeded timeouts (5)")[0] == "connect"
