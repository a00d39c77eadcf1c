"""PCI003: AER errors and replays."""

from typing import Any

import pytest

from tests.checks.bent import Built, machine
from tests.checks.networks import with_pci
from tests.checks.nodes import only
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.pcie.errors import PcieErrors
from topodiag.model.node import Node


def quiet() -> Node:
    """A machine whose functions all count, and counted nothing."""
    return machine("ib_h100", {"pci/all/counters/aer_correctable_total": [0]})


@examples("node", "changes", "wanted")
def test_errors_of_pcie_functions(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(errors(machine(node, changes, quiet=quiet, empty=lambda: Node("empty"))), wanted) == wanted


"""GPU4 of the machine."""


def errors(node: Node) -> Any:
    return PcieErrors().judge(node, ())


@pytest.mark.parametrize(("grown", "found"), [(31, False), (32, True)])
@pytest.mark.parametrize("name", ["aer_correctable_total", "replay"])
def test_corrected_errors_are_judged_by_the_specified_bit_error_rate(name: str, grown: int, found: bool) -> None:
    limit = "at most 31 in 60 s (bit error rate 1e-12 on Gen5 x16)"
    wanted: Wanted = {"severity": "WARNING", "expected": limit} if found else "clean"
    node = machine("quiet", {f"pci/GPU4/counters/{name}": [1000, 1000 + grown, 60.0]}, quiet=quiet)
    assert shown(errors(node), wanted) == wanted


def test_functions_below_one_port_do_not_tell_its_errors_twice() -> None:
    node = machine("quiet", {"pci/above GPU4/counters/aer_fatal_total": [0, 1]}, quiet=quiet)
    twin, parent = str(node.nics[0].bus_id), str(node.pci[str(node.gpus[4].bus_id)].parent)
    assert only(errors(with_pci(node, twin, parent=parent))).where.links == (parent,)
