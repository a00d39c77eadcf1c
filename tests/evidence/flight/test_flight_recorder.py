"""Dumps of torch's flight recorder: what is read, and that hostile files are refused in one line."""

import json
import os
import pickle
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.evidence.flight import flight_recorder
from topodiag.evidence.flight.flight_recorder import MAX_ENTRIES, read_flight
from topodiag.evidence.marks import looks_like_flight


def dump(count: int = 3) -> dict[str, object]:
    entries = [
        {
            "record_id": number,
            "pg_id": 0,
            "process_group": ("0", "default_pg"),
            "collective_seq_id": number + 1,
            "p2p_seq_id": 0,
            "profiling_name": "nccl:all_reduce",
            "input_sizes": [[1024, 2]],
            "input_dtypes": ["Float"],
            "time_created_ns": 1_700_000_000_000_000_000,
            "duration_ms": 0.25,
            "state": "completed" if number + 1 < count else "scheduled",
            "retired": False,
            "is_p2p": False,
            "time_discovered_started_ns": None,
            "frames": [{"name": "step", "filename": "train.py", "line": 12}],
        }
        for number in range(count)
    ]
    return {
        "version": "2.9",
        "pg_config": {
            "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"},
            "5": {"name": "5", "desc": "TENSOR_MODEL_PARALLEL_GROUP", "ranks": "[2, 3]"},
        },
        "pg_status": {"0": {"last_enqueued_collective": count}},
        "entries": entries,
    }


def written(folder: Path, name: str, data: bytes) -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickled_dump_is_read(tmp_path: Path, protocol: int) -> None:
    path = written(tmp_path, "nccl_trace_rank_3", pickle.dumps(dump(), protocol))
    (record,), problems = read_flight([path])
    assert problems == ()
    assert record.rank == 3
    assert record.entries[0] == ("0", 1, "all_reduce", "completed")
    assert record.entries[-1] == ("0", 3, "all_reduce", "scheduled")
    assert record.groups == {"0": (0, 1, 2, 3), "5": (2, 3)}
    assert record.descriptions["5"] == "TENSOR_MODEL_PARALLEL_GROUP"
    assert record.origin.source == path


def test_json_says_the_same_as_the_pickle(tmp_path: Path) -> None:
    pickled = written(tmp_path, "a_rank_1", pickle.dumps(dump(), 2))
    text = written(tmp_path, "b_rank_2.json", json.dumps(dump()).encode())
    (one, two), problems = read_flight([text, pickled])
    assert problems == ()
    assert (one.rank, two.rank) == (1, 2)
    assert (one.entries, one.groups, one.descriptions) == (two.entries, two.groups, two.descriptions)


def test_sends_count_by_their_own_sequence(tmp_path: Path) -> None:
    document = dump(1)
    document["entries"][0] |= {"is_p2p": True, "p2p_seq_id": 7, "profiling_name": "nccl:send 0->1"}  # type: ignore[index]
    (record,), _ = read_flight([written(tmp_path, "rank0", pickle.dumps(document))])
    assert record.entries == (("0", 7, "send 0->1", "scheduled"),)


def test_the_last_entries_are_kept(tmp_path: Path) -> None:
    (record,), _ = read_flight([written(tmp_path, "rank_0", pickle.dumps(dump(MAX_ENTRIES + 50)))])
    assert len(record.entries) == MAX_ENTRIES
    assert record.entries[-1][1] == MAX_ENTRIES + 50


def test_the_rank_in_the_file_goes_before_the_one_in_its_name(tmp_path: Path) -> None:
    path = written(tmp_path, "rank_3", pickle.dumps({**dump(), "rank": 6}))
    assert read_flight([path])[0][0].rank == 6


@pytest.mark.parametrize("name", ["nccl_trace_rank_12", "job7_rank12.pkl", "trace.12", "trace_12.json"])
def test_the_rank_is_read_from_the_name(tmp_path: Path, name: str) -> None:
    assert read_flight([written(tmp_path, name, pickle.dumps(dump()))])[0][0].rank == 12


def test_one_bad_file_costs_that_file(tmp_path: Path) -> None:
    good = written(tmp_path, "rank_0", pickle.dumps(dump()))
    cut = written(tmp_path, "rank_1", pickle.dumps(dump())[:-40])
    other = written(tmp_path, "rank_2", pickle.dumps([1, 2]))
    nameless = written(tmp_path, "trace", pickle.dumps(dump()))
    twice = written(tmp_path, "again_rank_0", pickle.dumps(dump()))
    missing = str(tmp_path / "rank_9")
    records, problems = read_flight([cut, good, other, nameless, twice, missing])
    assert [record.rank for record in records] == [0]
    assert len(problems) == 5
    assert all("\n" not in line for line in problems)


class _Runs:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("exit 1",)


