"""Pairs of hosts with the bandwidth between them: which fall short."""

from __future__ import annotations

from tests.tables import examples, texts
from topodiag.evidence.interface import Blob
from topodiag.evidence.network.perftest import PairRates

TEXTS = texts(__file__)
TEST = TEXTS["test"]


def measured(*rates: tuple[str, str, str]) -> str:
    return "".join(TEST.format(a=a, b=b, rate=rate) for a, b, rate in rates)


def said(text: str) -> list[str]:
    reader = PairRates()
    return [event.text for event in reader.parse(Blob("x", text.encode())).records] if reader.recognises(text) else []


def test_of_two_tests_with_one_port_the_slower_pair_is_named() -> None:
    [words] = said(measured(("ws-1", "ws-2", "391.84"), ("ws-1", "ws-3", "196.31")))
    assert "ws-1-ws-3 196.31" in words


@examples("text")
def test_what_proves_nothing_is_not_said(text: str) -> None:
    assert said(text) == []


def test_in_a_list_the_pairs_far_below_the_others_are_named() -> None:
    rows = "".join(f"g0{at}-g1{at} {196.1 if at == 3 else 391.8} Gb/s\n" for at in range(8))
    [words] = said(rows)
    assert words.startswith("g03-g13 196.1, while 7 other pairs carry")
