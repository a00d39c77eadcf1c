"""Stub commands, and a small machine as a tree of files."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.files import laid

MakeStub = Callable[[str, str], Path]


@pytest.fixture
def stubs(tmp_path: Path) -> Path:
    """An empty folder for stub commands, to be given as `extra_path`."""
    folder = tmp_path / "stubs"
    folder.mkdir()
    return folder


@pytest.fixture
def stub(stubs: Path) -> MakeStub:
    """Writes a shell script into the folder of stubs."""

    def make(name: str, script: str) -> Path:
        place = stubs / name
        place.write_text("#!/bin/sh\n" + script + "\n")
        place.chmod(0o755)
        return place

    return make


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A root with one GPU behind a bridge, one InfiniBand device, one Ethernet interface, two NUMA nodes."""
    root = tmp_path / "root"
    gpu = "sys/devices/pci0000:15/0000:15:01.0/0000:1b:00.0"
    files = {
        gpu + "/class": "0x030200",
        gpu + "/vendor": "0x10de",
        gpu + "/device": "0x2330",
        gpu + "/current_link_speed": "32.0 GT/s PCIe",
        gpu + "/current_link_width": "16",
        gpu + "/numa_node": "0",
        gpu + "/aer_dev_correctable": "RxErr 0\nBadTLP 3\nTOTAL_ERR_COR 3",
        gpu + "/rom": "never read",
        gpu + "/resource0": "never read",
        gpu + "/reset": "never read",
        "sys/devices/pci0000:15/0000:15:01.0/class": "0x060400",
        "sys/kernel/iommu_groups/7/type": "identity",
        "sys/class/infiniband/mlx5_0/fw_ver": "28.41.1000",
        "sys/class/infiniband/mlx5_0/node_guid": "a088:c203:0055:1234",
        "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE",
        "sys/class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)",
        "sys/class/infiniband/mlx5_0/ports/1/counters/link_downed": "0",
        "sys/class/infiniband/mlx5_0/ports/1/gids/0": "fe80:0000:0000:0000:a088:c203:0055:1234",
        "sys/class/infiniband/mlx5_0/ports/1/gids/1": "0000:0000:0000:0000:0000:0000:0000:0000",
        "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0": "IB/RoCE v1",
        "sys/class/net/bonding_masters": "",
        "sys/class/net/eth0/operstate": "up",
        "sys/class/net/eth0/speed": "25000",
        "sys/class/net/eth0/carrier_changes": "2",
        "sys/class/net/eth0/statistics/rx_errors": "0",
        "proc/net/fib_trie": "Local:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.0.0.0\n        /8 link UNICAST\n"
        "     |-- 10.0.0.5\n        /32 host LOCAL\n     |-- 127.0.0.1\n        /32 host LOCAL\n",
        "proc/net/if_inet6": "fe800000000000000042acfffe110002 02 40 20 80     eth0\n"
        "fd000000000000000000000000000002 02 40 00 82     eth0",
        "proc/net/route": "Iface\tDestination\tGateway\neth0\t00000000\t0100000A",
        "proc/cpuinfo": "processor\t: 0\nphysical id\t: 0\n\nprocessor\t: 1\nphysical id\t: 0\n\n"
        "processor\t: 2\nphysical id\t: 1\n",
        "sys/devices/system/node/online": "0-1",
        "sys/devices/system/node/node0/cpulist": "0-1",
        "sys/devices/system/node/node1/cpulist": "2",
        "sys/devices/system/cpu/cpu2/topology/physical_package_id": "1",
        "proc/version": "Linux version 5.15.0",
        "proc/sys/kernel/hostname": "gpu-001",
        "etc/nccl.conf": "NCCL_IB_HCA = mlx5\n# a comment",
        "var/log/fabricmanager.log": "error\n" * 12000 + "error: the end",
    }
    laid(root, {path: text + "\n" if text else "" for path, text in files.items()})
    (root / gpu / "config").write_bytes(bytes(range(64)))
    devices = root / "sys/bus/pci/devices"
    devices.mkdir(parents=True)
    os.symlink("../../../devices/pci0000:15/0000:15:01.0/0000:1b:00.0", devices / "0000:1b:00.0")
    os.symlink("../../../devices/pci0000:15/0000:15:01.0", devices / "0000:15:01.0")
    os.symlink("../../../devices/pci0000:15/0000:15:01.0", root / "sys/class/infiniband/mlx5_0/device")
    return root
