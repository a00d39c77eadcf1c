"""What NVML's answers say, as the collector wrote them: no answer costs another one."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, text_of, value
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob
from topodiag.evidence.nvidia.nvidia_words import event_reasons
from topodiag.evidence.nvidia.nvml import Nvml

GPU: dict[str, Any] = json.loads(text_of("nvml", "GPU0"))


def fill(given: Any) -> NodeDraft:
    data = given if isinstance(given, bytes) else json.dumps(given).encode()
    return draft_by(Nvml(), Blob("json/nvml.json", data))


def test_event_reasons_without_a_name_keep_their_number() -> None:
    assert event_reasons(0x204) == ("sw_power_cap", "reason_0x200")
    assert event_reasons(0) == ()


@pytest.mark.parametrize("bad", ["text", 10**30, -5, 1e300, [], {}, True, [[1]], {"error": 3}])
def test_a_wrong_type_costs_only_that_value(bad: Any) -> None:
    usual = fill({"gpus": [GPU]}).gpu(index=0)
    for key in ("minor", "pstate", "compute_capability", "cpu_affinity", "event_reasons", "mig_mode", "remapped_rows"):
        entity = fill({"gpus": [GPU | {key: bad}]}).gpu(index=0)
        assert value(entity, "compute_mode") == "Exclusive_Process"
        assert len(entity.children) == len(usual.children)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"[" * 100_000, b'{"gpus": ' + b"9" * 10_000 + b"}", b"null"])
def test_what_is_no_document_is_left_with_why(data: bytes) -> None:
    fill(data)
    assert Nvml().parse(Blob("x", data)).unread_count <= 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GPU, "error", "0"]), inner),
    max_leaves=12,
)


@given(st.data())
def test_any_value_anywhere_is_survived(data: st.DataObject) -> None:
    pairs = [{"a": 0, "b": 1, "ancestor": 10, "p2p": {"read": 0}}]
    whole: dict[str, Any] = json.loads(text_of("nvml", "DOCUMENT")) | {"pairs": pairs}
    place: Any = whole
    while True:
        key = data.draw(st.sampled_from(sorted(place))) if isinstance(place, dict) else 0
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(JSON)
    fill(whole)
