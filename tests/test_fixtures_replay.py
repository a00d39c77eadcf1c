"""Captured machines, made-up jobs and topology files replay to exactly what they were made for."""

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.scanned import node_at, scanned
from topodiag.app.case.jobs import LogOptions
from topodiag.app.logs import logs as diagnose_logs
from topodiag.app.topo import check_topology
from topodiag.checks.topo.file import FileRefused
from topodiag.evidence.assemble.graph import gpu_vertex, nic_vertex
from topodiag.evidence.intake.collected import fixture_path, fixtures
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.links import LinkKind
from topodiag.model.nccl_enums import PathType
from topodiag.model.nccl_versions import NEWEST, OLDEST, spell_versions
from topodiag.model.node import Node
from topodiag.model.paths import edges_of_ways, paths_from, way_of
from topodiag.model.result import Result

NAMES = fixtures()
SMI_AS_NCCL = {"PIX": PathType.PIX, "PXB": PathType.PXB, "PHB": PathType.PHB, "NODE": PathType.PHB, "SYS": PathType.SYS}


OF_AMD = ("XGMI", "PCIE")


def pcie_type(node: Node, one: str, other: str) -> PathType | None:
    """The path type over PCIe alone between two vertices: what `topo -mp` shows, with NODE as PHB."""
    links = (link for link in node.links if link.kind not in (LinkKind.NVLINK, LinkKind.C2C))
    path = paths_from(one, edges_of_ways(map(way_of, links))).get(other)
    return path.type if path is not None else None


