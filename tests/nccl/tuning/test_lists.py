"""NCCL_ALGO and NCCL_PROTO: what they leave, and which texts NCCL refuses."""

from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.tuning_shapes import h100
from tests.tables import examples
from topodiag.nccl.graph.graph import CommShape
from topodiag.nccl.settings import read_settings
from topodiag.nccl.tuning.tuning import tuning_table
from topodiag.nccl.tuning.tuning_constants import COLLECTIVES, PROTOCOLS
from topodiag.nccl.tuning.tuning_lists import allowed

LISTS = st.text(st.sampled_from("^,;: ") | st.characters(min_codepoint=1, max_codepoint=0x2FFF), max_size=30)


def left(shape: CommShape, collective: str, **env: str) -> set[tuple[str, str]]:
    """The combinations with a bandwidth."""
    rows = tuning_table(shape, read_settings(env, shape.minor))[collective]
    return {(algorithm, protocol) for algorithm, row in rows.items() for protocol, cell in row.items() if cell[1] > 0}


def fault(minor: int, **env: str) -> str:
    return allowed(read_settings(env, minor), minor).fault


@examples("minors", "collective", "env", "far", "algorithms", "protocols")
def test_what_lists_leave(
    *, minors: list[int], collective: str, env: dict[str, str], far: bool | None, algorithms: set[str] | None,
    protocols: dict[str, bool] | set[str] | None,
) -> None:  # fmt: skip
    """By versions, within a node, or between two whose NICs are `far`: all algorithms and all protocols, or some of the
    protocols of rings and whether they are on."""
    for minor in minors:
        shape = h100(minor, 2, inter_type="SYS") if far else h100(minor)
        made = left(shape, collective, **env)
        assert algorithms is None or {algorithm for algorithm, _ in made} == algorithms
        of_rings = {protocol for algorithm, protocol in made if algorithm == "Ring"}
        if isinstance(protocols, dict):
            assert {name: name in of_rings for name in protocols} == protocols
        else:
            assert protocols is None or {protocol for _, protocol in made} == set(protocols)


def test_an_empty_text_is_no_list_since_2_24_and_an_empty_list_before() -> None:
    assert left(h100(28), "AllReduce", NCCL_PROTO="") == left(h100(28), "AllReduce")
    assert left(h100(18), "AllReduce", NCCL_PROTO="") == set()


@examples("text", "words")
def test_since_2_24_nccl_does_not_start_on_a_word_that_it_does_not_know(text: str, words: str) -> None:
    assert fault(28, NCCL_ALGO=text) == words
    assert left(h100(28), "AllReduce", NCCL_ALGO=text) == set()
    assert fault(23, NCCL_ALGO=text) == ""


@given(st.integers(18, 30), LISTS, LISTS)
def test_any_text_is_a_list_or_is_refused(minor: int, algo: str, proto: str) -> None:
    made = allowed(read_settings({"NCCL_ALGO": algo, "NCCL_PROTO": proto}, minor), minor)
    assert not (made.fault and minor < 24)
    assert {collective for collective, _ in made.protocols} <= set(COLLECTIVES)
    assert {protocol for _, protocol in made.protocols} <= set(PROTOCOLS)