class _Built:
    def __init__(self) -> None:
        self.x = 1


HOSTILE = {
    "runs a command": pickle.dumps({"entries": [_Runs()]}, 2),
    "runs a command, protocol 4": pickle.dumps({"entries": [_Runs()]}, 4),
    "builds an object": pickle.dumps({"entries": [_Built()]}, 2),
    "names a global": b"\x80\x02cos\nsystem\n.",
    "extension": b"\x80\x02\x82\x01.",
    "persistent id": b"\x80\x02Pabc\n.",
    "instance": b"\x80\x02(ios\nsystem\n.",
    "a set": pickle.dumps({"entries": {1}}, 4),
    "nested tuple as key": b"\x80\x02}" + b")" + b"\x85" * 50_000 + b"Ns.",
    "length beyond the file": b"\x80\x02X\xff\xff\xff\xff.",
    "length of 8 bytes": b"\x80\x04\x8d" + struct.pack("<Q", 2**63) + b"x.",
    "pops nothing": b"\x80\x020000.",
    "recalls nothing": b"\x80\x02h\x07.",
    "item of a number": b"\x80\x02K\x01K\x02a.",
    "odd items of a dict": b"\x80\x02}(K\x01u.",
    "nothing at all": b"\x80\x02",
    "deep lists in JSON": b"[" * 200_000,
    "empty": b"",
    "text": b"node:1:1 [0] NCCL INFO cudaDriverVersion 12040\n",
    "a number of many digits": b"\x80\x02I" + b"9" * 100_000 + b"\n.",
    "no UTF-8": b"\x80\x02X\x01\x00\x00\x00\xff.",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_file_is_refused_in_one_line(tmp_path: Path, data: bytes) -> None:
    records, problems = read_flight([written(tmp_path, "rank_0", data)])
    assert records == ()
    assert len(problems) == 1
    assert "\n" not in problems[0]


def test_half_a_character_is_no_part_of_a_text(tmp_path: Path) -> None:
    data = pickle.dumps({"pg_config": {"0": {"ranks": [0], "desc": "half \ud800"}}}, 2)
    (record,), _ = read_flight([written(tmp_path, "rank_0", data)])
    assert record.descriptions == {"0": "half ?"}


def test_steps_are_bounded() -> None:
    with pytest.raises(flight_recorder.NotPlainError, match="more than 100 steps"):
        flight_recorder.load(b"\x80\x02" + b"]" * 1000 + b".", max_steps=100)


def test_a_list_that_holds_itself_does_no_harm(tmp_path: Path) -> None:
    loop: list[object] = []
    loop.append(loop)
    (record,), _ = read_flight([written(tmp_path, "rank_0", pickle.dumps({"entries": loop, "pg_config": loop}))])
    assert record.entries == ()


def test_ranks_beyond_measure_are_left_out(tmp_path: Path) -> None:
    config = {"0": {"name": "0", "ranks": "[" + "9" * 100 + "]"}, "1": {"ranks": "[0, x]"}, "2": {"ranks": [0, -1]}}
    (record,), _ = read_flight([written(tmp_path, "rank_0", pickle.dumps({"pg_config": config}))])
    assert record.groups == {}


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(PLAIN, st.sampled_from([3, 4, 5]))
def test_plain_data_comes_back_as_it_was(value: object, protocol: int) -> None:
    assert flight_recorder.load(pickle.dumps(value, protocol)) == value


def test_dumps_are_told_from_other_files() -> None:
    assert looks_like_flight(pickle.dumps(dump(), 2)[:4096])
    assert looks_like_flight(json.dumps(dump())[:4096].encode())
    assert not looks_like_flight(b"\x80\x02}")
    assert not looks_like_flight(b"node:1:1 [0] NCCL INFO pg_config")
    assert not looks_like_flight(b'{"other": 1}')
    assert not looks_like_flight(b"")


@pytest.mark.parametrize("prefix", ["", "nccl:", "nccl2:", "xccl:", "rccl:"])
def test_the_back_end_in_front_of_an_operation_is_no_part_of_it(tmp_path: Path, prefix: str) -> None:
    document = dump(1)
    document["entries"][0]["profiling_name"] = prefix + "all_reduce"  # type: ignore[index]
    (record,), _ = read_flight([written(tmp_path, "nccl_trace_rank_container-node02_5", json.dumps(document).encode())])
    assert (record.rank, record.entries[0][2]) == (5, "all_reduce")


def test_what_is_retired_and_not_completed_timed_out(tmp_path: Path) -> None:
    document = dump(2)
    document["entries"][1]["retired"] = True  # type: ignore[index]
    (record,), _ = read_flight([written(tmp_path, "comm_lib_trace_rank_3", pickle.dumps(document))])
    assert [state for *_, state in record.entries] == ["completed", "timed out"]
