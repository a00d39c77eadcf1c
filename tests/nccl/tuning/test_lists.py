"""NCCL_ALGO and NCCL_PROTO: what they leave, and which texts NCCL refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.tuning_shapes import h100
from tests.tables import examples
from topodiag.nccl.settings import read_settings
from topodiag.nccl.tuning.tuning import tuning_table
from topodiag.nccl.tuning.tuning_constants import COLLECTIVES, PROTOCOLS
from topodiag.nccl.tuning.tuning_lists import allowed

LISTS = st.text(st.sampled_from("^,;: ") | st.characters(min_codepoint=1, max_codepoint=0x2FFF), max_size=30)


def left(minor: int, collective: str, *, nodes: int = 1, **env: str) -> set[tuple[str, str]]:
    """The combinations with a bandwidth."""
    rows = tuning_table(h100(minor, nodes), read_settings(env, minor))[collective]
    return {(algorithm, protocol) for algorithm, row in rows.items() for protocol, cell in row.items() if cell[1] > 0}


def fault(minor: int, **env: str) -> str:
    return allowed(read_settings(env, minor), minor).fault


@pytest.mark.parametrize("minor", [19, 23, 24, 28])
def test_a_list_leaves_what_it_names_and_a_caret_leaves_the_rest(minor: int) -> None:
    assert {a for a, _ in left(minor, "AllReduce", NCCL_ALGO="ring")} == {"Ring"}
    assert {a for a, _ in left(minor, "AllReduce", NCCL_ALGO="^Ring,TREE")} == {"NVLS"}
    assert {p for _, p in left(minor, "Broadcast", NCCL_PROTO="LL,Simple")} == {"LL", "Simple"}


def test_since_2_24_a_list_can_be_for_one_collective() -> None:
    setting = "^LL128;allreduce:LL128"
    assert {p for _, p in left(28, "AllReduce", NCCL_PROTO=setting)} == {"LL128"}
    assert {p for _, p in left(28, "Broadcast", NCCL_PROTO=setting)} == {"LL", "Simple"}


def test_a_list_that_names_ll128_turns_it_on_where_nccl_would_not() -> None:
    far = h100(28, 2, inter_type="SYS")
    for text, on in (("", False), ("LL128", True), ("^Simple", True)):
        env = {"NCCL_PROTO": text} if text else {}
        table = tuning_table(far, read_settings(env, 28))
        assert (table["AllReduce"]["Ring"]["LL128"][1] > 0) is on


def test_up_to_2_18_rings_stay_for_all_but_all_reduce() -> None:
    assert {a for a, _ in left(18, "AllReduce", NCCL_ALGO="Tree")} == {"Tree"}
    assert {a for a, _ in left(18, "Broadcast", NCCL_ALGO="Tree")} == {"Ring"}


@pytest.mark.parametrize(("minor", "algorithms"), [(19, {"Ring"}), (23, {"Ring"}), (24, set())])
def test_rings_come_back_where_a_list_leaves_nothing_until_2_23(minor: int, algorithms: set[str]) -> None:
    assert {a for a, _ in left(minor, "Broadcast", NCCL_ALGO="Tree")} == algorithms


@pytest.mark.parametrize(("minor", "algorithms"), [(18, {"Ring", "Tree"}), (23, {"Ring", "Tree"}), (24, set())])
def test_a_list_of_collnet_alone_was_ignored_without_collnet(minor: int, algorithms: set[str]) -> None:
    assert {a for a, _ in left(minor, "AllReduce", NCCL_ALGO="CollNetChain")} == algorithms


@examples("text", "words")
def test_since_2_24_nccl_does_not_start_on_a_word_that_it_does_not_know(text: str, words: str) -> None:
    assert fault(28, NCCL_ALGO=text) == words
    assert left(28, "AllReduce", NCCL_ALGO=text) == set()
    assert fault(23, NCCL_ALGO=text) == ""


def test_an_empty_text_is_no_list_since_2_24_and_an_empty_list_before() -> None:
    assert left(28, "AllReduce", NCCL_PROTO="") == left(28, "AllReduce")
    assert left(18, "AllReduce", NCCL_PROTO="") == set()


@given(st.integers(18, 30), LISTS, LISTS)
def test_any_text_is_a_list_or_is_refused(minor: int, algo: str, proto: str) -> None:
    made = allowed(read_settings({"NCCL_ALGO": algo, "NCCL_PROTO": proto}, minor), minor)
    assert not (made.fault and minor < 24)
    assert {collective for collective, _ in made.protocols} <= set(COLLECTIVES)
    assert {protocol for _, protocol in made.protocols} <= set(PROTOCOLS)
