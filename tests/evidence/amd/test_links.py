"""What two AMD GPUs are to each other; which text says it is in a table of readings."""

from tests.tables import examples
from topodiag.evidence.amd.links import pair_word


@examples("kind", "hops", "word")
def test_what_a_pair_is_called(kind: str, hops: int, word: str) -> None:
    assert pair_word(kind, hops) == word
