"""The tuning table: NCCL's model by hand for known machines, what switches a combination off, and what holds always."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.tuning_shapes import graph, h100, one_gpu_nodes, shapes
from tests.tables import examples
from topodiag.nccl.graph.graph import BALANCED_TREE, TREE, CommShape
from topodiag.nccl.prediction import TuningTable
from topodiag.nccl.settings import Settings, read_settings
from topodiag.nccl.tuning.tuning import explain_entry, tuning_table
from topodiag.nccl.tuning.tuning_constants import ALGORITHMS, COLLECTIVES, PROTOCOLS, constants
from topodiag.nccl.tuning.tuning_lists import allowed
from topodiag.words.units import in_gbs

NOTHING_SET = Settings()


def given_env(minor: int, **env: str) -> Settings:
    return read_settings(env, minor)


def table(shape: CommShape, **env: str) -> TuningTable:
    return tuning_table(shape, given_env(shape.minor, **env))


def entry(shape: CommShape, collective: str, algorithm: str, protocol: str, **env: str) -> tuple[float, float]:
    return table(shape, **env)[collective][algorithm][protocol]


def machine(
    minor: int = 28, nodes: int = 1, *, inter_type: str = "PIX", vendor: int = 1, one_gpu: bool = False,
    with_collnet: bool = False, **changes: Any,
) -> CommShape:  # fmt: skip
    shape = one_gpu_nodes(minor, nodes) if one_gpu else h100(minor, nodes, inter_type=inter_type, vendor=vendor)
    if with_collnet:
        shape = replace(shape, collnet=True, graphs={**shape.graphs, 2: shape.graphs[0], 4: shape.graphs[0]})
    return replace(shape, **changes)


@examples("minors", "shape", "combination", "env", "latency", "bandwidth")
def test_the_figures_of_known_machines(
    *,
    minors: list[int],
    shape: dict[str, Any],
    combination: str,
    env: dict[str, str] | None,
    latency: float | None,
    bandwidth: float | None,
) -> None:
    """One node of 8 H100 has 12 channels of 30 GB/s, rings of 360 GB/s; more of them with 8 NICs of 50 GB/s each have 8
    channels of 48 GB/s."""
    for minor in minors:
        found = entry(machine(minor, **shape), *combination.split(), **env or {})
        wanted = [value if asked is None else asked for value, asked in zip(found, (latency, bandwidth), strict=True)]
        assert found == pytest.approx(wanted, abs=0.05), minor


def test_the_tree_pattern_of_all_ranks_counts_since_2_26() -> None:
    own = {0: graph(12, 30), 1: graph(12, 30, pattern=BALANCED_TREE)}
    before, since = (replace(h100(minor), graphs=own, max_tree_pattern=TREE) for minor in (25, 26))
    assert entry(before, "AllReduce", "Tree", "Simple")[1] > entry(since, "AllReduce", "Tree", "Simple")[1]


def test_the_latency_of_the_nic_counts_twice_where_data_is_flushed() -> None:
    slow = h100(28, 4)
    slow = replace(slow, graphs={**slow.graphs, 0: replace(slow.graphs[0], latency_inter=3.0)})
    for protocol, more in (("Simple", 6 * 2 * 3.0), ("LL", 6 * 3.0)):
        quick = entry(h100(28, 4), "AllReduce", "Ring", protocol)[0]
        assert entry(slow, "AllReduce", "Ring", protocol)[0] == pytest.approx(quick + more)


def test_above_two_nodes_the_bandwidth_between_nodes_counts() -> None:
    for nodes, bw in ((2, 48), (3, 24)):
        shape = h100(28, nodes)
        shape = replace(shape, graphs={**shape.graphs, 0: graph(8, 48, inter=24, same=0)})
        assert entry(shape, "AllGather", "Ring", "Simple")[1] == pytest.approx(8 * bw * 8 * nodes / (8 * nodes - 1))


def test_pat_had_no_latencies_of_its_own_up_to_2_27() -> None:
    old = entry(h100(27, 4), "AllGather", "PAT", "Simple", NCCL_PAT_ENABLE="1")[0]
    new = entry(h100(28, 4), "AllGather", "PAT", "Simple", NCCL_PAT_ENABLE="1")[0]
    assert new - old == pytest.approx(2 * 14 / 3.5)


# What is switched off.


@examples("cases")
def test_what_is_switched_off(cases: list[tuple[dict[str, Any], str, dict[str, str], bool]]) -> None:
    for shape, combination, env, on in cases:
        assert (entry(machine(**shape), *combination.split(), **env)[1] > 0) is on, (shape, combination, env)


# What holds always.


@given(
    shapes(), st.dictionaries(st.sampled_from(("NCCL_ALGO", "NCCL_PROTO", "NCCL_NET_OVERHEAD")), st.text(max_size=20))
)
def test_any_settings_give_a_table_of_all_combinations(shape: CommShape, env: dict[str, str]) -> None:
    values_by_name = tuning_table(shape, read_settings(env, shape.minor))
    assert tuple(values_by_name) == COLLECTIVES
    for rows in values_by_name.values():
        assert tuple(rows) == (ALGORITHMS if shape.minor >= 23 else ALGORITHMS[:-1])
        for row in rows.values():
            assert tuple(row) == PROTOCOLS
            assert all(bandwidth >= 0 for _, bandwidth in row.values())


@given(shapes())
def test_no_algorithm_is_expected_to_carry_more_than_its_channels(shape: CommShape) -> None:
    """Of the bytes of an operation a ring and a tree send no fewer than they are: bus bandwidth is at most that of the
    channels. A switch that adds (NVLS, CollNet) and a gathering through all NICs at once can save a half."""
    made, n = tuning_table(shape, NOTHING_SET), shape.nranks
    factor = {"AllReduce": 2 * (n - 1) / n, "AllGather": (n - 1) / n, "ReduceScatter": (n - 1) / n}
    for collective, rows in made.items():
        for algorithm, number in (("Ring", 0), ("Tree", 1), ("PAT", 1)):
            carried = shape.graphs[number].channels * max(shape.graphs[number].bw_intra, shape.graphs[number].bw_inter)
            for _, bandwidth in rows.get(algorithm, {}).values():
                assert bandwidth * factor.get(collective, 1) <= carried * 1.000001


@given(shapes(), st.floats(1.1, 4))
def test_more_bandwidth_on_the_wires_is_never_less_in_the_table(shape: CommShape, times: float) -> None:
    faster = replace(
        shape,
        graphs={
            number: replace(one, bw_intra=one.bw_intra * times, bw_inter=one.bw_inter * times)
            for number, one in shape.graphs.items()
        },
    )
    slow, fast = tuning_table(shape, NOTHING_SET), tuning_table(faster, NOTHING_SET)
    for collective, rows in slow.items():
        for algorithm, row in rows.items():
            for protocol, (latency, bandwidth) in row.items():
                assert fast[collective][algorithm][protocol][0] == latency
                assert fast[collective][algorithm][protocol][1] >= bandwidth * 0.999999


@given(shapes(), st.sampled_from(COLLECTIVES), st.sampled_from(ALGORITHMS), st.sampled_from(PROTOCOLS))
def test_the_explanation_ends_in_the_figures_of_the_table(
    shape: CommShape, collective: str, algorithm: str, protocol: str
) -> None:
    pair = tuning_table(shape, NOTHING_SET)[collective].get(algorithm, {}).get(protocol, (0.0, 0.0))
    terms = explain_entry(shape, NOTHING_SET, collective, algorithm, protocol)
    last = {term.name: term.value for term in terms}
    if terms[-1].value in {"off", "not used"}:
        assert pair[1] == 0
        assert terms[-1].formula
    else:
        assert last["latency"] == f"{pair[0]:.1f} us"
        assert last.get("algBw", "0 GB/s") == in_gbs(pair[1])


def test_every_step_of_a_derivation_is_told() -> None:
    terms = explain_entry(h100(28, 4), NOTHING_SET, "AllReduce", "Tree", "LL128")
    assert [(term.name, term.value) for term in terms] == [
        ("bandwidth per channel", "48 GB/s"),
        ("busBw", "384 GB/s"),
        ("tree", "288 GB/s"),
        ("LL128", "232 GB/s"),
        ("simple tree", "197.2 GB/s"),
        ("algBw", "98.6 GB/s"),
        ("base", "14.0 us"),
        ("step in the node", "1.2 us"),
        ("step between nodes", "8.5 us"),
        ("latency", "65.5 us"),
    ]
    assert terms[2].formula == "min(0.92 x busBw, 8 channels x 36)"
    off = explain_entry(h100(28), given_env(28, NCCL_PROTO="^LL"), "AllReduce", "Ring", "LL")
    assert off[-1].formula == "NCCL_PROTO=^LL leaves it out"
    assert explain_entry(h100(28), NOTHING_SET, "AllReduce", "Butterfly", "LL")[0].value == "not used"


def test_a_version_uses_the_newest_constants_that_it_has() -> None:
    """GPUs newer than a version count as the newest that it knows."""
    for minor, cap in ((24, 36.7), (25, 73.4), (28, 73.4), (29, 40.0)):
        assert constants(minor).ring_ll128[-1][0] == cap
    hopper, blackwell = h100(24), replace(h100(24), min_sm=100, max_sm=100)
    assert entry(hopper, "AllReduce", "Ring", "Simple") == entry(blackwell, "AllReduce", "Ring", "Simple")


def test_one_rank_has_an_empty_table() -> None:
    comm_shape = replace(h100(28), nranks=1, local_ranks=(1,))
    assert {cell for rows in table(comm_shape).values() for row in rows.values() for cell in row.values()} == {
        (0.0, 0.0)
    }


# --- NCCL_ALGO and NCCL_PROTO: what they leave, and which texts NCCL refuses ----------------------------------

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
