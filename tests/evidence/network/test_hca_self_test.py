"""hca_self_test.ofed: ports that are down and tests that failed; a test that passes says nothing."""

from __future__ import annotations

from tests.tables import texts
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.ibdiagnet import HcaSelfTest

TEXTS = texts(__file__)
TEXT = TEXTS["text"]


def read(state: str, errors: str) -> list[tuple[str, str]]:
    text = TEXT.format(state=state, errors=errors)
    source = HcaSelfTest()
    assert source.recognises(text)
    return [(event.kind, event.text) for event in source.parse(Blob("test.txt", text.encode())).records]


def test_a_port_that_is_down_and_a_test_that_failed_are_told() -> None:
    assert read("DOWN (InfiniBand)", "FAIL") == [
        ("nic.port_down", "Port State of Port #1 on CA #1 (HCA): DOWN (InfiniBand)"),
        ("fabric.link_errors", "Error Counter Check on CA #0 (HCA): FAIL"),
    ]


def test_a_node_that_passes_says_nothing() -> None:
    assert read("UP 4X HDR (InfiniBand)", "PASS") == []
