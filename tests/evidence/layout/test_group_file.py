"""Files of groups: what they may name, counted before it is made."""

import tracemalloc

import pytest

from topodiag.evidence.interface import Blob
from topodiag.evidence.layout import rank_files
from topodiag.evidence.layout.rank_files import read_groups
from topodiag.model.cluster import Demand
from topodiag.model.errors import InputError


def groups(text: str) -> tuple[Demand, ...]:
    return read_groups(Blob("groups.yaml", text.encode()))


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        groups(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_ranges_steps_and_single_ranks_are_the_members_in_their_order() -> None:
    (demand,) = groups("together: [[3, 0-2], '4-8/2, 5']\n")
    assert demand.groups.tolist() == [[3, 0, 1, 2], [4, 6, 8, 5]]


def test_groups_of_different_sizes_are_demands_of_their_own() -> None:
    assert [demand.groups.tolist() for demand in groups("together: [0-2, 3-4, 5-7]\n")] == [
        [[3, 4]],
        [[0, 1, 2], [5, 6, 7]],
    ]


@pytest.mark.parametrize(
    "ranks",
    [
        "[" + ", ".join(["0-4194303"] * 40) + "]",
        "[[" + ", ".join(["0-4194303"] * 40) + "]]",
        "'" + ",".join(["0-4194303"] * 40) + "'",
    ],
)
def test_a_file_of_500_bytes_costs_no_gigabytes(ranks: str) -> None:
    text = f"may_span: {ranks}\n"
    assert len(text) < 500
    tracemalloc.start()
    try:
        assert "members together" in refused(text)
        assert tracemalloc.get_traced_memory()[1] < 300 << 20
    finally:
        tracemalloc.stop()


def test_families_that_repeat_their_ranks_by_alias_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_files, "MAX_MEMBERS", 100_000)
    entries = "".join(f"  - {{name: f{n}, ranks: *a}}\n" for n in range(20))
    assert "members together" in refused(f"groups:\n  - {{name: tp, ranks: &a [0-9999]}}\n{entries}")


@pytest.mark.parametrize("number", ["9" * 5000, "0x" + "f" * 5000, "1" * 4301, "1e5000"])
def test_a_rank_or_a_size_of_thousands_of_digits_is_one_clear_line(number: str) -> None:
    assert "is no rank" in refused(f"together: [[0, {number}]]\n")
    assert "is no number of bytes" in refused(f"groups:\n  - {{name: a, ranks: [0-1], bytes: {number}}}\n")


def test_a_long_list_of_ranks_in_one_text_is_read_to_its_end() -> None:
    (demand,) = groups("together: ['" + ",".join(map(str, range(30_000))) + "']\n")
    assert demand.groups.shape == (1, 30_000)


def test_a_rank_that_stands_twice_is_named() -> None:
    assert "rank 2 is in two places" in refused("together: [[0, 2], [1, 2]]\n")
    assert "rank 5 is in two places" in refused("together: [[5, 5]]\n")
    assert "a group of 1 talks to nobody" in refused("together: [[5], [1, 2]]\n")
