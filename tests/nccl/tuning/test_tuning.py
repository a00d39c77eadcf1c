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
from topodiag.words.units import in_gbs

NOTHING_SET = Settings()


def given_env(minor: int, **env: str) -> Settings:
    return read_settings(env, minor)


def table(shape: CommShape, **env: str) -> TuningTable:
    return tuning_table(shape, given_env(shape.minor, **env))


def entry(shape: CommShape, collective: str, algorithm: str, protocol: str, **env: str) -> tuple[float, float]:
    return table(shape, **env)[collective][algorithm][protocol]


def approx(latency: float, bandwidth: float) -> object:
    return pytest.approx((latency, bandwidth), abs=0.05)


# One node of 8 H100: 12 channels of 30 GB/s, rings of 360 GB/s.


@pytest.mark.parametrize("minor", range(21, 27))
def test_a_simple_ring_in_a_node_carries_all_its_channels(minor: int) -> None:
    assert entry(h100(minor), "AllReduce", "Ring", "Simple") == approx(8.4 + 14 * 3.4, 360 * 8 / 14)


@pytest.mark.parametrize("minor", range(21, 27))
def test_ll_is_capped_by_the_gpu_within_a_node(minor: int) -> None:
    assert entry(h100(minor), "AllReduce", "Ring", "LL") == approx(6.6 + 14 * 0.6, 141 * 8 / 14)


@pytest.mark.parametrize("minor", range(18, 31))
def test_ll128_loses_its_flags_of_the_ring_bandwidth(minor: int) -> None:
    assert entry(h100(minor), "AllReduce", "Ring", "LL128") == approx(14 + 14 * 1.9, 331.2 * 8 / 14)


@pytest.mark.parametrize(("minor", "latency"), [(18, 56), (21, 392), (22, 392), (23, 64.4), (28, 64.4)])
def test_a_simple_tree_is_slow_to_start_from_2_19_to_2_22(minor: int, latency: float) -> None:
    assert entry(h100(minor), "AllReduce", "Tree", "Simple") == approx(latency, 331.2 / 2)


def test_a_tree_of_the_simple_pattern_loses_15_percent() -> None:
    shape = replace(h100(28), max_tree_pattern=TREE)
    assert entry(shape, "AllReduce", "Tree", "Simple")[1] == pytest.approx(0.85 * 165.6)


def test_the_tree_pattern_of_all_ranks_counts_since_2_26() -> None:
    own = {0: graph(12, 30), 1: graph(12, 30, pattern=BALANCED_TREE)}
    before, since = (replace(h100(minor), graphs=own, max_tree_pattern=TREE) for minor in (25, 26))
    assert entry(before, "AllReduce", "Tree", "Simple")[1] > entry(since, "AllReduce", "Tree", "Simple")[1]


def test_nvls_was_five_sixths_of_its_links_and_is_its_efficiency_since_2_28() -> None:
    assert entry(h100(27), "AllReduce", "NVLS", "Simple") == approx(25, 8 * 40 * 5 / 6)
    assert entry(h100(28), "AllReduce", "NVLS", "Simple") == approx(25, 8 * (40 * 0.85 * 7 / 8 * 2) * 8 / 14)


# Four nodes of 8 H100 and 8 NICs of 50 GB/s: 8 channels of 48 GB/s.


def test_a_ring_over_nodes_waits_for_every_step_between_them() -> None:
    assert entry(h100(28, 4), "AllReduce", "Ring", "Simple") == approx(8.4 + 56 * 3.4 + 6 * 14, 384 * 32 / 62)


def test_two_steps_too_many_were_counted_up_to_2_22() -> None:
    assert entry(h100(22, 4), "AllReduce", "Ring", "Simple")[0] == pytest.approx(8.4 + 54 * 3.4 + 8 * 14)


def test_posting_to_the_network_takes_longer_on_amd() -> None:
    assert entry(h100(28, 4, vendor=2), "AllReduce", "Ring", "Simple")[0] == pytest.approx(8.4 + 56 * 6 + 6 * 14)
    assert entry(h100(28, 4), "AllReduce", "Ring", "LL", NCCL_NET_OVERHEAD="5000")[0] == pytest.approx(
        6.6 + 56 * 5 + 6 * 2.7
    )


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


def test_a_root_sends_once_round_unless_its_channels_differ() -> None:
    assert entry(h100(28), "Broadcast", "Ring", "Simple")[0] == pytest.approx(8.4 + 3.4)
    assert entry(h100(28, 2), "Broadcast", "Ring", "Simple")[0] == pytest.approx(8.4 + 16 * 14)


def test_pat_is_for_one_gpu_per_node_and_none_before_2_23() -> None:
    assert entry(one_gpu_nodes(28, 4), "AllGather", "PAT", "Simple") == approx(8 + 2 * 14 / 3.5 + 4 * 2.8, 36)
    assert entry(h100(28, 4), "AllGather", "PAT", "Simple") == (0, 0)
    assert entry(one_gpu_nodes(28, 4), "AllGather", "PAT", "Simple", NCCL_PAT_ENABLE="0") == (0, 0)
    assert "PAT" not in table(one_gpu_nodes(22, 4))["AllGather"]


def test_pat_had_no_latencies_of_its_own_up_to_2_27() -> None:
    old = entry(h100(27, 4), "AllGather", "PAT", "Simple", NCCL_PAT_ENABLE="1")[0]
    new = entry(h100(28, 4), "AllGather", "PAT", "Simple", NCCL_PAT_ENABLE="1")[0]
    assert new - old == pytest.approx(2 * 14 / 3.5)


# What is switched off.


def machine(
    minor: int = 28, nodes: int = 1, *, inter_type: str = "PIX", one_gpu: bool = False, with_collnet: bool = False,
    **changes: Any,
) -> CommShape:  # fmt: skip
    shape = one_gpu_nodes(minor, nodes) if one_gpu else h100(minor, nodes, inter_type=inter_type)
    if with_collnet:
        shape = replace(shape, collnet=True, graphs={**shape.graphs, 2: shape.graphs[0], 4: shape.graphs[0]})
    return replace(shape, **changes)


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
