import gzip
import json
from pathlib import Path

import pytest

from benchmarks.rccl_agreement import CORPUS, differences, predicted
from tests.nccl.rccl.machines import mi300x
from topodiag.evidence.nccl_xml import read_file
from topodiag.model.node import Node
from topodiag.nccl.predict import predict
from topodiag.nccl.prediction import Channels, Prediction

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
