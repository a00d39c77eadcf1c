"""No JSON makes the reader of `amd-smi` fail; what it reads is in a table of readings."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import read


@given(st.recursive(st.none() | st.integers() | st.text(max_size=9), lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["gpu", "ecc", "ecc_blocks", "UMC", "pcie", "speed", "bus", "bdf", "clock", "gfx_0", "clk", "value", "limit", "usage", "throttle"]), x), max_leaves=20))  # fmt: skip  # noqa: E501
def test_no_document_makes_it_fail(document: object) -> None:
    read("amd-smi-json", json.dumps({"gpu_data": document}))
