"""NET004 by logs: NICs far from their GPU, and connections that leave by one rail and arrive by another."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import jobs
from tests.checks.wanted import expect
from topodiag.checks.network import rails as job_rails
from topodiag.checks.network.rails import FarNic, both_ends
from topodiag.checks.shared.job.logs import hcas_by_host
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.job import Process
from topodiag.model.nccl_enums import PathType
from topodiag.model.nccl_view import NcclSystem


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
            (a, b): PathType.SYS if a.startswith("GPU") and b.startswith("NET") else path
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
    finding = expect(rails(), severity="INFO", nics=("mlx5_0", "mlx5_3"), ranks=(0, 8))
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


# --- both ends of a connection are brought together as if every sender was compared with every receiver -------

HOSTS, GPUS = ("n0", "n1", "n2"), 2
RANKS = len(HOSTS) * GPUS
ROW = st.fixed_dictionaries({
    "comm": st.integers(-1, 2), "rank": st.integers(0, RANKS - 1), "peer": st.integers(0, RANKS - 1),
    "conn": st.integers(-1, 1), "direction": st.integers(0, 2), "channels": st.integers(0, 7),
    "net_dev": st.integers(-1, 2), "proxy": st.sampled_from([-1, -1, -1, 2]), "via": st.sampled_from(["NET/IB", "SHM"]),
})  # fmt: skip


def job(rows: list[dict[str, Any]]) -> Any:
    """Three hosts, of which the last lists other devices than the first two."""
    document = jobs.job(len(HOSTS), GPUS, rows=[])
    processes = tuple(
        replace(process, hcas=(jobs.hca(0), jobs.hca(1), *((jobs.hca(2),) if process.host == "n2" else ())))
        for process in document.processes
    )
    return replace(document, processes=processes, connections=jobs.connections(rows, HOSTS, GPUS))


def compared(rows: list[dict[str, Any]]) -> tuple[int, int, list[tuple[int, int]], set[int]]:
    """Channels, crossed ones, the pairs that cross in the order of their connection, and their ranks."""

    def lists(rank: int) -> int:
        return 3 if HOSTS[rank // GPUS] == "n2" else 2

    def judged(row: dict[str, Any]) -> bool:
        across = row["rank"] // GPUS != row["peer"] // GPUS and row["via"] == "NET/IB"
        return across and row["comm"] >= 0 and row["net_dev"] >= 0 and row["proxy"] < 0 and row["conn"] != 1

    def key(row: dict[str, Any]) -> tuple[int, ...]:
        return row["comm"], row["rank"], row["peer"], row["conn"]

    total, crossed, pairs = 0, 0, []
    some = [at for at, row in enumerate(rows) if judged(row)]
    for a, b in product(some, some):
        one, other = rows[a], rows[b]
        alike = key(one) == key(other) and lists(one["rank"]) == lists(one["peer"])
        if not alike or (one["direction"], other["direction"]) != (1, 2):
            continue
        channels = (one["channels"] & other["channels"]).bit_count()
        total += channels
        if channels and one["net_dev"] != other["net_dev"]:
            crossed += channels
            pairs.append((key(one), a, b))
    ranks = {rank for (_, rank, peer, _), _, _ in pairs for rank in (rank, peer)}
    return total, crossed, [(a, b) for _, a, b in sorted(pairs)], ranks


@given(st.lists(ROW, max_size=60), st.sampled_from([1, 5, 1 << 20]))
def test_every_sender_meets_every_receiver_of_its_connection(rows: list[dict[str, Any]], together: int) -> None:
    # Few ranks, so that ends meet.
    rows = [row | {"rank": row["rank"] % 4, "peer": row["peer"] % 5} for row in rows]
    document = job(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_rails, "JOIN_ROWS", together)
        found = both_ends(document, hcas_by_host(document))
    total, crossed, pairs, ranks = compared(rows)
    assert (found.channels, found.crossed, found.ranks) == (total, crossed, ranks)
    assert [(each.sender, each.receiver) for each in found.first] == pairs[: job_rails.EXAMPLES]
    assert {document.connections.hosts[host] for host in found.hosts} == {HOSTS[rank // GPUS] for rank in ranks}


def test_hosts_that_list_one_device_or_none_have_no_rails_to_cross() -> None:
    document = job([{"rank": 0, "peer": 2, "via": "NET/IB", "direction": d, "net_dev": d} for d in (1, 2)])
    bare = replace(document, processes=tuple(replace(process, hcas=(jobs.hca(0),)) for process in document.processes))
    assert both_ends(document, hcas_by_host(document)).crossed > 0
    assert both_ends(bare, hcas_by_host(bare)).channels == 0


def test_bits_are_counted_in_all_eight_bytes() -> None:
    masks = np.array([0, 1, (1 << 64) - 1, 1 << 63 | 1 << 40], np.uint64)
    assert job_rails._bits(masks).tolist() == [0, 1, 64, 2]