def expected(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    return loaded


def records(values: Iterable[dict[str, Any]]) -> list[str]:
    """Findings in an order of their own."""
    return sorted(json.dumps(value, sort_keys=True) for value in values)


def found(findings: Iterable[Finding], *parts: str) -> list[str]:
    """Findings by id, severity and the parts of these kinds that they are about."""
    return records(
        {"id": finding.id, "severity": str(finding.severity)}
        | {part: list(getattr(finding.where, part)) for part in parts}
        for finding in findings
    )


def test_the_required_machines_are_there() -> None:
    assert len(NAMES) >= 14


@pytest.mark.parametrize("name", NAMES)
def test_findings_are_exactly_the_expected_ones(name: str) -> None:
    findings = scanned(f"fixture:{name}").findings
    assert found(findings, "gpus", "nics", "links") == records(expected(fixture_path(name))["findings"])


@pytest.mark.parametrize("name", NAMES)
def test_every_check_answers_as_the_machine_was_made(name: str) -> None:
    result = scanned(f"fixture:{name}")
    assert {outcome.check: outcome.status.value for outcome in result.outcomes} == expected(fixture_path(name))[
        "statuses"
    ]


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


JOBS = Path(__file__).resolve().parents[1] / "fixtures" / "jobs"
JOB_NAMES = sorted(path.name for path in JOBS.iterdir() if path.is_dir())


@cache
def diagnosed(name: str) -> Result:
    return diagnose_logs([str(JOBS / name / "logs")], options=LogOptions(workers=1))


def test_the_required_jobs_are_there() -> None:
    assert len(JOB_NAMES) >= 8


@pytest.mark.parametrize("name", JOB_NAMES)
def test_the_warnings_and_errors_are_exactly_the_expected_ones(name: str) -> None:
    pairs = {
        (finding.id, str(finding.severity))
        for finding in diagnosed(name).findings
        if finding.severity >= Severity.WARNING
    }
    assert pairs == {(finding["id"], finding["severity"]) for finding in expected(JOBS / name)["findings"]}


@pytest.mark.parametrize("name", JOB_NAMES)
def test_every_rank_is_on_its_host_and_gpu(name: str) -> None:
    (job,) = diagnosed(name).jobs
    assert job.world_size == expected(JOBS / name)["world_size"]
    ranks = [{"rank": r.rank, "host": r.host, "gpu": r.nvml_dev, "bus_id": r.bus_id} for r in job.ranks]
    assert ranks == expected(JOBS / name)["ranks"]


@pytest.mark.parametrize("name", JOB_NAMES)
def test_communicators_have_their_members(name: str) -> None:
    (job,) = diagnosed(name).jobs
    pairs = sorted((comm.color, comm.ranks.tolist()) for comm in job.communicators)
    stuck = name == "init-hang"
    wanted = sorted((comm["color"], comm["ranks"]) for comm in expected(JOBS / name)["communicators"])
    if stuck:
        wanted = [(color, [rank if rank != 13 else -1 for rank in ranks]) for color, ranks in wanted]
    assert pairs == wanted


def test_a_finding_names_file_and_line() -> None:
    (finding,) = [finding for finding in diagnosed("port-error-cascade").findings if finding.id == "JOB005"]
    origin = finding.evidence[0]
    assert "port error" in Path(origin.source).read_text().splitlines()[origin.line - 1]
    assert 11 in finding.where.ranks


FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "topo"
FILES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


def refusing(name: str) -> list[int]:
    """The versions that refuse the file; without a last one, up to the newest that is known."""
    first, last = expected(FOLDER / name)["refused"] or (0, -1)
    return list(range(first, (NEWEST if last is None else last) + 1))


def file_of(name: str) -> Path:
    return FOLDER / name / "topo.xml"


@cache
def checked(name: str) -> Result:
    against = expected(FOLDER / name)["against"]
    if against is not None:
        against = str(file_of(against.removeprefix("topo:"))) if against.startswith("topo:") else f"fixture:{against}"
    return check_topology(str(file_of(name)), against=against)


def test_the_known_traps_are_there() -> None:
    assert {"gpu-without-nvlink", "h200-slower-file"} <= set(FILES)
    assert len(FILES) >= 20


@pytest.mark.parametrize("name", FILES)
def test_findings_of_a_file_are_exactly_the_expected_ones(name: str) -> None:
    assert found(checked(name).findings, "gpus", "nics") == records(expected(FOLDER / name)["findings"])


@pytest.mark.parametrize("name", FILES)
def test_checks_are_silent_or_in_doubt_where_the_file_was_made_so(name: str) -> None:
    statuses = {outcome.check: outcome for outcome in checked(name).outcomes}
    for check in expected(FOLDER / name)["silent"]:
        assert statuses[check].status in {Status.CLEAN, Status.NOT_APPLICABLE}, statuses[check]
    for check in expected(FOLDER / name)["unknown"]:
        assert statuses[check].status is Status.UNKNOWN, statuses[check]


@pytest.mark.parametrize("name", FILES)
def test_no_check_failed_on_it(name: str) -> None:
    assert [outcome.why for outcome in checked(name).outcomes if "the check failed" in outcome.why] == []


@pytest.mark.parametrize("name", [name for name in FILES if expected(FOLDER / name)["against"] is None])
def test_it_is_refused_by_exactly_the_versions_that_it_was_made_for(name: str) -> None:
    node = node_at(str(file_of(name)))
    file = node.nccl_file
    assert file is not None
    refused = []
    for minor in range(OLDEST, NEWEST + 1):
        outcome = FileRefused().judge(replace(node, nccl_file=replace(file, asked=(minor,))), ())
        if outcome.status is Status.FINDING:
            refused.append(minor)
    assert refused == refusing(name)


@pytest.mark.parametrize("name", [name for name in FILES if refusing(name)])
def test_without_a_version_all_are_asked_and_those_that_refuse_are_named(name: str) -> None:
    (finding,) = [finding for finding in checked(name).findings if finding.id == "TOP001"]
    assert finding.message.startswith(f"NCCL {spell_versions(refusing(name))} refuse ")


@pytest.mark.parametrize("name", [name for name in FILES if expected(FOLDER / name)["lines"]])
def test_the_finding_names_the_line_at_fault(name: str) -> None:
    lines = file_of(name).read_text().splitlines()
    first = expected(FOLDER / name)["findings"][0]["id"]
    (finding,) = [finding for finding in checked(name).findings if finding.id == first]
    named = [lines[origin.line - 1] for origin in finding.evidence if origin.line is not None]
    for wanted in expected(FOLDER / name)["lines"]:
        assert any(wanted in line for line in named), named


def test_a_file_that_slows_the_node_down_is_told_with_what_no_file_would_give() -> None:
    (finding,) = checked("h200-slower-file").findings
    assert "slower than no file" in finding.message
    assert finding.cost.gbs_lost > 100


def test_a_nic_at_a_wrong_place_is_named_beside_the_gpu_that_lacks_it() -> None:
    (finding,) = checked("misplaced-nic").findings
    assert finding.fix[0].startswith("in the file mlx5_0 stands below no GPU's switch")


@pytest.mark.parametrize("name", FILES)
def test_a_folder_of_a_file_is_complete(name: str) -> None:
    assert (FOLDER / name / "about.txt").read_text().strip()
