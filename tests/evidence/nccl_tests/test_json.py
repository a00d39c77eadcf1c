"""The JSON of `-J`: its versions and quirks, cut off anywhere, and what is not kept of it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples, parts, texts
from topodiag.evidence.nccl_tests import read_runs
from topodiag.evidence.nccl_tests.read import load
from topodiag.model.bench import BenchRun

DOCUMENT = texts(__file__)["document"]


def document() -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(DOCUMENT)
    return answer


def only(answer: dict[str, Any]) -> BenchRun:
    runs, _ = read_runs(json.dumps(answer).encode(), "out.json")
    assert len(runs) == 1
    return runs[0]


@examples("text", "replaced", "run")
def test_a_run_has_what_its_document_says(
    text: str | None, replaced: dict[str, str] | None, run: dict[str, Any] | None
) -> None:
    text = text or DOCUMENT
    for old, new in (replaced or {}).items():
        assert old in text
        text = text.replace(old, new)
    runs, _ = read_runs(text.encode(), "out.json")
    assert [parts(made, run) for made in runs] == ([] if run is None else [run])


def test_processes_of_several_gpus_list_only_their_first_one() -> None:
    answer = document()
    answer["config"]["ngpus"] = 4
    answer["config"]["devices"] = [answer["config"]["devices"][0] | {"rank": rank, "hostname": host}
                                 for rank, host in ((0, "a"), (4, "b"))]  # fmt: skip
    run = only(answer)
    assert (run.nranks, run.ranks_per_host, run.hosts) == (8, 4, ("a", "b"))
    assert [device.device for device in run.devices[:4]] == [0, 1, 2, 3]
    assert run.devices[1].bus_id == ""


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_a_file_that_a_crash_cut_off_keeps_its_whole_rows(share: float) -> None:
    text = json.dumps(document())
    runs, _ = read_runs(text[: int(len(text) * share)].encode(), "out.json")
    assert len(runs) == 1
    assert not runs[0].complete
    assert any("cut off" in note for note in runs[0].notes)
    assert len(runs[0].rows) == (0 if share == 0.5 else 2)


def test_a_row_without_its_second_block_was_cut() -> None:
    text = json.dumps(document())
    runs, _ = read_runs(text[: text.rindex('"in_place"')].encode(), "out.json")
    assert [row.cut for row in runs[0].rows] == [False, True]


WHOLE = json.dumps(document())


@given(st.integers(WHOLE.index("}") + 1, len(WHOLE)))
def test_a_document_cut_anywhere_behind_its_first_object_can_be_closed(at: int) -> None:
    value, closed, why = load(WHOLE[:at])
    assert isinstance(value, dict)
    assert not why
    assert closed or at == len(WHOLE)


@pytest.mark.parametrize("text", ["", "{", WHOLE[: WHOLE.index("}")], '{"a": "}'])
def test_what_has_no_whole_object_is_no_document(text: str) -> None:
    value, closed, why = load(text)
    assert (value, closed) == (None, False)
    assert why


@given(st.recursive(st.none() | st.text(max_size=5) | st.floats() | st.integers(), lambda x: st.lists(x, max_size=4)
                    | st.dictionaries(st.sampled_from(["results", "config", "size", "devices", "rank", "root",
                                                       "out_of_place", "time", "env", "args"]), x, max_size=5),
                    max_leaves=20))  # fmt: skip
def test_any_values_in_any_place_are_read_without_a_complaint(value: Any) -> None:
    read_runs(json.dumps({"results": value, "config": value, "errors": value, "args": value}).encode(), "x")
