"""What follows from a limit, from devices that a container lacks, and from settings that differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import chain, loud, said
from tests.tables import examples

NO_CUDA = (
    "CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable"
    " CUDA_VISIBLE_DEVICES after program start. Setting the available devices to be zero.\n"
)
WAITED = "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.\n"
FULL = (
    "n1:7:8 [0] misc/shmutils.cc:72 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-a (size"
    " 9637888), error: No space left on device (28)\n"
)
BUS = "srun: error: {}: task 3: Bus error (core dumped)\n"
COMM = "comm 0x5 rank {0} nranks 2 cudaDev 0 nvmlDev 0 busId 60 commId 0x9 - Init {1}\n"


@pytest.mark.parametrize("head", ["RuntimeError: ", "UserWarning: CUDA initialization: "])
def test_cuda_that_does_not_start_is_why_a_rank_does_not_come(tmp_path: Path, head: str) -> None:
    answer = said(tmp_path, head + NO_CUDA + WAITED)
    assert chain(answer) == [("HST002", ""), ("JOB001", "HST002")]
    assert "/dev/nvidia-uvm" in answer["verdict"]["headline"]


@examples("line")
def test_other_unknown_errors_and_advice_say_nothing_of_device_nodes(tmp_path: Path, line: str) -> None:
    assert "HST002" not in [finding["id"] for finding in said(tmp_path, line + WAITED)["findings"]]


@examples("text")
def test_a_bus_error_follows_from_shared_memory_that_is_full(tmp_path: Path, text: str) -> None:
    assert chain(said(tmp_path, text)) == [("HST001", ""), ("JOB009", "HST001")]


def test_other_ends_and_other_hosts_do_not_follow_from_it(tmp_path: Path) -> None:
    for end in (BUS.format("n7"), BUS.format("n1").replace("Bus error", "Segmentation fault")):
        assert ("JOB009", "HST001") not in chain(said(tmp_path, end + FULL))


SYMBOL = "{}ImportError: /opt/torch/lib/{}: undefined symbol: {}\n"


def test_a_symbol_that_a_library_of_ranks_lacks_is_one_loss(tmp_path: Path) -> None:
    text = SYMBOL.format("[rank0]: ", "libtorch_cuda.so", "ncclDevCommDestroy")
    assert chain(said(tmp_path, text)) == [("JOB002", ""), ("JOB009", "JOB002")]


OPEN_FILES = (
    'Traceback (most recent call last):\n  File "a.py", line 3, in load\nOSError: [Errno 24] Too many open files\n'
)


def test_an_end_whose_line_names_the_limit_follows_from_it(tmp_path: Path) -> None:
    assert chain(said(tmp_path, OPEN_FILES)) == [("HST001", ""), ("JOB009", "HST001")]
    other = OPEN_FILES + "srun: error: n1: task 3: Segmentation fault (core dumped)\n"
    assert ("JOB009", "HST001") not in chain(said(tmp_path, other.replace("OSError: ", "E open: ")))


@pytest.mark.parametrize("error", ["No space left on device (28)", "Resource temporarily unavailable (11)", "Success"])
def test_workers_that_get_no_shared_memory_are_a_fault_whatever_errno_was(tmp_path: Path, error: str) -> None:
    # posix_fallocate returns its error and does not set errno, which torch prints.
    text = f"RuntimeError: unable to allocate shared memory(shm) for file </torch_32_6_0>: {error}\n"
    assert chain(said(tmp_path, text)) == [("HST001", "")]


def test_workers_that_share_memory_by_files_are_no_fault(tmp_path: Path) -> None:
    text = "n1:7:7 [0] NCCL INFO Using network Socket\ntrain: shared memory(shm) for file </torch_3>\n"
    assert loud(tmp_path, text) == []


def _pair(setting: str, broken: str) -> str:
    """Two ranks that come up, of which one has a setting."""
    lines = []
    for rank in range(2):
        head = f"n{rank}:{rank + 5}:{rank + 5} [0] NCCL INFO "
        lines += [head + f"Bootstrap: Using eth0:10.0.0.{rank + 1}<0>\n", head + "ncclCommInitRank "]
        lines += [COMM.format(rank, "START"), head + setting if rank and setting else ""]
        lines += [head + "ncclCommInitRank ", COMM.format(rank, "COMPLETE")]
    return "".join(lines) + broken


@examples("setting", "broken")
def test_a_message_that_broke_follows_from_a_setting_of_one_rank(tmp_path: Path, setting: str, broken: str) -> None:
    answer = said(tmp_path, _pair(setting, broken))
    assert answer["verdict"]["causes"][0]["check"] == "JOB003"
    assert {above for check, above in chain(answer) if check in ("JOB005", "JOB006")} == {"JOB003"}


@examples("setting", "broken")
def test_a_setting_of_one_rank_alone_and_a_broken_message_alone_are_no_difference(
    tmp_path: Path, setting: str, broken: str
) -> None:
    assert "JOB003" not in [check for check, _ in chain(said(tmp_path, _pair(setting, broken)))]
