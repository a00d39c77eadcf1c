"""Processes with a GPU open, as the collector wrote them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by, text_of
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.processes import Processes
from topodiag.evidence.interface import Blob
from topodiag.model.system import Process

ONE: dict[str, Any] = json.loads(text_of("processes", "ONE"))


def fill(document: Any) -> NodeDraft:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return draft_by(Processes(), Blob("json/processes.json", data))


def one(**more: Any) -> Process:
    return fill({"processes": [{**ONE, **more}]}).processes[0]


@pytest.mark.parametrize("bad", [None, 3, "x", [], ["a"], {"a": 1}, True, -1, "0-99999999999999"])
def test_a_wrong_type_costs_only_that_value(bad: Any) -> None:
    for key in ("name", "gpus", "cpus_allowed", "nccl_env", "error"):
        assert one(**{key: bad}).pid == 4711
    assert one(cpus_allowed=bad).cpus_allowed.value is None
    assert one(cpus_allowed=bad).gpus == (0, 3)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.integers())


@given(st.lists(st.dictionaries(st.sampled_from([*ONE]), VALUES), max_size=4))
def test_any_values_are_survived(processes: list[dict[str, Any]]) -> None:
    fill({"processes": [*processes, {**ONE, "pid": 2**20}]})
    assert fill({"processes": [*processes, {**ONE, "pid": 2**31}]}).processes[-1].gpus == (0, 3)
