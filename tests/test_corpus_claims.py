"""The claims on whole logs and small faulty inputs, a test each: first cause, state, and what is said or not said."""

import json

import pytest

from benchmarks.corpus_claims import CORPUS, cases, misses
from tests.tables import texts

TEXTS = texts(__file__)
HELD = TEXTS["held"]
"""By case, the claim that it shows; of the others their folder says it."""

CLAIMS = sorted("/".join(case) for case in cases(("whole", "faults")))
pytestmark = pytest.mark.skipif(not CLAIMS, reason=f"the corpus is not at {CORPUS}")


def _claim(name: str) -> str:
    said = CORPUS / name / "expected.json"
    claim: str = HELD.get(name) or (json.loads(said.read_text())["what"] if said.exists() else "the whole log")
    return f"{name}: {claim}"


def test_each_claim_that_has_words_is_of_a_case() -> None:
    assert HELD.keys() <= set(CLAIMS)


@pytest.mark.parametrize("name", CLAIMS, ids=_claim)
def test_the_claim_holds(name: str) -> None:
    family, _, case = name.partition("/")
    assert misses((family, case))[2] == []
