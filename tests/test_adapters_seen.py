"""A verbs program that finds no RDMA device, beside what the node's PCI functions show."""

from __future__ import annotations

from pathlib import Path

import pytest

from topodiag.api import diagnose

HEAD = "00:06.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)\n"
PLAIN = "00:03.0 Ethernet controller [0200]: Red Hat, Inc. Virtio 1.0 network device [1af4:1041] (rev 01)\n"
ADAPTER = "00:07.0 Infiniband controller [0207]: Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]\n"


@pytest.mark.parametrize(
    ("lspci", "told"),
    [("", True), (HEAD + PLAIN, False), (HEAD + ADAPTER, True), (HEAD + PLAIN + ADAPTER, True)],
    ids=["nothing beside it", "no adapter", "an adapter", "an adapter beside Ethernet"],
)
def test_no_device_is_a_fault_unless_the_node_has_none(tmp_path: Path, lspci: str, told: bool) -> None:
    (tmp_path / "ibv_devinfo.txt").write_text("No IB devices found\n")
    if lspci:
        (tmp_path / "lspci.txt").write_text(lspci)
    loud = {finding.id for finding in diagnose(str(tmp_path)).findings if str(finding.severity) != "info"}
    assert ("HST002" in loud) is told
