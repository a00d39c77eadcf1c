"""What degraded machines of the corpus lose is, to the digit, what NCCL itself found on them and on the whole ones."""

import pytest

from benchmarks.counterfactual import CORPUS, MACHINES, rows

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus is not at {CORPUS}")


def test_the_predicted_loss_of_20_degraded_machines_is_nccls_own() -> None:
    assert len({machine.name for machine in MACHINES}) >= 20
    records = list(rows(versions=("2.28",), counts=(2,)))
    assert not [row for row in records if not row.agrees]
    assert sum(row.degraded < row.whole for row in records if row.whole and row.degraded is not None) >= 12, (
        "real losses"
    )
