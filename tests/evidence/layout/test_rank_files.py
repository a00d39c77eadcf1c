"""Which rank runs where, as launchers' files say it; free GPUs; groups of ranks."""

import json
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.cluster.slurm import read_free
from topodiag.evidence.interface import Blob
from topodiag.evidence.layout import rank_files
from topodiag.evidence.layout.rank_files import (
    read_groups,
    read_hostfile,
    read_map,
    read_rankfile,
    read_slurm_hostfile,
    read_torchrun,
)
from topodiag.model.cluster import Demand, RankHosts
from topodiag.model.errors import InputError
from topodiag.placement.seats import keep_free, take_out
from topodiag.words.node_sets import NodeSetError

READERS: dict[str, Callable[[Blob], RankHosts]] = {
    "hostfile": read_hostfile, "rankfile": read_rankfile, "slurm": read_slurm_hostfile, "torchrun": read_torchrun,
    "map": read_map,
}  # fmt: skip


def hosts(read: Callable[[Blob], RankHosts], text: str) -> list[str]:
    rank_hosts = read(Blob("file", text.encode()))
    return [rank_hosts.hosts[number] for number in rank_hosts.host.tolist()]


def refused(read: Callable[[Blob], object], text: str) -> str:
    with pytest.raises(InputError) as caught:
        read(Blob("file", text.encode()))
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- ranks ----------------------------------------------------------------------------------------------------


@examples("reader", "text", "ranks")
def test_ranks_are_on_the_hosts_that_a_file_of_a_launcher_names(reader: str, text: str, ranks: list[str]) -> None:
    assert hosts(READERS[reader], text) == ranks


def test_hosts_without_numbers_stand_for_all_their_gpus() -> None:
    assert read_hostfile(Blob("file", b"b\na\n")).whole


def test_a_map_names_the_gpu_of_every_rank() -> None:
    rows = [{"rank": 1, "host": "a", "gpu": 3}, {"rank": 0, "host": "b", "gpu": 7, "nic": "mlx5_7"}]
    rank_hosts = read_map(Blob("map", json.dumps({"map": rows, "gain_percent": 3}).encode()))
    assert (rank_hosts.hosts, rank_hosts.host.tolist(), rank_hosts.gpu.tolist()) == (("b", "a"), [0, 1], [7, 3])


@examples("reader", "text", "says")
def test_bad_rank_files_are_one_clear_line(reader: str, text: str, says: str) -> None:
    assert says in refused((READERS | {"groups": read_groups})[reader], text)


_NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)


@given(st.lists(_NAMES, min_size=1, max_size=40))
def test_what_is_written_by_task_is_read_by_task(names: list[str]) -> None:
    assert hosts(read_slurm_hostfile, "\n".join(names)) == names
    ranked = "\n".join(f"rank {number}={name} slot={number}" for number, name in enumerate(names))
    assert hosts(read_rankfile, ranked) == names
    assert hosts(read_hostfile, "\n".join(f"{name}:1" for name in names)) == names


# --- free GPUs ------------------------------------------------------------------------------------------------


def test_only_what_the_file_names_is_free() -> None:
    usable = np.ones((3, 4), bool)
    free = read_free(Blob("free", b"# node gpus\nn[1-2] 0-1\nn3: slots=3\n"))
    ndarray = keep_free("free", usable, {"n1": 0, "n2": 1, "n3": 2}, free)
    assert ndarray.sum(axis=1).tolist() == [2, 2, 3]
    assert keep_free("free", usable, {"n1": 0, "n2": 1, "n3": 2}, {"n2": None}).sum(axis=1).tolist() == [0, 4, 0]


def test_nodes_and_single_gpus_are_taken_out() -> None:
    ndarray = take_out(np.ones((3, 4), bool), {"n1": 0, "n2": 1, "n3": 2}, ("n1", "n[2-3]:0,3"))
    assert ndarray.tolist() == [[False] * 4, [False, True, True, False], [False, True, True, False]]


@pytest.mark.parametrize(("word", "says"), [("n9", "'n9' is not in the cluster"), ("n1:7", "has no GPU 7")])
def test_what_cannot_be_taken_out_says_why(word: str, says: str) -> None:
    with pytest.raises(NodeSetError, match=says):
        take_out(np.ones((1, 4), bool), {"n1": 0}, (word,))


