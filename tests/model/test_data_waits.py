"""How much of a training's steps is waiting for data, and when nothing is said of it."""

import pytest

from topodiag.evidence.live.step_times import read_steps
from topodiag.model.data_waits import data_waits


def _share(waits: list[float], took: float) -> float | None:
    lines = (f"Epoch: [0][{at:3d}/900]  time: {took:.4f}  data: {wait:.4f}" for at, wait in enumerate(waits))
    [series] = read_steps("\n".join(lines).encode(), "train.log")
    waiting = data_waits(series)
    return waiting and round(waiting.share, 1)


UNEVEN = [0.80 + 0.01 * (at * 7 % 11) for at in range(60)]


@pytest.mark.parametrize(
    ("waits", "share"),
    [
        pytest.param(UNEVEN, 0.9, id="all wait, now longer, now shorter"),
        pytest.param([0.86] * 20, 0.9, id="few lines may be alike by chance"),
        pytest.param([0.85 + 0.0001 * (at % 3) for at in range(60)], None, id="all wait equally long: for their GPUs"),
        pytest.param([0.05] * 60, None, id="the loader keeps up"),
    ],
)
def test_steps_wait_for_data_where_their_lines_say_so(waits: list[float], share: float | None) -> None:
    assert _share(waits, 1.0) == share
