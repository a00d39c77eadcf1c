"""Facts, unknowns and counters."""

from tests.tables import examples
from topodiag.model.links import fabric_bandwidth, fabric_problems
from topodiag.model.provenance import Counter, Fact, Origin, known


def test_unknown_is_a_value_with_a_reason() -> None:
    fact = Fact[int](why="needs root")
    assert not fact.known
    assert fact.why == "needs root"
    assert fact.get(0) == 0


def test_a_zero_is_a_reading() -> None:
    assert known(0).known
    assert known(0).get(7) == 0


def test_an_origin_reads_as_file_and_line() -> None:
    assert str(Origin("topo.txt", 3)) == "topo.txt:3"
    assert str(Origin("topo.txt")) == "topo.txt"


def test_growth_needs_two_readings() -> None:
    assert Counter("crc", known(4)).delta is None
    assert Counter("crc", known(4), known(9), 5.0).delta == 5


def test_a_counter_that_went_back_was_reset_and_says_nothing() -> None:
    assert Counter("crc", known(9), known(0), 5.0).delta is None


def test_the_latest_reading_is_the_second_where_there_is_one() -> None:
    assert Counter("crc", known(4)).latest.value == 4
    assert Counter("crc", known(4), known(9)).latest.value == 9


# --- the bits of the fabric's health mask by their meaning ----------------------------------------------------


@examples("mask", "bandwidth", "problems")
def test_the_health_mask_is_decoded(mask: int, bandwidth: str | None, problems: str | None) -> None:
    assert (fabric_bandwidth(mask), fabric_problems(mask)) == (bandwidth, problems)
