"""The JSON is one object of the published schema, stable to the byte, and never says 0 for unknown."""

import json
from importlib.resources import files

import jsonschema
import pytest

from tests.printed import written
from tests.report import machines
from tests.valid import assert_valid
from topodiag.model.result import Result
from topodiag.report.registry import report

SCHEMA = json.loads((files("topodiag.report") / "schema" / "result-1.0.schema.json").read_text())


def rendered(result):
    return written(report("json"), result)


def parsed(result):
    return json.loads(rendered(result))


@pytest.mark.parametrize(
    "make", [machines.healthy, machines.sick, machines.without_gpus, machines.only_matrix, machines.large, Result]
)
def test_every_kind_of_result_is_valid(make):
    assert_valid(parsed(make()), SCHEMA)


def test_the_schema_notices_a_missing_key():
    broken = parsed(machines.sick())
    del broken["findings"][0]["expected"]
    with pytest.raises(jsonschema.ValidationError):
        assert_valid(broken, SCHEMA)


def test_equal_results_give_equal_bytes():
    assert rendered(machines.sick()) == rendered(machines.sick())
