"""One question, one answer: what NCCL accepts, finds, sets up and would run on equal nodes of one topology."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topodiag
from tests.nccl.small_trees import GEN5, cpu, element, gpu, host, nic, nvlink, pci, to_gpu
from topodiag.model.nccl_tree import Element, NcclFile, Refusal
from topodiag.model.nccl_versions import NEWEST, UnknownVersionError, assumption, spell_version
from topodiag.model.node import Node
from topodiag.nccl.connect.communicator import Member
from topodiag.nccl.predict import MOST_RANKS, SIZES, predict, predict_job, predict_tree
from topodiag.nccl.prediction import Prediction, VirtualNic


def hopper(gpus: int = 8) -> Element:
    """GPUs on an NVSwitch, half of them per socket, each with a NIC of 400 Gb/s below its PCIe switch."""
    parts = [slot(at) for at in range(1, gpus + 1)]
    return host(cpu(0, *parts[: gpus // 2]), cpu(1, *parts[gpus // 2 :]))


def slot(at: int, **net: object) -> Element:
    """A PCIe switch with a GPU and its NIC."""
    card = gpu(f"{at}1", nvlink("0000:f5:00.0", 18), sm=90, speed=GEN5, dev=at - 1)
    return pci(f"{at}0", card, nic(f"{at}2", 400000, speed=GEN5, **net), speed=GEN5)  # type: ignore[arg-type]


def pair() -> Element:
    return host(cpu(0, gpu("11", to_gpu("12", 4)), gpu("12", to_gpu("11", 4))))


def node(tree: Element, *refusals: Refusal) -> Node:
    return Node("here", nccl_file=NcclFile("topo.xml", tree, refusals))


def summary(prediction: Prediction) -> list[tuple[object, ...]]:
    return [(g.pattern, g.channels, g.bw_intra, g.bw_inter, g.type_intra, g.type_inter) for g in prediction.graphs]


def test_eight_hoppers_on_one_node_are_the_worked_example() -> None:
    prediction = predict(node(hopper()), version="2.28.9")
    assert (prediction.accepted, prediction.ranks, prediction.nccl_nodes, prediction.version) == (True, 8, 1, "2.28.9")
    assert (prediction.max_bw, prediction.total_bw) == (370.8, 370.8)
    assert summary(prediction) == [
        (4, 12, 30.0, 30.0, "NVL", "PIX"),
        (1, 12, 30.0, 30.0, "NVL", "PIX"),
        (5, 8, 40.0, 60.0, "NVL", "PIX"),
    ]
    assert prediction.channels is not None
    assert (prediction.channels.coll, prediction.channels.nvls, prediction.channels.p2p_per_peer) == (24, 16, 32)
    latency, bandwidth = prediction.tuning["AllReduce"]["Ring"]["Simple"]
    assert (round(latency, 1), round(bandwidth, 1)) == (56.0, 205.7)


def test_two_nodes_meet_over_the_nics() -> None:
    prediction = predict_tree(hopper(), nodes=2)
    assert (prediction.ranks, prediction.nccl_nodes, prediction.max_bw) == (16, 2, 48.0)
    assert summary(prediction)[0] == (4, 8, 48.0, 48.0, "NVL", "PIX")
    assert prediction.graphs[0].orders[0][0].startswith("NET/")
    assert prediction.paths["GPU/0-11000"]["NET/0-1"] == (5, 48.0, "PXN")


def test_one_host_can_be_two_nodes_to_nccl() -> None:
    prediction = predict_tree(hopper(), env={"NCCL_P2P_DISABLE": "1"})
    assert (prediction.ranks, prediction.nodes, prediction.nccl_nodes) == (8, 1, 2)


def test_choices_cover_the_sweep_of_every_collective() -> None:
    prediction = predict_tree(hopper())
    assert [choice.bytes for choice in prediction.choices] == list(SIZES) * 5
    assert (SIZES[0], SIZES[-1]) == (8, 8 << 30)
    kinds = ["AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce"]
    assert [choice.collective for choice in prediction.choices[::31]] == kinds
    few = predict_tree(hopper(), sizes=[1 << 20])
    assert [choice.bytes for choice in few.choices] == [1 << 20] * 5


def test_settings_change_the_answer() -> None:
    plain, rings = predict_tree(hopper()), predict_tree(hopper(), env={"NCCL_ALGO": "Ring", "NCCL_MAX_NCHANNELS": "4"})
    assert {choice.algorithm for choice in rings.choices} == {"Ring"}
    assert {choice.algorithm for choice in plain.choices} > {"Ring"}
    assert rings.channels is not None
    assert rings.channels.coll == 4


def test_speeds_have_no_digits_of_single_precision() -> None:
    slow = host(cpu(0, gpu("11"), nic("12", 25000)))
    graph = predict_tree(slow, nodes=2).graphs[0]
    assert (graph.bw_intra, graph.bw_inter) == (3.0, 3.0)
    predicted_graph = predict_tree(host(cpu(0, gpu("11"), nic("12", 20000))), nodes=2).graphs[0]
    assert predicted_graph.bw_inter == 2.4


def test_a_refusal_of_the_parser_is_an_answer_for_the_versions_that_refuse() -> None:
    tab = Refusal("tab", "XML Parse : expected >", line=3, column=7, since=18, until=27)
    prediction = predict(node(hopper(), tab), version="2.27")
    refused = (False, "XML Parse : expected >", 3, ())
    assert (prediction.accepted, prediction.why, prediction.line, prediction.graphs) == refused
    assert predict(node(hopper(), tab), version="2.28").accepted


def one_sided(line: int) -> Element:
    tree = host(cpu(0, gpu("11", to_gpu("12", 4)), gpu("12")))
    return replace(tree, children=(replace(tree.children[0], line=line),))


def test_a_rejection_by_the_graph_is_an_answer_with_nccls_words() -> None:
    prediction = predict_tree(one_sided(2))
    assert not prediction.accepted
    assert prediction.why.startswith("Failed to find reverse path")
    assert (prediction.channels, prediction.choices, prediction.tuning) == (None, (), {})


def test_a_missing_attribute_is_told_with_its_line_even_in_a_tree_equal_to_an_earlier_one() -> None:
    def broken(line: int) -> Element:
        lacking = element("pci", element("gpu", sm=80), line=line, busid="0000:11:00.0", link_width=16)
        return host(cpu(0, element("pci", lacking, line=line - 1, busid="0000:10:00.0", vendor="0x1")))

    first, second = predict_tree(broken(4)), predict_tree(broken(9))
    assert broken(4) == broken(9)
    assert not first.accepted
    assert "class" in first.why
    assert second.line == first.line + 5


def test_no_gpu_is_a_refusal() -> None:
    prediction = predict_tree(host(cpu(0, nic("12"))))
    assert not prediction.accepted
    assert prediction.why


def test_an_unknown_version_is_the_callers_fault() -> None:
    with pytest.raises(UnknownVersionError):
        predict(node(hopper()), version="2.17")
    with pytest.raises(UnknownVersionError):
        predict_tree(hopper(), version="1.0")


def test_a_version_newer_than_all_known_decides_as_the_newest_and_says_so() -> None:
    newest, newer = (predict_tree(hopper(), version=spell_version(minor)) for minor in (NEWEST, NEWEST + 1))
    assert (newest.graphs, newest.channels, newest.tuning) == (newer.graphs, newer.channels, newer.tuning)
    assert newest.assumed == ()
    assert newer.assumed == (assumption(newer.version),)


def test_a_number_of_nodes_below_one_is_the_callers_fault() -> None:
    with pytest.raises(ValueError, match="0 nodes"):
        predict_tree(pair(), nodes=0)


def test_more_ranks_than_any_job_has_are_refused() -> None:
    assert not predict_tree(pair(), nodes=MOST_RANKS).accepted


def test_thousands_of_nodes_are_answered() -> None:
    prediction = predict_tree(hopper(), nodes=4096)
    assert (prediction.ranks, prediction.nccl_nodes) == (32768, 4096)


def test_the_same_question_is_answered_from_memory() -> None:
    prediction = predict_tree(pair(), nodes=2)
    assert predict_tree(pair(), nodes=2) is prediction
    assert predict_tree(pair(), nodes=2, env={"PATH": "/bin"}) is prediction
    assert predict_tree(pair(), nodes=2, env={"NCCL_ALGO": "Ring"}) is not prediction
    assert predict_tree(pair(), nodes=3) is not prediction


def test_a_node_without_a_file_is_predicted_from_what_is_known_of_it() -> None:
    known = topodiag.diagnose(["fixture:dgx-h100-healthy"]).nodes[0]
    prediction = predict(known, nodes=1)
    assert known.nccl_file is None
    assert summary(prediction)[0] == (4, 12, 30.0, 30.0, "NVL", "PIX")


def test_terms_lead_from_links_to_bandwidth_and_only_when_asked() -> None:
    assert predict_tree(hopper(), nodes=2).terms == ()
    prediction = predict_tree(hopper(), nodes=2, explain=True)
    terms = {term.name: term for term in prediction.terms}
    assert terms["NVLink of a GPU"].value == "370.8 GB/s"
    assert "18 links x 20.6" in terms["NVLink of a GPU"].formula
    assert (terms["maxBw"].value, terms["totalBw"].value) == ("48 GB/s", "370.8 GB/s")
    assert "speed 48, number 1 of 17" in terms["ring channels"].formula
    assert terms["runtime channels"].value == "16"
    assert "2 nodes" in terms["agreed channels"].formula
    largest = next(c for c in reversed(prediction.choices) if c.collective == "AllReduce")
    assert terms["AllReduce"].value.startswith(f"{largest.algorithm} {largest.protocol}")
    assert {"AllReduce: busBw", "AllReduce: algBw", "AllReduce: latency"} <= set(terms)


def test_terms_say_when_channels_were_doubled_and_when_none_was_found() -> None:
    doubled = {term.name: term for term in predict_tree(hopper(), explain=True).terms}
    assert "speed 60" in doubled["ring channels"].formula
    assert "shared by two channels" in doubled["ring channels"].formula
    stuck = {term.name: term for term in predict_tree(pair_without_network(), nodes=2, explain=True, whole=True).terms}
    assert "fallback" in stuck["ring channels"].formula


def pair_without_network() -> Element:
    return host(cpu(0, gpu("11"), gpu("12")))


@st.composite
def odd_trees(draw: st.DrawFn) -> Element:
    """Small trees with attributes missing, wrong or absurd, and elements where NCCL does not expect them."""
    values = st.sampled_from(["", "0", "-1", "90", "0x060400", "16", "32.0 GT/s PCIe", "9" * 30, "x", "0000:11:00.0"])

    def attributes(*names: str) -> list[tuple[str, str]]:
        return [(name, draw(values)) for name in names if draw(st.integers(0, 5))]

    def gpu_part(at: int) -> Element:
        inner = Element("nvlink", tuple(attributes("target", "count", "tclass")))
        return gpu(f"{at:02x}", inner, sm=draw(st.sampled_from([70, 80, 90, 100])))

    parts = [gpu_part(at) for at in range(draw(st.integers(0, 3)))]
    parts.append(Element("pci", tuple(attributes("busid", "class", "link_speed", "link_width")), (nic("40"),)))
    cpus = [Element("cpu", tuple(attributes("numaid", "arch", "vendor", "familyid", "modelid")), tuple(parts))]
    if draw(st.booleans()):
        cpus.append(cpu(1, nic("41", draw(st.sampled_from([0, -1, 100000])))))
    return host(*cpus)


@given(odd_trees(), st.integers(1, 3), st.sampled_from(["2.18", "2.21", "2.27", "2.28", "2.30", "2.31", "2.32"]))
def test_any_tree_is_answered_without_an_exception(tree: Element, nodes: int, version: str) -> None:
    prediction = predict_tree(tree, nodes=nodes, version=version, explain=True)
    assert prediction.accepted or prediction.why
    if prediction.accepted:
        assert prediction.channels is not None
        assert prediction.nccl_nodes >= nodes or prediction.ranks < nodes


def test_the_package_itself_offers_the_question() -> None:
    import topodiag.nccl  # noqa: PLC0415

    assert topodiag.nccl.predict is predict


def test_nodes_that_only_sockets_join_have_no_price() -> None:
    """NCCL would count a channel of 0.1 GB/s that no search found."""
    tree = host(cpu(0, gpu("11"), gpu("12")))
    prediction = predict_tree(tree, nodes=2)
    assert (prediction.accepted, prediction.no_nic, prediction.nccl_nodes) == (True, True, 2)
    assert (prediction.graphs, prediction.choices, prediction.channels) == ((), (), None)
    assert not predict_tree(tree).no_nic
    assert not predict_tree(host(cpu(0, gpu("11"), nic("12"))), nodes=2).no_nic
    mixed = predict_job([(tree, ()), (tree, ())], [Member(at, at, "0000:11:00.0") for at in range(2)])
    assert (mixed.no_nic, mixed.choices) == (True, ())


def test_virtual_nics_are_named_with_what_their_ports_carry() -> None:
    prediction = predict_tree(host(cpu(0, gpu("11"), nic("12", nets=2, port=1))), nodes=2)
    assert prediction.virtual_nics == (VirtualNic("NET/0-2", "mlx5_12_0+mlx5_12_1", 50.0),)
    assert prediction.graphs[0].orders[0][0] == "NET/0-2"


def test_ranks_stand_on_gpus_by_their_numbers_so_that_those_without_a_nic_come_by_rank() -> None:
    """GPU 0 brings the switch of GPU 1's NIC before the switch of its own sibling."""
    tree = host(cpu(0, pci("01", gpu("11", dev=1)), pci("02", gpu("12", dev=0)), pci("03", nic("13"))))
    prediction, whole = predict_tree(tree, nodes=2), predict_tree(tree, nodes=2, whole=True)
    assert prediction.graphs[0].orders != whole.graphs[0].orders


