"""One question, one answer: what NCCL accepts, finds, sets up and would run on equal nodes of one topology."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topodiag
from tests.nccl.small_trees import cpu, element, gpu, grown, host, nic, pci, slot, to_gpu
from tests.tables import examples, parts
from topodiag.model.nccl_tree import Element, NcclFile, Refusal
from topodiag.model.nccl_versions import NEWEST, UnknownVersionError, assumption, spell_version
from topodiag.model.node import Node
from topodiag.nccl.connect.communicator import Member
from topodiag.nccl.predict import SIZES, predict, predict_job, predict_tree
from topodiag.nccl.prediction import Prediction


def hopper(gpus: int = 8) -> Element:
    """GPUs on an NVSwitch, half of them per socket, each with a NIC of 400 Gb/s below its PCIe switch."""
    parts = [slot(at) for at in range(1, gpus + 1)]
    return host(cpu(0, *parts[: gpus // 2]), cpu(1, *parts[gpus // 2 :]))


def pair() -> Element:
    return host(cpu(0, gpu("11", to_gpu("12", 4)), gpu("12", to_gpu("11", 4))))


def node(tree: Element, *refusals: Refusal) -> Node:
    return Node("here", nccl_file=NcclFile("topo.xml", tree, refusals))


def summary(prediction: Prediction) -> list[tuple[object, ...]]:
    return [(g.pattern, g.channels, g.bw_intra, g.bw_inter, g.type_intra, g.type_inter) for g in prediction.graphs]


def one_sided() -> Element:
    return host(cpu(0, gpu("11", to_gpu("12", 4)), gpu("12")))


def connectx(device: str, **rails: int) -> Element:
    """A GPU, and a NIC of 800 Gb/s by its device."""
    net = element("nic", element("net", name="mlx5_0", speed=800000, port=1, guid="0x1", gdr=1, **rails))
    card = pci("12", net, class_="0x020700", vendor="0x15b3", device=device)
    return host(cpu(0, gpu("11"), card))


def two_slots(*ports: int) -> Element:
    """Two GPUs with a NIC each, by the numbers of their ports."""
    return host(cpu(0, *(slot(at, port=port, guid=hex(at)) for at, port in enumerate(ports, 1))))


BUILDERS = {"hopper": hopper, "pair": pair, "one_sided": one_sided, "connectx": connectx, "two_slots": two_slots}


def shown(prediction: Prediction, wanted: dict[str, Any]) -> dict[str, Any]:
    """What a prediction has, with the summaries of its first graphs, the ends of its first channel, and words in the
    formula of a term, among what is `assumed` and what is left out."""
    sentences = {"assumes": prediction.assumed, "leaves_out": (prediction.left_out,)}
    terms = {term.name: term.formula for term in prediction.terms}
    have: dict[str, Any] = {}
    for name, own in wanted.items():
        if name == "summary":
            have[name] = [list(graph) for graph in summary(prediction)[: len(own)]]
        elif name == "ends":
            have[name] = [prediction.graphs[0].orders[0][at] for at in (0, -1)]
        elif name == "algorithms":
            have[name] = sorted({choice.algorithm for choice in prediction.choices})
        elif name == "formulas":
            have[name] = {term: [words for words in each if words in terms[term]] for term, each in own.items()}
        elif name in sentences:
            have[name] = {words: any(words in sentence for sentence in sentences[name]) for words in own}
        elif name == "begins":
            have[name] = prediction.why[: len(own)]
        else:
            have[name] = parts(getattr(prediction, name), own)
    return have


@examples("tree", "options", "wanted")
def test_what_is_predicted(tree: list[Any], options: dict[str, Any] | None, wanted: dict[str, Any]) -> None:
    assert shown(predict_tree(grown(tree, **BUILDERS), **(options or {})), wanted) == wanted


def test_choices_cover_the_sweep_of_every_collective() -> None:
    prediction = predict_tree(hopper())
    assert [choice.bytes for choice in prediction.choices] == list(SIZES) * 5
    assert (SIZES[0], SIZES[-1]) == (8, 8 << 30)
    kinds = ["AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce"]
    assert [choice.collective for choice in prediction.choices[::31]] == kinds
    few = predict_tree(hopper(), sizes=[1 << 20])
    assert [choice.bytes for choice in few.choices] == [1 << 20] * 5


def test_a_refusal_of_the_parser_is_an_answer_for_the_versions_that_refuse() -> None:
    tab = Refusal("tab", "XML Parse : expected >", line=3, column=7, since=18, until=27)
    prediction = predict(node(hopper(), tab), version="2.27")
    refused = (False, "XML Parse : expected >", 3, ())
    assert (prediction.accepted, prediction.why, prediction.line, prediction.graphs) == refused
    assert predict(node(hopper(), tab), version="2.28").accepted


def test_a_missing_attribute_is_told_with_its_line_even_in_a_tree_equal_to_an_earlier_one() -> None:
    def broken(line: int) -> Element:
        lacking = element("pci", element("gpu", sm=80), line=line, busid="0000:11:00.0", link_width=16)
        return host(cpu(0, element("pci", lacking, line=line - 1, busid="0000:10:00.0", vendor="0x1")))

    first, second = predict_tree(broken(4)), predict_tree(broken(9))
    assert broken(4) == broken(9)
    assert not first.accepted
    assert "class" in first.why
    assert second.line == first.line + 5


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


def test_ranks_stand_on_gpus_by_their_numbers_so_that_those_without_a_nic_come_by_rank() -> None:
    """GPU 0 brings the switch of GPU 1's NIC before the switch of its own sibling."""
    tree = host(cpu(0, pci("01", gpu("11", dev=1)), pci("02", gpu("12", dev=0)), pci("03", nic("13"))))
    prediction, whole = predict_tree(tree, nodes=2), predict_tree(tree, nodes=2, whole=True)
    assert prediction.graphs[0].orders != whole.graphs[0].orders
