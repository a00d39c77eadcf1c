"""NET003, NET004 and NIC005 by logs, NET006 by a topology file: NICs that carry traffic, trees between nodes."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import jobs
from tests.checks import topo_trees as made
from tests.checks.excerpts import found
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.api import diagnose
from topodiag.checks.network import rails as job_rails
from topodiag.checks.network.file_search import TreesLostInFile
from topodiag.checks.network.rails import FarNic, both_ends
from topodiag.checks.network.unused_nics import FewerNicsUsed
from topodiag.checks.nic.job import FewerNicsThanSiblings
from topodiag.checks.registry import Subject, check_of
from topodiag.checks.shared.job.logs import hcas_by_host
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.job import Process
from topodiag.model.nccl_enums import PathType
from topodiag.model.nccl_tree import Element, Refusal
from topodiag.model.nccl_view import NcclSystem


def rows(devices: int, gpus: int = 8) -> list[dict[str, object]]:
    records = jobs.healthy_rows(2, gpus, 8)
    return [row | {"net_dev": row["net_dev"] % devices} if "net_dev" in row else row for row in records]


def with_hcas(count: int, host: int | None = None, **changes: object) -> Callable[[int, int, Process], Process]:
    def hook(rank: int, at: int, process: Process) -> Process:
        if host is not None and at != host:
            return process
        return replace(process, hcas=tuple(jobs.hca(number, **changes) for number in range(count)))

    return hook


def cut() -> list[dict[str, object]]:
    """A log that ends before the lines of all channels."""
    return [row | {"channels": 1} if "net_dev" in row else row for row in rows(1)]


def two_slow(rank: int, host: int, process: Process) -> Process:
    slow = tuple(jobs.hca(8 + number, speed_mbps=100_000) for number in range(2))
    return replace(process, hcas=(*process.hcas, *slow))


def torn(rank: int, at: int, process: Process) -> Process:
    """The list of the second node is cut."""
    return replace(with_hcas(5, host=1)(rank, at, process), hcas_cut=at == 1)


def torn_but_one(rank: int, at: int, process: Process) -> Process:
    return replace(torn(rank, at, process), hcas_cut=at == 1 and rank % 8 > 0)


def says_none(*hosts: int) -> Callable[[int, int, Process], Process]:
    """Nodes that say that they have no device."""
    bare = {"hcas": (), "messages": (jobs.message("no hca", "NET/IB : No device found."),)}
    return lambda rank, host, process: replace(process, **bare) if host in hosts else process  # type: ignore[arg-type]


def efa(*counts: int) -> Callable[[int, int, Process], Process]:
    """The plugin's own count of each node, which names no device."""
    text = "NET/OFI Selected provider is efa, fabric is efa (found {} nics)"
    none = jobs.message("no hca", "NET/IB : No device found.")
    return lambda _, host, process: replace(
        process, hcas=(), network="AWS Libfabric", messages=(none, jobs.message("ofi", text.format(counts[host])))
    )


def unnamed(rank: int, at: int, process: Process) -> Process:
    """The second node has a device less, and the name of the first is not in the log."""
    made = with_hcas(7, host=1)(rank, at, process)
    return replace(made, host="" if at == 0 else process.host)


def unmerged(rank: int, host: int, process: Process) -> Process:
    """The second node does not merge its ports."""
    made = jobs.merged()(rank, host, process)
    return replace(made, vnics=()) if host else made


HOOKS: dict[str, Any] = {
    "to": rows, "cut": cut(), "two_slow": two_slow, "with_hcas": with_hcas, "torn": torn, "torn_but_one": torn_but_one,
    "says_none": says_none, "efa": efa, "unnamed": unnamed, "unmerged": unmerged,
}  # fmt: skip


@examples("check", "given", "wanted")
def test_nics_of_a_job(check: str, given: jobs.Given, wanted: Wanted) -> None:
    assert shown(check_of(Subject.JOB, check)().judge(jobs.of_row(given, **HOOKS)), wanted) == wanted


def test_lines_about_single_devices_are_no_list_of_a_nodes_devices() -> None:
    off = "NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA"
    lines = (
        "a:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB ; OOB eth0:10.0.0.1<0>",
        f"a:1:2 [0] {off} 0 'mlx5_0'",
        f"b:1:2 [0] {off} 0 'mlx5_0'",
    )
    assert found("NIC005", *lines) == []
    told = len(found("NIC005", *lines[:2], "b:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB ; OOB eth0:10.0.0.2<0>"))
    assert told == 1