def test_settings_of_what_is_not_followed_are_named() -> None:
    assert predict_tree(hopper(), env={"NCCL_IB_RAIL_POLICY": "CX9:FLIP"}).assumed == (
        "NCCL_IB_RAIL_POLICY is not followed: rails that NCCL gives ConnectX-9",
    )
    assert predict_tree(hopper(), env={"NCCL_CTA_POLICY": "0", "NCCL_ALGO": "Ring"}).assumed == ()
    assert predict_tree(hopper(), env={"NCCL_IB_SORT_MERGE_NICS": "1"}).assumed == ()
    (said,) = predict_tree(hopper(), env={"NCCL_IB_SORT_MERGE_NICS": "0"}).assumed
    assert said == "NCCL_IB_SORT_MERGE_NICS is not followed: merged ports out of order"


@pytest.mark.parametrize(
    ("device", "version", "more", "said"),
    [
        ("0x1025", "2.32.3", {}, True),
        ("0x1025", "2.32.3", {"rail": 0, "plane": 1}, False),
        ("0x1025", "2.31.2", {}, False),
        ("0x1023", "2.32.3", {}, False),
    ],
)
def test_rails_that_nccl_gives_connectx_9_are_named_where_it_does(
    device: str, version: str, more: dict[str, int], said: bool
) -> None:
    net = element("nic", element("net", name="mlx5_0", speed=800000, port=1, guid="0x1", gdr=1, **more))
    card = pci("12", net, class_="0x020700", vendor="0x15b3", device=device)
    prediction = predict_tree(host(cpu(0, gpu("11"), card)), nodes=2, version=version)
    assert any("ConnectX-9" in sentence for sentence in prediction.assumed) is said


@pytest.mark.parametrize(("version", "said"), [("2.26", False), ("2.27", True), ("2.32.3", True)])
def test_kernels_of_registered_windows_are_named_as_left_out(version: str, said: bool) -> None:
    assert ("symmetric kernels" in predict_tree(pair(), version=version).left_out) is said


@pytest.mark.parametrize(
    ("version", "ports", "crosses"),
    [("2.31.2", (1, 2), True), ("2.32.3", (1, 1), True), ("2.32.3", (1, 2), False)],
)
def test_ports_of_another_number_are_another_plane_from_2_32_on(
    version: str, ports: tuple[int, int], crosses: bool
) -> None:
    switches = [slot(at, port=port, guid=hex(at)) for at, port in enumerate(ports, 1)]
    prediction = predict_tree(host(cpu(0, *switches)), nodes=2, version=version, env={"NCCL_CROSS_NIC": "1"})
    first, *_, last = prediction.graphs[0].orders[0]
    assert (first != last) is crosses
