"""The JSON of `topo predict` is of the published schema, with the keys and units of the reference."""

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from tests.tables import examples
from tests.valid import assert_valid
from topodiag.app.case.topology import open_topology, predict_topology
from topodiag.report.documents.write_json import plain
from topodiag.report.topo.predict import predict_json

SCHEMA = json.loads((files("topodiag.report") / "schema" / "predict-1.0.schema.json").read_text())
FOLDER = Path(__file__).resolve().parents[3] / "fixtures" / "topo"


def made(name, **asked):
    topology = open_topology(str(FOLDER / name / "topo.xml"))
    return json.loads(json.dumps(plain(predict_json(predict_topology(topology, **asked)))))


def test_the_published_schema_is_itself_valid():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@examples("name", "asked")
def test_every_kind_of_prediction_is_valid(name, asked):
    assert_valid(made(name, **asked), SCHEMA)


def test_the_schema_notices_a_missing_key_and_a_path_without_its_type():
    broken = made("dgx-h100-healthy")
    del broken["graphs"][0]["orders"]
    with pytest.raises(jsonschema.ValidationError):
        assert_valid(broken, SCHEMA)
    broken = made("dgx-h100-healthy")
    row = next(iter(broken["paths"].values()))
    row[next(iter(row))] = [1, 2.0]
    with pytest.raises(jsonschema.ValidationError):
        assert_valid(broken, SCHEMA)


def test_the_keys_are_those_that_tools_rely_on():
    found = made("dgx-h100-healthy", nodes=2)
    assert {"accepted", "why", "system", "paths", "graphs", "channels", "tuning", "choices"} <= set(found)
    assert found["paths"]["GPU/0-1b000"]["NET/0-0"][1:] == [48.0, "PXB"]
    assert set(found["channels"]) == {"coll", "collnet", "nvls", "p2p", "p2p_per_peer"}
    assert {"collective", "bytes", "algorithm", "protocol"} <= set(found["choices"][0])
    latency, gbs = found["tuning"]["AllReduce"]["Ring"]["Simple"]
    assert 0 < latency < 1000
    assert 0 < gbs < 1000


def test_a_refusal_says_why_and_where():
    found = made("prolog")
    assert (found["accepted"], found["line"]) == (False, 1)
    assert "expected >" in found["why"]
    assert found["channels"] is None
