"""Healthy machines of all makes give no warning and no error: users trust a tool until its first false alarm."""

from collections.abc import Callable

import pytest

from fixtures.generate.machine import Machine
from tests.healthy_machines import MACHINES, files_of
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.evidence.intake.bundle import from_memory
from topodiag.evidence.intake.reader import ReadNode, read_node
from topodiag.model.devices import NicRole
from topodiag.model.finding import Severity

C, S, M = NicRole.COMPUTE, NicRole.STORAGE, NicRole.MANAGEMENT
RAILS = dict.fromkeys((f"mlx5_{n}" for n in (0, 3, 4, 5, 6, 9, 10, 11)), C)
STORAGE = dict.fromkeys((f"mlx5_{n}" for n in (1, 2, 7, 8)), S)

ROLES: dict[str, dict[str, NicRole]] = {
    "azure_a100": dict.fromkeys((f"mlx5_ib{n}" for n in range(8)), C) | {"mlx5_an0": M},
    "aws_p5": {"rdmap65s0": C, "rdmap180s0": C, "ens32": M},
    "gcp_a3_mega": {"enp0s12": M, "eth1": M},
    "h200_ten_nics": RAILS | STORAGE,
    "storage_of_same_product": RAILS | STORAGE,
    "roce_bonds": {"mlx5_bond_0": C, "mlx5_bond_3": C, "eno1": M},
    "dgx2": {"mlx5_0": C, "mlx5_7": C, "enp6s0": M},
    "one_h100_pcie": {"mlx5_0": C, "eno1": M},
    "gh200": {"mlx5_0": C, "eno1": M},
    "vfio": RAILS | STORAGE,
    "slurm_two_of_eight": RAILS | STORAGE,
    "slurm_one_of_eight": RAILS | STORAGE,
    "slurm_two_of_mesh": dict.fromkeys((f"mlx5_{n}" for n in range(4)), C),
}
"""What some of their NICs are for. A GPU that the job cannot see still makes its neighbour a compute NIC."""


def read(make: Callable[[], Machine]) -> ReadNode:
    manifest, files = files_of(make())
    return read_node(from_memory("machine", manifest, files))


@pytest.mark.parametrize("make", MACHINES, ids=lambda make: make.__name__)
def test_a_healthy_machine_gives_no_warning_and_no_error(make: Callable[[], Machine]) -> None:
    node = read(make)
    outcomes = run(Subject.NODE, (node.node,))
    alarms = [
        (finding.id, finding.message)
        for outcome in outcomes
        for finding in outcome.findings
        if finding.severity > Severity.INFO
    ]
    assert alarms == []
    assert [outcome.why for outcome in outcomes if "the check failed" in outcome.why] == []
    assert [line.why for line in node.unread if "reader failed" in line.why] == []
    roles = {nic.name: nic.role for nic in node.node.nics}
    wanted = ROLES.get(make.__name__, {})
    assert {name: roles[name] for name in wanted} == wanted