@examples("text", "says")
def test_a_bad_file_of_free_gpus_is_one_clear_line(text: str, says: str) -> None:
    assert says in refused(read_free, text)


# --- groups ---------------------------------------------------------------------------------------------------


def test_groups_are_those_that_stay_together_and_those_that_may_span() -> None:
    demands = read_groups(Blob("groups", b'together: [0-3, "4-7"]\nmay_span: [0-4/4, [1, 5]]\n'))
    assert [(demand.dimension, demand.keep_together, demand.groups.tolist()) for demand in demands] == [
        ("together", True, [[0, 1, 2, 3], [4, 5, 6, 7]]), ("may span", False, [[0, 4], [1, 5]]),
    ]  # fmt: skip


def test_groups_say_what_they_send_in_json_too() -> None:
    entry = {"name": "tp", "keep": "node", "collective": "all_gather", "bytes": 1e6, "calls": 320, "ranks": [[0, 1]]}
    (demand,) = read_groups(Blob("groups", json.dumps({"groups": [entry]}).encode()))
    assert (demand.dimension, demand.collective, demand.bytes, demand.calls) == ("tp", "all_gather", 1e6, 320)


def test_groups_of_unequal_size_are_several_demands_of_one_name() -> None:
    demands = read_groups(Blob("groups", b"may_span: [0-1, 2-4]"))
    assert [(demand.dimension, demand.size) for demand in demands] == [("may span", 2), ("may span", 3)]


def test_groups_that_are_nested_too_deeply_are_one_clear_line() -> None:
    assert "is nested too deeply" in refused(read_groups, "[" * 5000)


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30))


@pytest.mark.parametrize(
    "text",
    [
        BOMB + "together: *a29\n",
        BOMB.replace("a0:", "together:", 1),
        f"groups: [{{ranks: [0-3], keep: &b {'[' * 30}{']' * 30}}}]",
        "-  " * 100_000 + "x",
        "- " * 30_000 + "x",
        "\n".join(" " * n + "-" for n in range(3000)),
        "? " * 30_000 + "x",
        "{" * 100_000,
        '{"a":' * 100_000,
    ],
)
def test_bombs_are_refused_in_one_short_line(text: str) -> None:
    assert len(refused(read_groups, text)) < 200


@pytest.mark.parametrize("read", [read_hostfile, read_rankfile, read_slurm_hostfile, read_torchrun])
def test_a_binary_file_is_one_clear_line(read: Callable[[Blob], RankHosts]) -> None:
    with pytest.raises(InputError, match="bin: is a binary file"):
        read(Blob("bin", b"\x7fELF\x02\x00\xff node1"))


# --- files of groups: what they may name, counted before it is made -------------------------------------------


def groups(text: str) -> tuple[Demand, ...]:
    return read_groups(Blob("groups.yaml", text.encode()))


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
        assert "members together" in refused(read_groups, text)
        assert tracemalloc.get_traced_memory()[1] < 300 << 20
    finally:
        tracemalloc.stop()


def test_families_that_repeat_their_ranks_by_alias_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_files, "MAX_MEMBERS", 100_000)
    entries = "".join(f"  - {{name: f{n}, ranks: *a}}\n" for n in range(20))
    assert "members together" in refused(read_groups, f"groups:\n  - {{name: tp, ranks: &a [0-9999]}}\n{entries}")


@pytest.mark.parametrize("number", ["9" * 5000, "0x" + "f" * 5000, "1" * 4301, "1e5000"])
def test_a_rank_or_a_size_of_thousands_of_digits_is_one_clear_line(number: str) -> None:
    assert "is no rank" in refused(read_groups, f"together: [[0, {number}]]\n")
    assert "is no number of bytes" in refused(read_groups, f"groups:\n  - {{name: a, ranks: [0-1], bytes: {number}}}\n")


def test_a_long_list_of_ranks_in_one_text_is_read_to_its_end() -> None:
    (demand,) = groups("together: ['" + ",".join(map(str, range(30_000))) + "']\n")
    assert demand.groups.shape == (1, 30_000)
