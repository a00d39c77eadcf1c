"""What a GPU's own processor that does not boot leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import said

NONE = "$ nvidia-smi\nNo devices were found\n"
BOOT = (
    "[   36.077455] NVRM _threadNodeCheckTimeout: _threadNodeCheckTimeout: Timeout was set to: 4000 msecs!\n"
    "[   36.077473] NVRM{} kgspBootstrapRiscvOSEarly_GH100: Timeout waiting for GSP target mask release.\n"
)
LOST = "[  100.000001] NVRM: GPU at PCI:0000:1b:00: GPU-1\n[  100.000002] NVRM: Xid (PCI:0000:1b:00): 79, GPU has"
LOST += " fallen off the bus.\n"


@pytest.mark.parametrize("colon", ["", ":"])
def test_firmware_that_does_not_boot_stands_above_that_no_gpu_is_found(tmp_path: Path, colon: str) -> None:
    assert [finding["id"] for finding in said(tmp_path, NONE + BOOT.format(colon))["findings"]] == ["GPU003", "GPU001"]


def test_a_gpu_off_the_bus_stays_the_cause(tmp_path: Path) -> None:
    assert said(tmp_path, NONE + LOST)["findings"][0]["id"] == "GPU001"
