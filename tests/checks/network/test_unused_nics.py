"""NET003 and NIC005 by logs: how many NICs carry the traffic, and how many there are."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.checks import jobs
from tests.checks.excerpts import found
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.api import diagnose
from topodiag.checks.network.unused_nics import FewerNicsUsed
from topodiag.checks.nic.job import FewerNicsThanSiblings
from topodiag.model.finding import Status
from topodiag.model.job import Process


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


@examples("given", "wanted")
def test_nics_that_no_connection_uses(given: jobs.Given, wanted: Wanted) -> None:
    assert shown(FewerNicsUsed().judge(jobs.of_row(given, **HOOKS)), wanted) == wanted


@examples("given", "wanted")
def test_nodes_with_fewer_devices_than_their_siblings(given: jobs.Given, wanted: Wanted) -> None:
    assert shown(FewerNicsThanSiblings().judge(jobs.of_row(given, **HOOKS)), wanted) == wanted


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
