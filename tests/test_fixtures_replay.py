"""Every captured machine replays to exactly its expected findings: no misses, no extras."""

import json
from pathlib import Path

import pytest

from tests.scanned import node_at, scanned
from topodiag.evidence.assemble.graph import gpu_vertex, nic_vertex
from topodiag.evidence.intake.collected import fixture_path, fixtures
from topodiag.model.links import LinkKind
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Node
from topodiag.model.paths import edges_of_ways, paths_from, way_of

NAMES = fixtures()
SMI_AS_NCCL = {"PIX": PathType.PIX, "PXB": PathType.PXB, "PHB": PathType.PHB, "NODE": PathType.PHB, "SYS": PathType.SYS}


OF_AMD = ("XGMI", "PCIE")


def pcie_type(node: Node, one: str, other: str) -> PathType | None:
    """The path type over PCIe alone between two vertices: what `topo -mp` shows, with NODE as PHB."""
    links = (link for link in node.links if link.kind not in (LinkKind.NVLINK, LinkKind.C2C))
    path = paths_from(one, edges_of_ways(map(way_of, links))).get(other)
    return path.type if path is not None else None


def expected(name: str) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((fixture_path(name) / "expected.json").read_text())
    return loaded


def test_the_required_machines_are_there() -> None:
    assert len(NAMES) >= 14


@pytest.mark.parametrize("name", NAMES)
def test_findings_are_exactly_the_expected_ones(name: str) -> None:
    result = scanned(f"fixture:{name}")
    records = [
        {
            "id": finding.id,
            "severity": str(finding.severity),
            "gpus": list(finding.where.gpus),
            "nics": list(finding.where.nics),
            "links": list(finding.where.links),
        }
        for finding in result.findings
    ]
    wanted = expected(name)["findings"]
    assert isinstance(wanted, list)

    def key(entry: dict[str, object]) -> str:
        return json.dumps(entry, sort_keys=True)

    assert sorted(records, key=key) == sorted(wanted, key=key)


@pytest.mark.parametrize("name", NAMES)
def test_every_check_answers_as_the_machine_was_made(name: str) -> None:
    result = scanned(f"fixture:{name}")
    assert {outcome.check: outcome.status.value for outcome in result.outcomes} == expected(name)["statuses"]


@pytest.mark.parametrize("name", NAMES)
def test_no_reader_and_no_check_failed(name: str) -> None:
    result = scanned(f"fixture:{name}")
    assert [line.why for line in result.unread if "reader failed" in line.why] == []
    assert [outcome.why for outcome in result.outcomes if "the check failed" in outcome.why] == []


@pytest.mark.parametrize("name", NAMES)
def test_path_types_equal_topo_m_where_both_exist(name: str) -> None:
    """NV# is NVL; other words are the type over PCIe alone (NCCL may go NVB, C2C, P2C or PXN instead), but XGMI and
    PCIE of AMD's tools, which say nothing of the tree.

    A device whose NUMA node is -1 is left out: NCCL puts all of them below one CPU (PHB), nvidia-smi says SYS.
    """
    node: Node = node_at(f"fixture:{name}")
    vertices = {gpu.label: gpu_vertex(gpu) for gpu in node.gpus} | {nic.name: nic_vertex(nic) for nic in node.nics}
    owners = {gpu.label: gpu.bus_id for gpu in node.gpus} | {nic.name: nic.bus_id for nic in node.nics}
    homeless = {name for name, bus_id in owners.items() if bus_id is not None and node.hung_from(bus_id) < 0}
    for (a, b), cell in node.smi_matrix.items():
        if not a.startswith("GPU") or cell.value is None or homeless & {a, b}:
            continue
        if cell.value.startswith("NV"):
            assert node.paths[a, b].type is PathType.NVL, (a, b)
        elif (
            cell.value not in OF_AMD
            and node.links
            and any(link.a == vertices[a] and link.b.startswith(("pci:", "cpu:")) for link in node.links)
        ):
            assert pcie_type(node, vertices[a], vertices[b]) is SMI_AS_NCCL[cell.value], (a, b, cell.value)


def test_a_fixture_folder_is_complete() -> None:
    for name in NAMES:
        place: Path = fixture_path(name)
        assert (place / "about.txt").read_text().strip(), name
