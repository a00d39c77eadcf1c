"""Many names and numbers in few words, and back."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import topodiag
from topodiag.model.cpulist import parse_cpulist
from topodiag.words.units import (
    few,
    fold_hosts,
    fold_labels,
    fold_numbers,
    fold_runs,
    numbered,
    plural,
    runs,
    short_hosts,
)  # fmt: skip


def test_a_long_set_of_hosts_is_cut_behind_a_whole_name() -> None:
    texts = [f"gpu-{number:03d}" for number in range(1, 200, 7)]
    assert short_hosts(texts, 30) == "gpu-[001,008,015,022,029,…]"
    assert short_hosts(texts, 400) == fold_hosts(texts)
    assert short_hosts(["a.one", "b.two", "c.three"], 14) == "a.one,b.two, …"


def test_one_is_singular_and_all_else_plural() -> None:
    assert [plural(count, "link") for count in (0, 1, 2)] == ["0 links", "1 link", "2 links"]
    assert plural(2, "switch", "switches") == "2 switches"


def test_the_first_few_are_named_and_the_rest_is_counted() -> None:
    assert few(["a", "b"], 2) == "a, b"
    assert few(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert few(["a", "b", "c"], 2, "; ") == "a; b; and 1 more"


def test_neighbours_are_folded() -> None:
    assert fold_numbers([8, 0, 1, 2, 2]) == "0-2,8"
    assert fold_runs(["GPU0", "GPU1", "GPU2", "GPU5", "mlx5_0"]) == "GPU0-2, GPU5, mlx5_0"
    assert fold_labels(["GPU0", "mlx5_0", "GPU1", "GPU5"]) == "GPU0-1,5, mlx5_0"
    assert fold_labels([f"eth{n}x" for n in range(13)], most=2) == "eth0x, eth1x … (13 in all)"


def test_hosts_are_a_node_set_only_where_they_are_names() -> None:
    assert fold_hosts(["gpu-001", "gpu-002", "gpu-002"]) == "gpu-[001-002]"
    assert fold_hosts(["n_1", "n_2"]) == "n_[1-2]"
    assert fold_hosts(["a[1", "a]2"]) == "a[1, a]2"
    assert fold_hosts([]) == ""


@given(st.sets(st.integers(0, 4000), max_size=60))
def test_folded_numbers_are_read_back_as_they_were(numbers: set[int]) -> None:
    assert parse_cpulist(fold_numbers(numbers)) == numbers
    assert {number for low, high in runs(numbers) for number in range(low, high + 1)} == numbers


@given(st.lists(st.text(max_size=12), max_size=20))
def test_any_labels_can_be_folded(labels: list[str]) -> None:
    assert isinstance(fold_labels(labels), str)
    assert isinstance(fold_runs(labels), str)
    assert isinstance(fold_hosts(labels), str)


def test_numbers_of_one_noun_are_folded_behind_it() -> None:
    assert numbered("link", [3]) == numbered("link", [3, 3]) == "link 3"
    assert numbered("link", (5, 3, 4, 8)) == "links 3-5,8"


def test_no_other_module_forms_a_plural() -> None:
    code = Path(topodiag.__file__).parent
    by_hand = re.compile(r"\{'(?:s|es|ies)?' if [^\n{}]{1,60} else '(?:s|es|ies)?'\}")
    for path in code.rglob("*.py"):
        if path != code / "words" / "units.py":
            assert by_hand.search(path.read_text(encoding="utf-8")) is None, path
