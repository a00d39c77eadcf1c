"""Processes with a GPU open, as the collector wrote them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import draft_by
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.processes import Processes
from topodiag.evidence.interface import Blob
from topodiag.model.system import Process

ONE = {
    "pid": 4711,
    "name": "python3",
    "gpus": [0, 3],
    "cpus_allowed": "0-55",
    "mems_allowed": "0-1",
    "nccl_env": {"NCCL_DEBUG": "INFO"},
    "error": "",
}


def fill(document: Any) -> NodeDraft:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return draft_by(Processes(), Blob("json/processes.json", data))


def one(**more: Any) -> Process:
    return fill({"processes": [{**ONE, **more}]}).processes[0]


def test_a_process_is_read_whole() -> None:
    process = one()
    assert (process.pid, process.gpus, process.name.value) == (4711, (0, 3), "python3")
    assert process.cpus_allowed.value == "0-55"
    assert process.nccl_env.value == {"NCCL_DEBUG": "INFO"}
    assert process.name.origin is not None
    assert process.name.origin.text == "processes[0]: pid 4711 python3"


def test_its_variables_are_settings_of_that_process() -> None:
    (setting,) = fill({"processes": [ONE]}).settings
    assert (setting.name, setting.value, setting.scope) == ("NCCL_DEBUG", "INFO", "process 4711")


def test_what_was_refused_is_unknown_and_not_empty() -> None:
    process = one(nccl_env={}, cpus_allowed="", error="denied")
    assert (process.nccl_env.value, process.nccl_env.why) == (None, "denied")
    assert (process.cpus_allowed.value, process.cpus_allowed.why) == (None, "denied")


def test_no_variables_is_a_reading_where_nothing_went_wrong() -> None:
    assert one(nccl_env={}).nccl_env.value == {}


@pytest.mark.parametrize("bad", [None, 3, "x", [], ["a"], {"a": 1}, True, -1, "0-99999999999999"])
def test_a_wrong_type_costs_only_that_value(bad: Any) -> None:
    for key in ("name", "gpus", "cpus_allowed", "nccl_env", "error"):
        assert one(**{key: bad}).pid == 4711
    assert one(cpus_allowed=bad).cpus_allowed.value is None
    assert one(cpus_allowed=bad).gpus == (0, 3)


def test_a_process_without_an_id_is_left() -> None:
    document = {"processes": [{"name": "x"}, ONE, ONE, 7]}
    assert [process.pid for process in fill(document).processes] == [4711]
    assert Processes().parse(Blob("x", json.dumps(document).encode())).unread_count == 2


@pytest.mark.parametrize("text", [json.dumps({"processes": [ONE]}), '{"processes": []}\n'])
def test_it_recognises_its_own(text: str) -> None:
    assert Processes().recognises(text)


@pytest.mark.parametrize("text", ["", "{}", '{"gpus": [{"nvlinks": [], "processes": [{"pid": 1}]}]}', "processes"])
def test_other_texts_are_not_recognised(text: str) -> None:
    assert not Processes().recognises(text)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.integers())


@given(st.lists(st.dictionaries(st.sampled_from([*ONE]), VALUES), max_size=4))
def test_any_values_are_survived(processes: list[dict[str, Any]]) -> None:
    fill({"processes": [*processes, {**ONE, "pid": 2**20}]})
    assert fill({"processes": [*processes, {**ONE, "pid": 2**31}]}).processes[-1].gpus == (0, 3)
