"""Any bytes among the text of a reader, and its lines in any order: it reads them or refuses them in one line."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.readers import readers, seeds_of
from topodiag.model.errors import TopodiagError

NAMES = [name for name in readers() if name.startswith(("source ", "layout ", "cluster "))] + [
    "file affinity", "file device pairs", "file free GPUs", "file index map", "file sentences", "kind flight-recorder",
    "kind nccl-diagnostics", "kind nccl-inspector", "kind nccl-profiler-trace", "kind nccl-ras", "kind nccl-tests",
    "kind rank-groups", "kind rank-map", "kind stack-dump", "kind sweep-plan", "kind watch",
]  # fmt: skip
"""The readers of one text; what gathers and judges several is in test_fuzz.py."""
MOST_SEED = 1500


def seed(name: str) -> bytes:
    return seeds_of(name)[0][:MOST_SEED]


def read(name: str, data: bytes) -> None:
    with suppress(TopodiagError):
        readers()[name].read(data)


@pytest.mark.parametrize("name", NAMES)
@given(noise=st.binary(max_size=300), at=st.integers(0, MOST_SEED), alone=st.booleans())
def test_any_bytes_alone_and_among_its_text_are_read_or_refused(name: str, noise: bytes, at: int, alone: bool) -> None:
    text = b"" if alone else seed(name)
    read(name, text[:at] + noise + text[at:])


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), cut=st.integers(0, 40))
def test_its_lines_in_any_order_and_cut_off_are_read_or_refused(name: str, data: st.DataObject, cut: int) -> None:
    lines = data.draw(st.lists(st.sampled_from(seed(name).splitlines(keepends=True)), max_size=40))
    read(name, b"".join(lines)[: -cut or None])
