"""What rules ask of a case: which machines it shows."""

import pytest

from topodiag.model.devices import Gpu
from topodiag.model.node import Node
from topodiag.model.provenance import Topic
from topodiag.model.result import Case
from topodiag.verdict.scene import Scene


@pytest.mark.parametrize(
    ("node", "shown"),
    [
        pytest.param(Node("out", nameless=True), False, id="rows of a program alone"),
        pytest.param(Node("out", nameless=True, topics=frozenset({Topic.GPUS})), True, id="a text that shows its GPUs"),
        pytest.param(Node("out", nameless=True, gpus=(Gpu(0),)), True, id="a text of its GPUs in rows"),
        pytest.param(Node("n0"), True, id="a host that is named"),
    ],
)
def test_rows_in_a_text_of_a_program_are_no_machine(node: Node, *, shown: bool) -> None:
    assert Scene(Case(nodes=(node,))).captured == ({node.host} if shown else frozenset())
