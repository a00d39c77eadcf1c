"""Faults in words that few tools share, each beside texts in which the same words mean nothing wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import first_of, loud, said

INIT = (
    "[   38.773115] NVRM: RmInitAdapter failed! (0x26:0xffff:1127)\n"
    "[   38.773764] NVRM: rm_init_adapter failed for device bearing minor number 0\n"
)
HMC = (
    "[Mon Oct 28 22:14:07 2024] infiniband irdma0: ICE OICR event notification: oicr = 0x06000803\n"
    "[Mon Oct 28 22:14:07 2024] infiniband irdma0: HMC Error\n"
    "[Mon Oct 28 22:14:07 2024] infiniband irdma0: Requesting a reset\n"
)
REBUILT = (
    "[Mon Oct 28 22:14:08 2024] ice 0000:41:00.0: PTP reset successful\n"
    "[Mon Oct 28 22:14:08 2024] ice 0000:41:00.0: VSI rebuilt. VSI index 0, type ICE_VSI_PF\n"
)
WARNED = "libibverbs: Warning: no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs0\n"
SHELL = "root@c1:/workspace# python train.py -C cfg\nLoading dataset: 100%\n"


def test_a_gpu_that_an_older_driver_cannot_start_is_lost_although_no_line_names_its_bus(tmp_path: Path) -> None:
    assert first_of(tmp_path, INIT)["id"] == "GPU001"


@pytest.mark.parametrize(
    "text",
    [
        "[   12.240918] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  418.56  Fri Mar 15 12:59:26 CDT 2019\n",
        f"[   30.1] NVRM: API mismatch: the client has the version 418.56, but\n{INIT}",
    ],
)
def test_a_driver_that_starts_or_is_of_another_version_loses_no_gpu(tmp_path: Path, text: str) -> None:
    assert "GPU001" not in loud(tmp_path, text)


def test_an_adapter_that_asks_for_its_own_reset_has_a_fault(tmp_path: Path) -> None:
    assert first_of(tmp_path, HMC + REBUILT)["id"] == "NIC003"
    assert loud(tmp_path, REBUILT) == []


def test_devices_that_no_library_drives_are_named_where_a_list_of_adapters_is_empty(tmp_path: Path) -> None:
    finding = first_of(tmp_path, f"# ibv_devinfo -l\n{WARNED}0 HCAs found:\n")
    assert finding["id"] == "HST002"
    assert loud(tmp_path, "# ibv_devinfo -l\n0 HCAs found:\n") == []
    assert loud(tmp_path, f"# ibv_devinfo -l\n{WARNED}1 HCA found:\n        mlx5_0\n") == []


@pytest.mark.parametrize(
    "words",
    [
        'msg="unable to load cuda driver library" error="cuda driver library init failure: 802"',
        "cuInit failed with error code 802",
        "torch._C._cuda_init: cudaGetDeviceCount returned 802",
        "runtime error: cudaErrorSystemNotReady",
    ],
)
def test_cuda_error_802_is_the_fabric_in_any_words(tmp_path: Path, words: str) -> None:
    assert first_of(tmp_path, f"{words}\n")["id"] == "NVL005"


@pytest.mark.parametrize(
    "words",
    [
        "bond0: mode 802.3ad, status 802 packets",
        "cuda graph captured, step 802",
        "error 1802 of cudaMemcpy was handled",
    ],
)
def test_other_numbers_are_not_that_error(tmp_path: Path, words: str) -> None:
    assert "NVL005" not in loud(tmp_path, f"{words}\n")


def test_a_shell_says_killed_below_the_command_that_it_ran(tmp_path: Path) -> None:
    finding = first_of(tmp_path, f"{SHELL}Killed\n")
    assert (finding["id"], "signal 9" in finding["message"]) == ("JOB009", True)


@pytest.mark.parametrize(
    "text",
    ["States of a task:\n\nRunning\nKilled\nDone\n", f"{SHELL}Done\n", f"{SHELL}$ kill -9 412\nKilled\n",
     "# States\n\nKilled\n"],
)  # fmt: skip
def test_a_word_alone_and_a_signal_by_hand_end_nobody(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text) == []


UNITS = "$ ls /sys/class/iommu\nivhd0  ivhd1  ivhd2  ivhd3\n"
CMDLINE = "$ cat /proc/cmdline\nBOOT_IMAGE=/boot/vmlinuz-6.8.0-60-generic root=/dev/sda1 ro quiet\n"
GPUS = "GPU 0: NVIDIA L4 (UUID: GPU-0aa1b2c3-1111-2222-3333-444455556666)\n"


def test_an_iommu_that_nothing_makes_pass_is_a_note(tmp_path: Path) -> None:
    finding = first_of(tmp_path, f"{GPUS}{UNITS}{CMDLINE}")
    assert (finding["id"], finding["severity"]) == ("HST003", "info")


@pytest.mark.parametrize("text", [UNITS, CMDLINE, UNITS + CMDLINE.replace("quiet", "iommu=pt")])
def test_an_iommu_that_passes_or_of_which_little_is_known_is_none(tmp_path: Path, text: str) -> None:
    assert "HST003" not in [finding["id"] for finding in said(tmp_path, GPUS + text)["findings"]]
