"""Whose words a verdict speaks: AMD's for AMD's evidence, and that evidence of two makers is said."""

import json
from dataclasses import replace

import pytest

import topodiag
from tests.checks import nodes
from tests.verdict.judged import verdict
from topodiag.model.node import Node
from topodiag.model.result import Case
from topodiag.words.dialect import Maker

AMD = Node("mi-1", makers=frozenset({Maker.AMD}))
OF_TWO = "GPUs of two makers"


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        ((AMD,), False),
        ((replace(nodes.hgx_h100(), host="h-1"),), False),
        ((AMD, replace(nodes.hgx_h100(), host="h-1")), True),
    ],
)
def test_evidence_of_two_makers_is_said_with_their_nodes(hosts: tuple[Node, ...], said: bool) -> None:
    first = " ".join(verdict(case=Case(nodes=hosts)).first)
    assert (OF_TWO in first) is said
    assert ("NVIDIA: h-1" in first and "AMD: mi-1" in first) is said


def test_a_run_on_amd_is_not_measured_against_a_machine_of_nvidia() -> None:
    result = topodiag.diagnose(
        ["fixture:dgx-h100-healthy", "fixture:mi300x-gpu1-gpu5-no-xgmi"]
    )  # each node in its own words
    answer = json.loads(result.to_json())
    (cause,) = answer["verdict"]["causes"]
    assert cause["check"] == "NVL004"
    assert not any("nvidia" in step for step in cause["confirm"])
    assert OF_TWO in " ".join(answer["verdict"]["first"])
