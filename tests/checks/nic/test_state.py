"""NIC001 and NIC002: ports that are down, ports that are slow."""

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import networks as network
from tests.checks.bent import Built, machine
from tests.checks.networks import DOWN, ib_h100, with_nic, with_port
from tests.checks.nodes import read, status
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.nic.rate import NicPortSlow
from topodiag.checks.nic.state import NicPortDown
from topodiag.model.devices import NicRole
from topodiag.model.node import Node
from topodiag.model.provenance import Fact


def down(node: Node) -> Any:
    return NicPortDown().judge(node, ())


def slow(node: Node, *peers: Node) -> Any:
    return NicPortSlow().judge(node, peers)


@pytest.mark.parametrize("check", [NicPortDown, NicPortSlow])
@pytest.mark.parametrize("role", [NicRole.STORAGE, NicRole.MANAGEMENT, NicRole.UNKNOWN])
def test_nics_that_do_not_carry_the_job_are_not_judged(check: Any, role: NicRole) -> None:
    node = with_nic(with_port(ib_h100(), 3, **DOWN), 3, role=role)
    assert status(check().judge(node, ())) == "clean"
    none = replace(node, nics=tuple(replace(nic, role=role) for nic in node.nics))
    assert status(check().judge(none, ())) == "not_applicable"


# --- NIC001 ---------------------------------------------------------------------------------------------------


def second_ports() -> Node:
    """Each device with a second port, which is down on the first device."""
    node = ib_h100()
    nics = tuple(replace(nic, ports=(nic.ports[0], network.port(400.0, "InfiniBand", 2))) for nic in node.nics)
    return machine("made", {"nics/0/ports/1": DOWN_NOW}, made=lambda: replace(node, nics=nics))


DOWN_NOW = {"state": "DOWN", "phys_state": "Polling", "rate_gbps": 10.0}


@examples("node", "changes", "wanted")
def test_ports_that_are_not_active(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(down(machine(node, changes, second_ports=second_ports)), wanted) == wanted


@examples("state", "phys", "kind", "remedy")
def test_the_remedy_fits_the_state(state: str, phys: str | None, kind: str, remedy: str) -> None:
    facts = {"state": read(state), "phys_state": read(phys) if phys else Fact()}
    finding = expect(down(with_port(ib_h100(), 0, **facts)), severity="ERROR")
    assert finding.message.endswith(kind)
    assert remedy in " ".join(finding.fix)


def test_different_faults_are_different_findings() -> None:
    node = with_port(with_port(ib_h100(), 1, **DOWN), 2, state=read("INIT"))
    assert [finding.where.nics for finding in down(node).findings] == [("mlx5_1",), ("mlx5_2",)]


# --- NIC002 ---------------------------------------------------------------------------------------------------


@examples("node", "changes", "wanted")
def test_ports_that_run_slowly(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(slow(machine(node, changes)), wanted) == wanted


def test_a_node_slower_than_the_same_nics_elsewhere_is_a_warning() -> None:
    node = with_port(ib_h100(), None, rate_gbps=read(200.0))
    outcome = slow(node, ib_h100(), replace(ib_h100(), host="gpu-002"))
    expect(outcome, severity="WARNING", expected="*16 ports of the same product on other nodes*")
