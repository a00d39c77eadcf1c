"""NET004 by logs: NICs far from their GPU, and connections that leave by one rail and arrive by another."""

from dataclasses import replace

import pytest

from tests.checks import jobs
from topodiag.checks.network.rails import FarNic
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.job import Process
from topodiag.model.nccl_enums import PathType
from topodiag.model.nccl_view import NcclSystem, SystemPath


def swap(row: dict[str, object]) -> dict[str, object]:
    """Send by a NIC of the other socket."""
    return row | {"net_dev": (int(str(row["net_dev"])) + 4) % 8} if "net_dev" in row else row


def test_a_far_nic_is_named_where_a_near_one_is_there() -> None:
    outcome = FarNic().judge(jobs.job(rows=[swap(row) for row in jobs.healthy_rows(2, 8, 8)]))
    assert outcome.findings[0].where.nodes == ("n0", "n1")
    assert "SYS" in outcome.findings[0].message
    assert "GPU0" in outcome.findings[0].where.gpus


def test_pxn_and_closest_nics_are_clean() -> None:
    assert FarNic().judge(jobs.job()).status is Status.CLEAN
    proxied = [swap(row) | {"proxy": 4} if "net_dev" in row else row for row in jobs.healthy_rows(2, 8, 8)]
    near = [{"rank": 0, "peer": 8, "via": jobs.INTER, "net_dev": 0, "direction": 1}]
    assert FarNic().judge(jobs.job(rows=proxied + near)).status is Status.CLEAN


def test_a_gpu_without_a_near_nic_uses_what_there_is() -> None:
    def far(host: int, system: NcclSystem) -> NcclSystem:
        paths = {
            (a, b): SystemPath(6, 20.0, PathType.SYS) if a.startswith("GPU") and b.startswith("NET") else path
            for (a, b), path in system.paths.items()
        }
        return replace(system, paths=paths)

    assert FarNic().judge(jobs.job(systems=far)).status is Status.CLEAN


def test_without_paths_the_distance_is_unknown() -> None:
    assert FarNic().judge(jobs.job(systems=lambda host, system: None)).status is Status.UNKNOWN


def crossing() -> list[dict[str, object]]:
    """What GPU0 of n0 sends by mlx5_0, its peer receives by mlx5_3."""
    records = jobs.healthy_rows(2, 8, 8)
    return [row | {"net_dev": 3} if row["rank"] == 0 and row.get("direction") == 2 else row for row in records]


def rails(**changes: object) -> list[Finding]:
    findings = FarNic().judge(jobs.job(**{"rows": crossing(), **changes})).findings  # type: ignore[arg-type]
    return [finding for finding in findings if "rails" in finding.message]


def test_a_connection_that_arrives_by_another_nic_crosses_rails() -> None:
    [finding] = rails()
    assert finding.severity is Severity.INFO
    assert finding.where.nics == ("mlx5_0", "mlx5_3")
    assert finding.where.ranks == (0, 8)
    assert str(finding.coverage) == "16 of 256 channels seen from both ends"
    assert rails(rows=jobs.healthy_rows(2, 8, 8)) == []


@pytest.mark.parametrize(("value", "severity"), [("0", Severity.WARNING), ("1", None), ("2", Severity.INFO)])
def test_the_setting_says_whether_rails_are_wanted(value: str, severity: Severity | None) -> None:
    assert [rail.severity for rail in rails(settings={"NCCL_CROSS_NIC": value})] == ([severity] if severity else [])


def test_nodes_that_list_other_nics_pxn_and_sends_are_not_compared() -> None:
    def other(rank: int, host: int, process: Process) -> Process:
        named = tuple(replace(hca, name=f"rocep{hca.index}s0") for hca in process.hcas)
        return replace(process, hcas=named) if host else process

    assert rails(process=other) == []
    assert rails(rows=[row | {"proxy": 1} for row in crossing()]) == []
    assert rails(rows=[row | {"conn": 1} for row in crossing()]) == []


def test_virtual_nics_are_named_by_their_ports() -> None:
    parts = jobs.renumbered()
    assert FarNic().judge(jobs.job(**parts)).status is Status.CLEAN
    far = [row | {"net_dev": 16 + int(str(row["net_dev"])) % 4} if "net_dev" in row else row for row in parts["rows"]]
    finding = FarNic().judge(jobs.job(**{**parts, "rows": far})).findings[0]
    assert "GPU4 over mlx5_0+mlx5_1 at SYS" in finding.message
    assert finding.expected == "mlx5_8+mlx5_9 behind the same PCIe switch, or PXN"
    assert finding.where.nics[:2] == ("mlx5_0", "mlx5_1")
    crossed = [
        row | {"net_dev": 19} if row["rank"] == 0 and row.get("direction") == 2 else row for row in parts["rows"]
    ]
    findings = FarNic().judge(jobs.job(**{**parts, "rows": crossed})).findings
    assert [finding.where.nics for finding in findings if "from mlx5_0+mlx5_1 to mlx5_6+mlx5_7" in finding.message] == [
        ("mlx5_0", "mlx5_1", "mlx5_6", "mlx5_7")
    ]
