"""The claims on whole logs and small faulty inputs, a test each: first cause, state, and what is said or not said."""

from __future__ import annotations

import pytest

from benchmarks.corpus_claims import CORPUS, cases, misses
from tests.tables import texts

TEXTS = texts(__file__)
HELD = TEXTS["held"]
"""By case, the claim that it shows."""

CLAIMS = sorted(HELD.keys() & {"/".join(case) for case in cases(("whole", "faults"))})
pytestmark = pytest.mark.skipif(not CLAIMS, reason=f"the corpus is not at {CORPUS}")


@pytest.mark.parametrize("name", CLAIMS, ids=lambda name: f"{name}: {HELD[name]}")
def test_the_claim_holds(name: str) -> None:
    family, _, case = name.partition("/")
    assert misses((family, case))[2] == []