def test_virtual_nics_in_use_are_clean_and_an_idle_one_is_named_by_its_ports() -> None:
    parts = jobs.renumbered()
    assert FewerNicsUsed().judge(jobs.job(**parts)).status is Status.CLEAN
    assert FewerNicsThanSiblings().judge(jobs.job(**parts)).status is Status.CLEAN
    fewer = [row | {"net_dev": 16 + int(str(row["net_dev"])) % 4} if "net_dev" in row else row for row in parts["rows"]]
    outcome = FewerNicsUsed().judge(jobs.job(**{**parts, "rows": fewer}))
    finding = expect(outcome, message="*4 of 8 NICs*", nics=tuple(f"mlx5_{port}" for port in range(8, 16)))
    assert finding.cost.gbs_lost == 200


def merged_log(host: str, first: int, ports: list[str]) -> dict[str, str]:
    """The logs of eight ranks of NCCL 2.32, which merges two ports each into a virtual NIC."""
    pairs = [ports[at : at + 2] for at in range(0, len(ports), 2)]
    logs = {}
    for rank in range(first, first + 8):
        record = (
            f"rank {rank} nranks 16 cudaDev {rank % 8} nvmlDev {rank % 8} busId {(rank % 8 + 1) << 20:x} commId 0x9"
        )
        listed = " ".join(f"[{number}]{name}:1/IB" for number, name in enumerate(ports))
        lines = [
            "NCCL version 2.32.3+cuda13.4",
            f"NET/IB : Using {listed} [RO]; OOB eth0:10.0.0.{first + 1}<0>",
            f"ncclCommInitRank comm 0x7f37b76d{rank:04x} {record} - Init START",
        ]
        for number, pair in enumerate(pairs, len(ports)):
            lines.append(
                f"NET/IB : Made virtual device [{number}] name={'+'.join(pair)} speed=400000 ndevs={len(pair)}"
            )
            lines.append(f"NET/IB : GPU Direct RDMA Enabled for HCA {number} '{'+'.join(pair)}'")
        own, peer = len(ports) + rank % 8 % len(pairs), (rank + 8) % 16
        lines += [
            f"ncclCommInitRank comm 0x7f37b76d{rank:04x} {record} - Init COMPLETE",
            f"Channel 00/0 : {rank}[{rank % 8}] -> {peer}[{rank % 8}] [send] via NET/IB/{own}/GDRDMA",
            f"Channel 00/0 : {peer}[{rank % 8}] -> {rank}[{rank % 8}] [receive] via NET/IB/{own}/GDRDMA",
            "Connected all rings, use ring PXN 0 GDR 1",
        ]
        logs[f"rank{rank}.log"] = (
            "\n".join(f"{host}:{rank}:{rank} [{rank % 8}] NCCL INFO {line}" for line in lines) + "\n"
        )
    return logs


def test_logs_of_virtual_nics_join_with_a_capture_of_their_ports(tmp_path: Path) -> None:
    capture = "fixture:dgx-h100-healthy"
    ports = [f"mlx5_{number}" for number in range(12)]
    for lost, expected in (((), []), (("mlx5_1",), [("NIC005", ("mlx5_1",))])):
        left = [port for port in ports if port not in lost]
        for name, text in (merged_log("dgx-017", 0, ports) | merged_log("dgx-018", 8, left)).items():
            (tmp_path / name).write_text(text)
        findings = diagnose([str(tmp_path), capture]).findings
        assert [(finding.id, finding.where.nics) for finding in findings] == expected


# --- NET004 by logs: NICs far from their GPU, and connections that leave by one rail and arrive by another


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


def board(sm: str = "80", nics: int = 4) -> Element:
    """Four GPUs on NVSwitches, each below a switch of its own, so that PXN shortens every way to another's NIC."""
    return made.system(
        made.cpu(*(
            made.switch(at, made.gpu(at, links=12, sm=sm), *([made.nic(at)] if at < nics else [])) for at in range(4)
        ))
    )  # fmt: skip


def shared(sm: str = "80") -> Element:
    """The same GPUs in twos below a switch, as on boards of eight: their NICs are near enough for a tree."""
    return made.system(
        made.cpu(*(
            made.switch(at, *(made.gpu(gpu, links=12, sm=sm) for gpu in (at, at + 1)), made.nic(at), made.nic(at + 1))
            for at in (0, 2)
        ))
    )  # fmt: skip


TREES = {"board": board, "shared": shared}


@examples("tree", "options", "asked", "wanted")
def test_trees_between_nodes_that_some_versions_lose(
    tree: str, options: dict[str, Any], asked: list[int], wanted: Wanted
) -> None:
    outcome = TreesLostInFile().judge(made.alone(TREES[tree](**options), asked=tuple(asked)), ())
    assert shown(outcome, wanted) == wanted


def test_a_file_that_nccl_refuses_is_the_business_of_another_check() -> None:
    refused = Refusal("structure", "XML Parse error", 1, 0, "", 18, 30)
    node = made.alone(board(), refusals=(refused,), asked=(28,))
    assert TreesLostInFile().judge(node, ()).status is Status.NOT_APPLICABLE
