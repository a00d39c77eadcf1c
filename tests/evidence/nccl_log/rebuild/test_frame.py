"""Rows taken together by whom they are of, as the reconstruction does it with whole tables."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.tables import examples
from topodiag.evidence.nccl_log.rebuild.frame import by_owner, groups, once, whole_hosts

OWNERS = st.lists(st.integers(-1, 4), max_size=30)


def column(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


@given(OWNERS, st.randoms(use_true_random=False))
def test_rows_of_one_owner_stay_in_the_order_in_which_they_came(owners: list[int], draw: object) -> None:
    order = list(range(len(owners)))
    draw.shuffle(order)  # type: ignore[attr-defined]
    rows, ndarray, starts = by_owner(column(order), column(owners))
    parts = np.split(rows, starts[1:]) if starts.size else []
    expected = {owner: [row for row in order if owners[row] == owner] for owner in sorted(set(owners) - {-1})}
    assert dict(zip(ndarray.tolist(), [part.tolist() for part in parts], strict=True)) == expected


@given(OWNERS)
def test_groups_are_the_rows_of_each_key_that_is_not_negative(keys: list[int]) -> None:
    table = {key: rows.tolist() for key, rows in groups(column(keys))}
    assert table == {key: [i for i, each in enumerate(keys) if each == key] for key in sorted(set(keys) - {-1})}


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-(2**62), 2**62), st.integers(1, 9)), max_size=30))
def test_what_is_said_again_counts_for_its_first_row(said: list[tuple[int, int, int]]) -> None:
    first, second, counts = (column([row[i] for row in said]) for i in range(3))
    rows, sums = once(np.arange(len(said)), (first, second), counts)
    expected: dict[tuple[int, int], list[int]] = {}
    for i, (a, b, count) in enumerate(said):
        expected.setdefault((a, b), [i, 0])[1] += count
    assert [list(pair) for pair in zip(rows.tolist(), sums, strict=True)] == list(expected.values())


# --- A torn record's rest in front of a host makes no host of its own -----------------------------------------


def lines(host: str, count: int) -> bytes:
    return b"".join(f"{host}:1:1 [0] NCCL INFO Using network N{index}\n".encode() for index in range(count))


@examples("whole", "torn", "hosts")
def test_a_torn_record_makes_no_host_of_its_own(whole: list[tuple[str, int]], torn: str, hosts: list[str]) -> None:
    data = b"".join(lines(host, count) for host, count in whole)
    if torn:
        data += f"{torn} [0] NCCL INFO Using network IB\n".encode()
    assert sorted(set(whole_hosts(extract_plain(data, 0, 0))["threads"].values("host"))) == hosts


def test_one_host_is_left_alone() -> None:
    facts = extract_plain(lines("gpu-a", 3), 0, 0)
    assert whole_hosts(facts) is facts
