"""What kind of trouble a line speaks of, and what it names."""

from tests.tables import examples
from topodiag.evidence.nccl_log.rebuild.events import classify


@examples("text", "event")
def test_an_event_of_a_device_names_the_device_its_port_and_what_happened(text: str, event: str) -> None:
    kind, secondary, details = classify("WARN", text)
    assert (kind, secondary) == ("ib async", False)
    assert {"hca": "mlx5_3", "port": "1", "event": event}.items() <= dict(details).items()


@examples("text", "kind")
def test_a_warning_has_the_kind_of_its_cause_in_nccls_own_line(text: str, kind: str) -> None:
    assert classify("WARN", text)[0] == kind


def test_a_connect_that_failed_names_its_peer_in_all_spellings() -> None:
    for text in (
        "socketPollConnect: Connect to 10.0.0.4<56849> returned 113(No route to host) errno 115(In progress)",
        "socketStartConnect: Connect to 10.0.0.4<56849> failed : No route to host",
    ):
        kind, secondary, details = classify("WARN", text)
        assert (kind, secondary, dict(details)["peer"]) == ("connect", False, "10.0.0.4<56849>")
    assert classify("WARN", "socketStartConnect: exceeded timeouts (5)")[0] == "connect"
