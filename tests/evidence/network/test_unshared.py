"""Adapters that the RDMA device plug-in leaves out: told where a resource stays empty, and not of plain cards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud, said
from topodiag.evidence.network.unshared import unshared

FOUND = "2024/05/06 08:11:20 DiscoverHostDevices(): device found: 0000:{}:00.0\t02          \t{}\t{}\n"
LEFT = (
    '2024/05/06 08:11:20 error creating new device: "missing RDMA device spec for device 0000:{}:00.0,'
    ' RDMA device \\"{}\\" not found"\n'
)
HEAD = "2024/05/06 08:11:20 Starting K8s RDMA Shared Device Plugin version= master\n"
CARD = FOUND.format("07", "Mellanox Technolo...", "MT27800 Family [ConnectX-5]")
PLAIN = FOUND.format("19", "Intel Corporation", "Ethernet Controller X710 for 10GBASE-T")
EMPTY = "2024/05/06 08:11:20 Warning: no devices in device pool, creating empty resource server for rdma_shared_a\n"
EXPOSED = '2024/05/06 08:11:20 exposing "63" devices\n'
LISTED = "crw-rw-rw-  1 root root 231, 192 Mar 21 08:55 uverbs0\ncrw-rw-rw-  1 root root 231,   0 Mar 21 08:55 {}\n"


@pytest.mark.parametrize(
    "text",
    [
        HEAD + CARD + LEFT.format("07", "issm"),
        HEAD + CARD + PLAIN + LEFT.format("19", "issm") + LEFT.format("07", "umad") + EXPOSED,
        LEFT.format("c4", "issm") + EMPTY,
        LEFT.format("c4", "issm") + LISTED.format("umad0"),
    ],
)
def test_an_adapter_without_its_device_node_is_told(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == ["HST002"]


@pytest.mark.parametrize(
    "text",
    [
        HEAD + PLAIN + CARD + LEFT.format("19", "issm") + EXPOSED,
        LEFT.format("19", "issm"),
        LEFT.format("19", "issm") + LISTED.format("issm0"),
        HEAD + CARD + EXPOSED,
    ],
)
def test_a_plain_card_that_is_left_out_is_nobodys_loss(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []
    assert not list(unshared(text.split("\n")))


def test_a_log_of_the_plug_in_that_names_no_fault_is_read(tmp_path: Path) -> None:
    assert said(tmp_path, HEAD + CARD + EXPOSED)["inputs"][0]["kind"] == "network-words"
