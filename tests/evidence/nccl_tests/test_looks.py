"""Output of nccl-tests is known by any one line of its own: a row, the averages, an error, behind any label."""

import time

from tests.tables import examples
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.kinds import Kind


@examples("text")
def test_one_line_is_enough(text: str) -> None:
    assert kind_of_file((text + "\n").encode()).kind is Kind.NCCL_TESTS


@examples("text")
def test_other_text_is_not_taken_for_it(text: str) -> None:
    assert Kind.NCCL_TESTS not in kind_of_file(text.encode()).kinds


def test_no_text_makes_it_slow() -> None:
    for text in (b"1 " * 30_000, b"1\t1\tfloat\t" * 6_000, b"# size count " * 5_000, b" " * 65_000):
        start = time.monotonic()
        kind_of_file(text)
        assert time.monotonic() - start < 5
