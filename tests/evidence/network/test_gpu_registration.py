"""Memory of a GPU that cannot be registered for RDMA, in the words of the programs that ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import chain, loud, said

PERFTEST = "cuMemAlloc() of a 65536 bytes GPU buffer\nallocated GPU buffer address at 0000010013000000\n"


@pytest.mark.parametrize(
    "text",
    [
        # perftest names the error at its end, on a line that says nothing of memory.
        f"{PERFTEST}Couldn't allocate MR\nfailed to create mr\nERRNO: Bad address.\n",
        f"{PERFTEST}Couldn't register MR\n",
        "hipMalloc() of a 65536 bytes GPU buffer\nFailed to register MR\n",
        "$ ./ib_write_bw\n 65536 5000 97.1 97.0\n$ ./ib_write_bw -d mlx5_0 --use_cuda=0\nfailed to create mr\n",
        # What a program writes to stderr may stand above what it wrote to stdout.
        f"ibv_reg_mr() failed\n{PERFTEST}",
        "cudaMalloc of 1048576 bytes on device 0\nibv_reg_dmabuf_mr failed\n",
        "E20260821 12:30:19.433391 812 rdma_context.cpp:1343] DMA BUF supported required for GPU RDMA without"
        " nvidia-peermem\n",
        "[ERROR] nvidia_peermem is not loaded: GPUDirect RDMA cannot be used\n",
        "RuntimeError: GPU RDMA requires nvidia-peermem or dma-buf\n",
        "2026-01-01 10:00 CRITICAL Unable to register addr 0x7f00. Either nvidia-peermem is not running or the memory"
        " kind is not supported\n",
        "[1721640396.3341] [n1:27301:0] ib_md.c:309 UCX ERROR no nv_peer_mem and no dmabuf support for cuda memory\n",
        "nvidia_peermem is not loaded and DMA-BUF is not supported\n",
        "GPUDirect RDMA: neither nvidia_peermem nor DMA-BUF is available\n",
    ],
)
def test_memory_of_a_gpu_that_cannot_be_registered(tmp_path: Path, text: str) -> None:
    assert chain(said(tmp_path, text))[0] == ("GDR001", "")


@pytest.mark.parametrize(
    "end",
    [
        "Segmentation fault (core dumped)\n",
        "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
        "the job to be terminated.\n  Process name: [[52222,1],1]\n  Exit code:    1\n",
    ],
)
def test_the_end_of_a_program_follows_from_its_registration(tmp_path: Path, end: str) -> None:
    made = chain(said(tmp_path, f"{PERFTEST}Couldn't register MR\n{end}"))
    assert made[:2] == [("GDR001", ""), ("JOB009", "GDR001")]


@pytest.mark.parametrize(
    "text",
    [
        f"{PERFTEST} 65536      5000             97.10              97.00\n",
        # A buffer of the host, after a run with one of a GPU that went well.
        f"$ ./ib_write_bw --use_cuda=0\n{PERFTEST}$ ./ib_write_bw\nCouldn't allocate MR\n",
        "Couldn't register MR\n",
        "[1721640396.3341] [n1:27301:0] cuda_copy_md.c:94 UCX DEBUG dmabuf is not supported on cuda device 0\n",
        "INFO: nvidia_peermem is not loaded; continuing with CUDA DMA-BUF\n",
        "[ERROR] nvidia_peermem is not loaded, using DMA-BUF for GPUDirect RDMA\n",
        "[ERROR] linux-dmabuf is not supported\n",  # of a desktop: nothing of RDMA
        "ERROR: 0 checks failed; nvidia-peermem is not required with DMA-BUF\n",
        "GPU RDMA requires nvidia-peermem or dma-buf.\n",  # a handbook
        "When neither nvidia-peermem nor DMA-BUF is available, data goes through the host.\n",
        "E0429 07:15:48 1 a.cpp:2] if registration fails, nvidia-peermem is not loaded\n",
        "I20260821 12:30:19.433391 812 rdma_context.cpp:13] DMA-BUF required for GPU RDMA: supported\n",
    ],
)
def test_what_is_no_refused_registration(tmp_path: Path, text: str) -> None:
    assert "GDR001" not in loud(tmp_path, text)


def test_a_limit_of_locked_memory_is_no_missing_module(tmp_path: Path) -> None:
    text = f"{PERFTEST}Couldn't allocate MR\nfailed to create mr\nERRNO: Cannot allocate memory.\n"
    assert "GDR001" not in loud(tmp_path, text)
