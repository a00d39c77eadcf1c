"""What a check claims of an excerpt: clean only where the evidence covers the part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pasted import said

BOOT = "".join(f"[{at / 10:12.6f}] pci 0000:00:1f.{at % 8}: reg 0x10: [mem 0xd000-0xdfff]\n" for at in range(1, 220))
LOADING = (
    "[   12.004467] nvidia-nvlink: Nvlink Core is being initialized, major device number 240\n"
    "[   12.240918] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n"
    "[   12.251093] nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver for UNIX platforms  535.129.03\n"
)
BOOTSTRAP = (
    "n1:100:120 [0] NCCL INFO Bootstrap : Using eth0:10.1.0.1<0>\n"
    "n1:100:120 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n"
    "n1:100:120 [0] NCCL INFO comm 0x5581 rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId 1a000 commId 0x5 - Init START\n"
)
COMPLETE = (
    "n1:100:120 [0] NCCL INFO comm 0x5581 rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId 1a000 commId 0x5 - Init COMPLETE\n"
)
ONE_PORT = (
    "Infiniband device 'mlx5_0' port 1 status:\n"
    "\tdefault gid:\t fe80:0000:0000:0000:1070:fd03:00b6:1234\n"
    "\tbase lid:\t 0x1\n\tsm lid:\t\t 0x1\n\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n"
    "\trate:\t\t 200 Gb/sec (4X HDR)\n\tlink_layer:\t InfiniBand\n\n"
)


def statuses(folder: Path, text: str) -> dict[str, str]:
    """The answer of each check: one that found something, or was clean of something, has it."""
    answer: dict[str, Any] = said(folder, text)
    table: dict[str, str] = {}
    for outcome in answer["outcomes"]:
        table.setdefault(outcome["check"], outcome["status"])
    return table


@pytest.mark.parametrize("check", ["GPU001", "GPU002", "GPU003", "GPU005", "HST004", "HST006"])
def test_a_few_lines_of_a_kernel_log_clear_nothing_and_the_whole_of_it_does(tmp_path: Path, check: str) -> None:
    assert statuses(tmp_path, LOADING)[check] == "unknown"
    assert statuses(tmp_path, BOOT + LOADING)[check] == "clean"


def test_one_port_is_not_every_port(tmp_path: Path) -> None:
    assert statuses(tmp_path, ONE_PORT)["NIC001"] == "unknown"
    both = ONE_PORT + ONE_PORT.replace("mlx5_0", "mlx5_1").replace("1234", "1235")
    assert statuses(tmp_path, both)["NIC001"] == "clean"


@pytest.mark.parametrize("check", ["NET002", "NET008", "JOB005"])
def test_a_start_that_is_not_shown_to_end_clears_no_network(tmp_path: Path, check: str) -> None:
    assert statuses(tmp_path, BOOTSTRAP)[check] in ("unknown", "finding")
    assert statuses(tmp_path, BOOTSTRAP + COMPLETE)[check] == "clean"


def test_ranks_that_lost_another_one_do_not_say_how_it_ended(tmp_path: Path) -> None:
    text = (
        f"{BOOTSTRAP}{COMPLETE}"
        "[rank0]:[E1020 10:11:12.000000 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout"
        ": WorkNCCL(SeqNum=4, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds"
        " before timing out.\n"
        "torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -6) local_rank: 0 (pid: 100) of"
        " binary: /usr/bin/python\n"
    )
    table = statuses(tmp_path, text)
    assert table["JOB009"] == table["NET008"] == "unknown"
