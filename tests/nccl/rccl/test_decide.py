"""RCCL's decisions: a machine as known sets describe it, its rings and its links; the corpus of RCCL's own answers."""

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.rccl_agreement import CORPUS, differences, predicted
from tests.nccl.rccl.machines import mi300x
from tests.tables import examples
from topodiag.evidence.nccl_xml import read_file
from topodiag.model.node import Node
from topodiag.nccl.graph.xgmi import all_by_xgmi, neighbours
from topodiag.nccl.predict import predict
from topodiag.nccl.prediction import Channels, Prediction
from topodiag.nccl.rccl.decide import decided
from topodiag.nccl.rccl.match import CHORDAL_RINGS
from topodiag.nccl.rccl.models import all_to_all, layout_of, orders_of, rome_models

TRUTHS = sorted((CORPUS / "truth").glob("m*.json.gz")) if CORPUS.is_dir() else []


def asked(data: bytes, nodes: int = 1, **env: str) -> Prediction:
    return predict(Node("n", nccl_file=read_file(data, "n.xml")), nodes=nodes, version="2.21", env=env, sizes=())


def test_a_healthy_mi300x_takes_its_known_rings() -> None:
    prediction = asked(mi300x())
    assert prediction.by == "RCCL 2.21.5"
    assert prediction.decided_by.startswith("the known set of rings 38 ")
    assert prediction.total_bw == 7 * 48.0
    ring = prediction.graphs[0]
    assert (ring.channels, ring.bw_intra, ring.type_intra) == (28, 12.0, "XGMI")
    assert prediction.channels == Channels(56, 56, 0, 64, 8)
    assert prediction.paths["GPU/0-10000"]["GPU/0-80000"] == (1, 48.0, "XGMI")


def test_a_lost_pair_leaves_no_known_set_and_fewer_gbs() -> None:
    prediction = asked(mi300x(lost=[(2, 5)]))
    assert prediction.decided_by == "the search"
    assert prediction.paths["GPU/0-30000"]["GPU/0-60000"][2] != "XGMI"
    whole, broken = (
        prediction.graphs[0].channels * prediction.graphs[0].bw_intra for prediction in (asked(mi300x()), prediction)
    )
    assert broken < whole


def test_known_rings_can_be_switched_off() -> None:
    assert asked(mi300x(), RCCL_MODEL_MATCHING_DISABLE="1").decided_by == "the search"


def test_nics_stay_out_of_a_node_whose_gpus_xgmi_joins() -> None:
    prediction, several = asked(mi300x(nics=8)), asked(mi300x(nics=8), nodes=2)
    assert not any(label.startswith("NET") for label in prediction.paths)
    assert any(label.startswith("NET") for label in several.paths)
    assert several.channels.coll <= 64


def test_another_version_is_said_to_be_taken_for_the_one_that_is_followed() -> None:
    node = Node("n", nccl_file=read_file(mi300x(), "n.xml"))
    prediction = predict(node, version="2.27", sizes=())
    assert prediction.version == "2.21.5"
    assert prediction.assumed == ("the rules of RCCL 2.27 are not known here: taken to decide as 2.21.5",)


def test_a_gpu_without_architecture_is_refused_in_rccls_words() -> None:
    prediction = asked(mi300x().replace(b' gcn="gfx942"', b"", 1))
    assert not prediction.accepted
    assert prediction.why == "Attribute gcn of node gpu not found"


@pytest.mark.skipif(not TRUTHS, reason="the corpus is not beside the checkout")
@pytest.mark.parametrize("path", TRUTHS, ids=lambda path: path.name.partition(".")[0])
def test_decisions_are_those_of_rccl(path: Path) -> None:
    truth = json.loads(gzip.decompress(path.read_bytes()))
    prediction = predicted(truth)
    assert prediction.accepted
    assert list(differences(prediction, truth)) == []


def test_a_machine_is_described_as_the_known_sets_are() -> None:
    layout = layout_of(decided(read_file(mi300x(), "n.xml").tree, nodes=1, env={}).system)
    assert layout.pattern == "4040"
    assert layout.numa == (0, 0, 0, 0, 1, 1, 1, 1)
    assert layout.most_links == 7
    assert layout.links[0] == (0, 1, 1, 1, 1, 1, 1, 1)


def test_eight_gpus_that_each_lack_one_peer_are_a_chord() -> None:
    far = [(0, 7), (1, 6), (2, 5), (3, 4)]
    made = decided(read_file(mi300x(lost=far, gcn="gfx908"), "n.xml").tree, nodes=1, env={})
    assert made.by.decided_by == "chordal"
    assert made.ring.channels == len(CHORDAL_RINGS)
    assert made.ring.intra[0] == [0, 1, 2, 3, 5, 4, 7, 6]


def test_every_known_set_is_whole() -> None:
    models = rome_models()
    assert [model.index for model in models] == list(range(44))
    for model in models:
        assert {len(row) for row in model.links} == {model.gpus} == {len(model.links)}
        assert len(model.numa) == model.gpus
        assert len(model.distance) == model.nics
        assert all(len(row) == model.gpus for row in model.distance)
        assert len(model.pattern) == 2 * model.cpus
        assert orders_of(model.rings, model.gpus, model.nics), model.name


def test_the_rings_of_mi300x_ask_for_a_link_between_every_two() -> None:
    assert all_to_all(rome_models()[38]) == 1
    assert all_to_all(rome_models()[0]) == 0


@examples("ring", "gpus", "nics", "found")
def test_a_ring_counts_where_it_fits(ring: str, gpus: int, nics: int, found: list[list[int]]) -> None:
    assert orders_of((ring,), gpus, nics) == found


def test_gpus_are_joined_over_gpus_between_them() -> None:
    system = decided(read_file(mi300x(lost=[(2, 5)]), "n.xml").tree, nodes=1, env={}).system
    assert 5 not in neighbours(system)[2]
    assert all_by_xgmi(system)
    assert not all_by_xgmi(system, between=0)
