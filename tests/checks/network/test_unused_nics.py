"""NET003 and NIC005 by logs: how many NICs carry the traffic, and how many there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.checks import jobs
from tests.checks.excerpts import found
from topodiag.api import diagnose
from topodiag.checks.network.unused_nics import FewerNicsUsed
from topodiag.checks.nic.job import FewerNicsThanSiblings
from topodiag.model.finding import Severity, Status
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


def test_all_nics_in_use_are_clean() -> None:
    assert FewerNicsUsed().judge(jobs.job()).status is Status.CLEAN


def test_half_of_the_nics_idle_is_told_with_what_they_would_bring() -> None:
    (finding,) = FewerNicsUsed().judge(jobs.job(rows=rows(4))).findings
    assert finding.severity is Severity.WARNING
    assert "4 of 8 NICs" in finding.message
    assert finding.cost.gbs_lost == 200
    assert finding.where.nics == ("mlx5_4", "mlx5_5", "mlx5_6", "mlx5_7")


def test_a_log_that_ends_before_the_lines_of_all_channels_shows_no_idle_nic() -> None:
    cut = [row | {"channels": 1} if "net_dev" in row else row for row in rows(1)]
    assert FewerNicsUsed().judge(jobs.job(rows=cut)).status is Status.UNKNOWN


def test_slower_nics_are_for_storage() -> None:
    def hook(rank: int, host: int, process: Process) -> Process:
        slow = tuple(jobs.hca(8 + number, speed_mbps=100_000) for number in range(2))
        return replace(process, hcas=(*process.hcas, *slow))

    assert FewerNicsUsed().judge(jobs.job(process=hook)).status is Status.CLEAN


def test_fewer_ranks_than_nics_need_fewer_nics() -> None:
    assert FewerNicsUsed().judge(jobs.job(2, 4, rows=jobs.healthy_rows(2, 4, 4))).status is Status.CLEAN


def test_a_limit_on_channels_explains_idle_nics() -> None:
    job = jobs.job(rows=rows(2), settings={"NCCL_MAX_NCHANNELS": "2"})
    assert FewerNicsUsed().judge(job).status is Status.CLEAN


def test_a_machine_without_nvlink_is_not_judged_by_its_nics() -> None:
    job = jobs.job(rows=rows(1), systems=lambda host, system: jobs.system(host, nvlink_gbs=0))
    assert FewerNicsUsed().judge(job).status is Status.CLEAN


def test_sockets_and_one_node_have_no_nics_to_compare() -> None:
    assert FewerNicsUsed().judge(jobs.job(via="NET/Socket")).status is Status.NOT_APPLICABLE
    assert FewerNicsUsed().judge(jobs.job(1)).status is Status.NOT_APPLICABLE


def test_without_connections_the_use_is_unknown() -> None:
    assert FewerNicsUsed().judge(jobs.job(rows=[])).status is Status.UNKNOWN


def test_one_nic_for_eight_nvswitch_gpus_is_told() -> None:
    job = jobs.job(nics=1, systems=lambda host, system: jobs.system(host, nics=1))
    (finding,) = FewerNicsUsed().judge(job).findings
    assert "one NIC, mlx5_0, serves 8" in finding.message
    assert "6.2 GB/s each" in finding.cost.text


def test_a_node_with_fewer_devices_than_its_siblings_is_named() -> None:
    (finding,) = FewerNicsThanSiblings().judge(jobs.job(process=with_hcas(7, host=1))).findings
    assert finding.where.nodes == ("n1",)
    assert finding.where.nics == ("mlx5_7",)
    assert finding.cost.gbs_lost == 50


def test_a_list_that_is_cut_lacks_nothing_that_may_have_stood_behind() -> None:
    def torn(rank: int, at: int, process: Process) -> Process:
        return replace(with_hcas(5, host=1)(rank, at, process), hcas_cut=at == 1)

    outcome = FewerNicsThanSiblings().judge(jobs.job(process=torn))
    assert (outcome.status, "to the end of the line" in outcome.why) == (Status.UNKNOWN, True)
    one_whole = jobs.job(
        process=lambda rank, at, process: replace(torn(rank, at, process), hcas_cut=at == 1 and rank % 8 > 0)
    )
    assert [finding.where.nodes for finding in FewerNicsThanSiblings().judge(one_whole).findings] == [("n1",)]


def test_equal_nodes_and_single_nodes_lack_nothing() -> None:
    assert FewerNicsThanSiblings().judge(jobs.job()).status is Status.CLEAN
    assert FewerNicsThanSiblings().judge(jobs.job(1)).status is Status.NOT_APPLICABLE


def test_a_node_that_lists_nothing_is_not_taken_for_one_without_devices() -> None:
    outcome = FewerNicsThanSiblings().judge(jobs.job(process=with_hcas(0, host=1)))
    assert outcome.status is Status.UNKNOWN


def test_a_node_that_says_no_device_has_none() -> None:
    def hook(rank: int, host: int, process: Process) -> Process:
        if host == 0:
            return process
        return replace(process, hcas=(), messages=(jobs.message("no hca", "NET/IB : No device found."),))

    (finding,) = FewerNicsThanSiblings().judge(jobs.job(process=hook)).findings
    assert "0 RDMA devices" in finding.message


def test_nodes_without_any_device_do_not_clear_each_other() -> None:
    def hook(_rank: int, _host: int, process: Process) -> Process:
        return replace(process, hcas=(), messages=(jobs.message("no hca", "NET/IB : No device found."),))

    outcome = FewerNicsThanSiblings().judge(jobs.job(process=hook))
    assert outcome.status is Status.UNKNOWN
    assert "no RDMA device on any node" in outcome.why


def test_nodes_are_compared_by_the_plugins_own_count_where_it_names_no_device() -> None:
    def efa(counts: tuple[int, int]) -> Callable[[int, int, Process], Process]:
        text = "NET/OFI Selected provider is efa, fabric is efa (found {} nics)"
        return lambda _, host, process: replace(
            process,
            hcas=(),
            network="AWS Libfabric",
            messages=(
                jobs.message("no hca", "NET/IB : No device found."),
                jobs.message("ofi", text.format(counts[host])),
            ),
        )

    (finding,) = FewerNicsThanSiblings().judge(jobs.job(process=efa((32, 31)))).findings
    assert "n1: the network plugin finds 31 NICs, where n0 has 32" in finding.message
    assert FewerNicsThanSiblings().judge(jobs.job(process=efa((32, 32)))).status is Status.CLEAN


def test_lines_about_single_devices_are_no_list_of_a_nodes_devices() -> None:
    off = "NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA"
    lines = (
        "a:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB ; OOB eth0:10.0.0.1<0>",
        f"a:1:2 [0] {off} 0 'mlx5_0'",
        f"b:1:2 [0] {off} 0 'mlx5_0'",
    )
    assert found("NIC005", *lines) == []
    assert (
        len(found("NIC005", *lines[:2], "b:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB ; OOB eth0:10.0.0.2<0>"))
        == 1
    )


def test_a_node_whose_name_is_not_in_the_log_is_called_another_node() -> None:
    job = jobs.job(
        process=lambda rank, at, process: replace(
            with_hcas(7, host=1)(rank, at, process), host="" if at == 0 else process.host
        )
    )
    (finding,) = FewerNicsThanSiblings().judge(job).findings
    assert finding.message == "n1: 7 RDMA devices, where another node has 8"


def test_virtual_nics_in_use_are_clean_and_an_idle_one_is_named_by_its_ports() -> None:
    parts = jobs.renumbered()
    assert FewerNicsUsed().judge(jobs.job(**parts)).status is Status.CLEAN
    assert FewerNicsThanSiblings().judge(jobs.job(**parts)).status is Status.CLEAN
    fewer = [row | {"net_dev": 16 + int(str(row["net_dev"])) % 4} if "net_dev" in row else row for row in parts["rows"]]
    (finding,) = FewerNicsUsed().judge(jobs.job(**{**parts, "rows": fewer})).findings
    assert "4 of 8 NICs" in finding.message
    assert finding.where.nics == tuple(f"mlx5_{port}" for port in range(8, 16))
    assert finding.cost.gbs_lost == 200


def test_a_node_that_merges_its_ports_has_no_fewer_devices_than_one_that_does_not() -> None:
    def apart(rank: int, host: int, process: Process) -> Process:
        made = jobs.merged()(rank, host, process)
        return replace(made, vnics=()) if host else made

    assert FewerNicsThanSiblings().judge(jobs.job(process=apart)).status is Status.CLEAN


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
