"""No JSON makes the reader of XGMI links fail; what it reads is in a table of readings."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import read


@given(st.recursive(st.none() | st.integers() | st.text(max_size=9), lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["gpu", "bdf", "link_metrics", "bit_rate", "value", "unit"]), x), max_leaves=20))  # fmt: skip  # noqa: E501
def test_no_document_makes_it_fail(document: object) -> None:
    read("amd-smi-xgmi", json.dumps({"xgmi_metric": document}))
