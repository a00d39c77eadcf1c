"""The JSON of `-J`: its versions and quirks, cut off anywhere, and what is not kept of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.nccl_tests import read_runs
from topodiag.evidence.nccl_tests.json_output import load
from topodiag.model.bench import BenchRun


def document(**changes: Any) -> dict[str, Any]:
    def block(time: float, alg: float, wrong: float | None) -> dict[str, Any]:
        return {"time": time, "alg_bw": alg, "bus_bw": alg * 1.75, "nwrong": wrong}

    answer: dict[str, Any] = {
        "version": 2,
        "start_time": "2026-03-01 12:00:00",
        "args": ["/opt/nccl-tests/build/all_reduce_perf", "-b", "8"],
        "env": ["NCCL_IB_HCA=mlx5", "AWS_SECRET_ACCESS_KEY=hunter2", "PATH=/bin"],
        "nccl_version": 22809,
        "config": {
            "nthreads": 1,
            "ngpus": 1,
            "minimum_bytes": 8,
            "maximum_bytes": 1024,
            "step_factor": 2,
            "iterations": 20,
            "devices": [
                {"rank": rank, "group": 0, "pid": 7 + rank, "hostname": "gpu-a01", "device": rank,
                 "device_hex": f"0000:{0x18 + rank:02x}:00", "device_info": "NVIDIA H100 80GB HBM3"}
                for rank in range(8)
            ],
        },
        "results": [
            {"size": 1 << 20, "count": 1 << 18, "type": "float", "redop": "sum", "root": "    -1",
             "out_of_place": block(52.41, 20.0, 0.0), "in_place": block(51.9, 20.2, None)},
            {"size": 1 << 30, "count": 1 << 28, "type": "float", "redop": "sum", "root": "    -1",
             "out_of_place": block(4520.1, 237.5, 2.0), "in_place": block(4519.0, 237.6, 0.0)},
        ],
        "out_of_bounds": {"count": 1, "okay": "false"},
        "average_bus_bandwidth": {"bandwidth": 252.041, "okay": "unchecked"},
        "errors": [],
    }  # fmt: skip
    return answer | changes


def only(answer: dict[str, Any]) -> BenchRun:
    runs, _ = read_runs(json.dumps(answer).encode(), "out.json")
    assert len(runs) == 1
    return runs[0]


def test_a_run_is_read_with_its_devices_and_rows() -> None:
    run = only(document())
    assert (run.collective, run.nccl, run.nranks, run.complete) == ("all_reduce", "2.28.9", 8, True)
    assert (run.average_gbs, run.out_of_bounds) == (252.041, 1)
    assert run.rows[0].root == -1
    assert run.rows[0].in_place.wrong is None
    assert run.rows[1].out_of_place.wrong == 2
    assert run.devices[2].bus_id == "0000:1a:00.0"
    assert run.parameters["maxBytes"] == "1024"


def test_of_the_environment_only_settings_of_communication_are_kept() -> None:
    assert dict(only(document()).env) == {"NCCL_IB_HCA": "mlx5"}


def test_early_versions_misspelt_the_average() -> None:
    answer = document()
    answer["average_bus_bandwidith"] = {"bandwidith": 99.5, "okay": "unchecked"}
    del answer["average_bus_bandwidth"]
    assert only(answer).average_gbs == 99.5


def test_a_number_that_is_none_is_the_word_nan() -> None:
    answer = document()
    answer["results"][0]["out_of_place"]["bus_bw"] = "nan"
    assert only(answer).rows[0].out_of_place.busbw_gbs is None


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


def test_json_of_something_else_is_no_run() -> None:
    assert read_runs(b'{"schema_version": "1.0", "facts": {}}', "x")[0] == ()


@given(st.integers(2, 2600))
def test_a_document_cut_anywhere_can_be_closed(at: int) -> None:
    text = json.dumps(document())[:at]
    value, closed, why = load(text)
    assert (isinstance(value, dict) and not why) or len(text) < 3
    assert closed or len(text) == len(json.dumps(document())) or not isinstance(value, dict)


@given(st.recursive(st.none() | st.text(max_size=5) | st.floats() | st.integers(), lambda x: st.lists(x, max_size=4)
                    | st.dictionaries(st.sampled_from(["results", "config", "size", "devices", "rank", "root",
                                                       "out_of_place", "time", "env", "args"]), x, max_size=5),
                    max_leaves=20))  # fmt: skip
def test_any_values_in_any_place_are_read_without_a_complaint(value: Any) -> None:
    read_runs(json.dumps({"results": value, "config": value, "errors": value, "args": value}).encode(), "x")
