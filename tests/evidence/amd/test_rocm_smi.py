"""No JSON makes the reader of `rocm-smi` fail; what it reads is in a table of readings."""

import json

from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.amd.rocm_smi import RocmSmi
from topodiag.evidence.interface import Blob


@given(st.recursive(st.none() | st.integers() | st.text(max_size=9), lambda x: st.dictionaries(st.sampled_from(["card0", "PCI Bus", "sclk clock speed:", "GPU use (%)"]), x), max_leaves=9))  # fmt: skip  # noqa: E501
def test_no_json_makes_it_fail(document: object) -> None:
    RocmSmi().parse(Blob("any.json", ('{"card1": {"a": 1}, "x": ' + json.dumps(document) + "}").encode()))
