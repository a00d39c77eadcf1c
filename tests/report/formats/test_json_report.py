"""The JSON is one object of the published schema, stable to the byte, and never says 0 for unknown."""

import io
import json
from dataclasses import replace
from importlib.resources import files

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report import machines
from tests.valid import assert_valid
from topodiag.model.finding import Cost
from topodiag.model.result import Result
from topodiag.report.interface import Style
from topodiag.report.registry import report

SCHEMA = json.loads((files("topodiag.report") / "schema" / "result-1.0.schema.json").read_text())


def rendered(result):
    stream = io.StringIO()
    report("json")(result, stream, Style())
    return stream.getvalue()


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


def test_the_gpu_has_the_keys_that_tools_rely_on():
    gpu = parsed(machines.sick())["facts"]["nodes"][0]["gpus"][3]
    assert gpu["nvlinks"] == {"active": 12, "expected": 18, "gbps_each": 26.562}
    assert gpu["pcie"] == {"width": 16, "max_width": 16, "gen": 5, "max_gen": 5}
    assert (gpu["index"], gpu["sm"], gpu["numa"]) == (3, 90, 0)


def test_the_nic_has_its_role_and_why():
    nic = parsed(machines.sick())["facts"]["nodes"][0]["nics"][0]
    assert (nic["role"], nic["role_why"], nic["rate_gbps"], nic["state"]) == (
        "compute", "InfiniBand, near a GPU", 400.0, "ACTIVE",
    )  # fmt: skip


def test_the_matrix_is_by_label():
    matrix = parsed(machines.healthy())["facts"]["nodes"][0]["matrix"]
    assert matrix["GPU0"]["GPU1"] == "NV18"
    assert matrix["mlx5_0"]["GPU0"] == "PXB"


def test_unknown_is_null():
    gpu = parsed(machines.only_matrix())["facts"]["nodes"][0]["gpus"][0]
    assert gpu["nvlinks"] == {"active": None, "expected": None, "gbps_each": None}
    assert gpu["pcie"]["width"] is None


def test_a_finding_carries_evidence_cost_and_its_page():
    found = parsed(machines.sick())["findings"][0]
    assert found["docs"] == "topodiag explain NVL001"
    assert found["cost"] == {
        "gbs_lost": 159.4,
        "share": 0.333,
        "text": "of the GPU's NVLink bandwidth in one direction",
    }
    assert found["evidence"][0]["line"] == 71


def test_what_was_not_observed_is_in_it():
    made = parsed(machines.sick())
    assert made["not_observed"] == [
        {"what": "dmesg", "why": "permission denied: kernel.dmesg_restrict is 1", "needs_root": True}
    ]
    assert made["unread_count"] == 1


@given(st.text(), st.floats())
def test_any_text_and_any_number_give_strict_json_in_ascii(text, value):
    node = replace(machines.h100(), host=text)
    found = machines.finding(message=text, cost=Cost(value, value, text))
    made = rendered(Result(nodes=(node,), findings=(found,)))
    assert made.isascii()

    def refuse(name):
        raise AssertionError(name)

    assert json.loads(made, parse_constant=refuse)["findings"][0]["message"] == text
