"""Columns grow by rows, in memory or on disk: what comes back is what was put in, in types as narrow as asked."""

import errno
import tempfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.nccl_log.tables.saved import Columns, narrowest
from topodiag.model.errors import TopodiagError

KINDS: dict[str, np.dtype[Any]] = {
    "rank": np.dtype(np.int16),
    "channels": np.dtype(np.uint64),
    "line": np.dtype(np.int32),
}
PARTS = st.lists(st.lists(st.integers(0, 30_000), max_size=20), max_size=8)


@given(PARTS, st.sampled_from([0, 100, 1 << 20]), st.integers(0, 9))
def test_rows_come_back_in_their_order_in_memory_and_on_disk(parts: list[list[int]], size: int, more: int) -> None:
    values = [value for part in parts for value in part]
    made = Columns(KINDS, len(values) + more, size)
    for part in parts:
        own = np.array(part, np.int64)
        made.add({"rank": own, "channels": own.astype(np.uint64) << np.uint64(40), "line": own * 3})
    assert len(made) == len(values)
    ndarrays, maps = made.take()
    assert bool(maps) == (len(values) * 14 > size)
    assert {name: column.dtype for name, column in ndarrays.items()} == KINDS
    assert ndarrays["rank"].tolist() == values
    assert ndarrays["channels"].tolist() == [value << 40 for value in values]
    assert ndarrays["line"].tolist() == [value * 3 for value in values]


def test_a_full_disk_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    made = Columns({"rank": np.dtype(np.int32)}, 5, 0)
    with pytest.raises(TopodiagError, match="No space left") as error:
        made.add({"rank": np.arange(5)})
    assert "TMPDIR" in (error.value.hint or "")


@given(st.integers(-(1 << 40), 1 << 40), st.integers(-(1 << 40), 1 << 40))
def test_the_narrowest_type_holds_both_ends_and_no_narrower_one_does(a: int, b: int) -> None:
    low, high = sorted((a, b))
    kind = narrowest(low, high)
    assert np.array([low, high], kind).tolist() == [low, high]
    half = {2: np.int8, 4: np.int16, 8: np.int32}.get(kind.itemsize)
    assert half is None or low < np.iinfo(half).min or high > np.iinfo(half).max
