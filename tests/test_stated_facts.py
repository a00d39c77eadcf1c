"""What a text states of a job stands in the result's facts, and what states nothing of it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pasted import said

HEAD = "gpu-a01:100:120 [0] NCCL INFO "
NETWORK = f"{HEAD}Using network Socket\n"
DEVICES = """\
# nThread 1 nGpus 2 minBytes 8 maxBytes 8388608 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1
#
# Using devices
#  Rank  0 Group  0 Pid   4711 on    gpu-a01 device  0 [0000:8f:00] NVIDIA L20
#  Rank  1 Group  0 Pid   4711 on    gpu-a01 device  1 [0x90] NVIDIA L20
"""
ROW = (
    "     8388608       2097152     float     sum      -1    812.4   10.33   10.33    0    809.9   10.36   10.36    0\n"
)


def jobs(folder: Path, text: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = said(folder, text)["facts"]["jobs"]
    return made


def job(folder: Path, text: str) -> dict[str, Any]:
    (made,) = jobs(folder, text)
    return made


@pytest.mark.parametrize(
    ("label", "built"),
    [
        ("", "+cuda12.4"),
        ("[1,0]<stdout>:", "+cuda12.4"),
        ("(RayWorkerWrapper pid=12) ", "+cuda12.4"),
        ("train-0 ", "+cuda12.4"),
        ("2026-01-02 03:04:05 ", "+cuda12.4"),
        ("", "+cudaCUDA_MAJOR.CUDA_MINOR"),  # TensorFlow's build
        ("[1,0]<stdout>:", "+cudaCUDA_MAJOR.CUDA_MINOR"),
    ],
)
def test_the_version_is_a_number_and_stands_as_printed_beside(tmp_path: Path, label: str, built: str) -> None:
    made = job(tmp_path, f"{NETWORK}{label}NCCL version 2.21.5{built}\n")
    assert (made["nccl_version"], made["nccl_versions"]) == ("2.21.5", [f"2.21.5{built}"])


def test_a_build_that_two_programs_name_is_one_version(tmp_path: Path) -> None:
    torch = "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:410, unhandled system error, NCCL version 2.21.5\n"
    for text in (
        f"NCCL version 2.21.5+cuda12.4\n{torch}",
        "vLLM is using nccl==2.21.5\nNCCL version 2.21.5+cuda12.4\n",
    ):
        made = job(tmp_path, NETWORK + text)
        assert (made["nccl_version"], made["nccl_versions"]) == ("2.21.5", ["2.21.5+cuda12.4"])


@pytest.mark.parametrize(
    "line",
    [
        "[rank1]: RuntimeError: NCCL communicator was aborted on rank 1.  Original reason for failure was: NCCL error:"
        " remote process exited or there was a network error, NCCL version 2.14.3",
        "INFO 07-09 06:41:22 pynccl.py:65] vLLM is using nccl==2.14.3",
        "[2026-06-10 21:45:48 TP0] sglang is using nccl==2.14.3",
    ],
)
def test_other_programs_name_the_version(tmp_path: Path, line: str) -> None:
    assert job(tmp_path, f"{NETWORK}{line}\n")["nccl_version"] == "2.14.3"


@pytest.mark.parametrize(
    "line",
    [
        "NET/OFI Initializing aws-ofi-nccl 1.14.0",
        "gpu-a01: please use NCCL version 2.18.3 or newer",
        "what():  NCCL error: unhandled system error, NCCL version 21.0.3",
        "# the same with NCCL 2.7.6",
    ],
)
def test_versions_of_something_else_are_none_of_the_job(tmp_path: Path, line: str) -> None:
    assert job(tmp_path, f"{NETWORK}{line}\n")["nccl_version"] is None


@pytest.mark.parametrize(
    "line",
    [
        "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/8",
        "26-02-2026 10:23:04 - 33793 - INFO - initializing ddp: GLOBAL_RANK: 1, MEMBER: 2/8",
        "All distributed processes registered. Starting with 8 processes",
        "I0510 07:28:04.417 139863 distributed_c10d.py:337] Waiting in store based barrier to initialize process group"
        " for rank: 2, key: store_based_barrier_key:2 (world_size=8, worker_count=7, timeout=0:30:00)",
        "Break current worker to manually join all workers, world_size 8, current rank 2, current local_rank 2",
        "INFO 09-09 10:14:52 [parallel_state.py:1212] world_size=8 rank=0 local_rank=0"
        " distributed_init_method=tcp://192.168.100.10:29501 backend=nccl",
        "[2026-01-01 00:00:00,000] [INFO] [launch.py:162:main] dist_world_size=8",
        "using world size: 8, data-parallel size: 2, tensor-model-parallel size: 4",
        "Rank: 3, World Size: 8",
        "[Rank 0] world size = 8",
        '{"rank": 0, "world_size": 8}',
        "Setting up with MASTER_ADDR=gpu-a01, MASTER_PORT=33666, RANK=0, WORLD_SIZE=8",
        "Num processes: 8",
        "INFO:   global_world_sizes=[8, 8]",
        "AssertionError: world size 8 is not divisible by tensor-model-parallel size 3",
    ],
)
def test_the_size_of_the_job_by_any_program(tmp_path: Path, line: str) -> None:
    assert job(tmp_path, f"{NETWORK}{line}\n")["world_size"] == 8


@pytest.mark.parametrize(
    "line",
    [
        "local_world_size=8 tp_world_size=8",
        "tensor parallel world size: 8",
        "Custom allreduce is disabled due to an unsupported world size: 8. Supported world sizes: [2, 4, 6, 8].",
        "AssertionError: MPI world size 8 does not match torch world size 4",
        "$ WORLD_SIZE=8 RANK=0 python train.py",
        "root@gpu-a01:~# python train.py --rank 0 --world_size=8",
        "# same command on all machines, WORLD_SIZE=8",
        "Namespace(batch_size=32, dist_url='env://', world_size=8)",
        "rank 3, world_size=8\nrank 3, world_size=4",
        "world_size=0",
        "world_size=99999999999",
    ],
)
def test_sizes_of_parts_and_options_of_commands_are_none_of_the_job(tmp_path: Path, line: str) -> None:
    assert job(tmp_path, f"{NETWORK}{line}\n")["world_size"] is None


def test_what_nccl_was_told_goes_before_what_others_say(tmp_path: Path) -> None:
    told = f"{HEAD}comm 0x55 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 8f000 commId 0x1 - Init START\n"
    assert job(tmp_path, f"{told}rank 0, world_size=8\n")["world_size"] == 2


def test_the_ranks_of_a_group_alone_are_no_size_of_the_job(tmp_path: Path) -> None:
    split = (
        "ncclCommSplit comm 0x7f rank 1 nranks 4 cudaDev 1 nvmlDev 5 busId 8f000 parent 0x66 splitCount 1 color 3 key 1"
    )
    made = job(tmp_path, f"{HEAD}{split} - Init START\n")
    assert made["world_size"] is None
    assert [each["nranks"] for each in made["communicators"]] == [4]


@pytest.mark.parametrize(
    "line",
    [
        "  host      : gpu-b02.cluster.local",
        "srun: error: gpu-b02.cluster.local: task 3: Exited with exit code 1",
        "mpirun noticed that process rank 3 with PID 0 on node gpu-b02.cluster.local exited on signal 6 (Aborted).",
        "| INFO | fairseq.distributed.utils | initialized host gpu-b02.cluster.local as rank 3",
        "[gpu-b02.cluster.local:4021] *** Process received signal ***",
        "[1695038123.123456] [gpu-b02.cluster.local:12345:0]  ib_mlx5_log.c:171  UCX  ERROR Transport retry count",
        "  Local host:   gpu-b02.cluster.local",
        "slurmstepd: error: *** STEP 1234.0 ON gpu-b02.cluster.local CANCELLED AT 2026-01-01T00:00:00 ***",
    ],
)
def test_the_host_of_a_rank_by_its_launcher(tmp_path: Path, line: str) -> None:
    assert job(tmp_path, f"{NETWORK}{line}\n")["hosts"] == ["gpu-a01", "gpu-b02.cluster.local"]


@pytest.mark.parametrize(
    "line",
    ["$ mpirun --host gpu-b02:8 ./a.out", "host: gpu-b02", "srun: error: gpu-b02 is down", "Remote host: gpu-b02"],
)
def test_hosts_that_no_rank_is_said_to_run_on_are_none(tmp_path: Path, line: str) -> None:
    assert job(tmp_path, f"{NETWORK}{line}\n")["hosts"] == ["gpu-a01"]


def test_the_list_of_devices_is_a_job_of_its_own_without_a_log(tmp_path: Path) -> None:
    made = job(tmp_path, DEVICES + ROW)
    assert (made["name"], made["world_size"], made["hosts"]) == ("job", 2, ["gpu-a01"])
    assert [(each["rank"], each["pid"], each["cuda_dev"], each["bus_id"]) for each in made["ranks"]] == [
        (0, 4711, 0, "0000:8f:00.0"),
        (1, 4711, 1, None),  # the number of a bus alone is no bus id
    ]


def test_the_list_of_devices_completes_the_job_of_its_log(tmp_path: Path) -> None:
    log = "gpu-a01:4711:4720 [0] NCCL INFO Using network Socket\n"
    for text in (DEVICES + ROW + log, DEVICES.partition("#\n")[2] + log):
        made = job(tmp_path, text)
        assert made["networks"] == ["Socket"]
        assert [(each["rank"], each["host"], each["bus_id"]) for each in made["ranks"]] == [
            (0, "gpu-a01", "0000:8f:00.0"),
            (1, "gpu-a01", None),
        ]


def test_runs_of_other_processes_are_jobs_of_their_own(tmp_path: Path) -> None:
    again = DEVICES.replace("4711", "4800")
    made = jobs(tmp_path, DEVICES + ROW + again + ROW)
    assert [(each["name"], [rank["pid"] for rank in each["ranks"]]) for each in made] == [
        ("run 0", [4711, 4711]),
        ("run 1", [4800, 4800]),
    ]


def test_nccl_s_own_lines_are_not_replaced_by_a_list_of_devices(tmp_path: Path) -> None:
    named = "rank 0 nranks 2 cudaDev 0 nvmlDev 4 busId a1000 commId 0x1"
    init = f"gpu-a01:4711:4720 [0] NCCL INFO comm 0x5 {named} - Init START\n"
    first = job(tmp_path, DEVICES + ROW + init)["ranks"][0]
    assert (first["bus_id"], first["nvml_dev"]) == ("0000:a1:00.0", 4)


def test_operations_state_the_size_of_their_communicator(tmp_path: Path) -> None:
    line = (
        "LOG.0.txt:gpu-a01:100:120 [0] NCCL INFO Broadcast: opCount 0 sendbuff 0x7f88 recvbuff 0x7f88 count 53 datatype"
        " 4 op 0 root 0 comm 0x7f88e005a260 [nranks=8] stream 0x55f2\n"
    )
    assert [each["nranks"] for each in job(tmp_path, line)["communicators"]] == [8]
    choice = f"{HEAD}524288 Bytes -> Algo 0 proto 1 time 138.4\n"
    assert [each["nranks"] for each in job(tmp_path, line.partition(":")[2] + choice)["communicators"]] == [8]


@pytest.mark.parametrize(
    ("line", "network"),
    [
        ("Using internal Network Socket", "Socket"),
        ("Assigned NET plugin AWS Libfabric to comm", "AWS Libfabric"),
        ("Using network IB [repeated 3x across cluster]", "IB"),
    ],
)
def test_the_network_by_nccl_of_any_age(tmp_path: Path, line: str, network: str) -> None:
    assert job(tmp_path, f"{HEAD}{line}\n")["networks"] == [network]


@pytest.mark.parametrize(
    "line", ["GIN/Plugin: Assigned plugin GIN_IB to comm", "NET/Plugin: Using internal network plugin."]
)
def test_plugins_of_something_else_are_no_network(tmp_path: Path, line: str) -> None:
    assert job(tmp_path, f"{HEAD}{line}\n")["networks"] == []


def test_heads_without_the_word_nccl_are_a_log(tmp_path: Path) -> None:
    made = job(tmp_path, "gpu-a01:700:785 [0] INFO 0 -> 1 via direct shared memory\n")
    assert made["hosts"] == ["gpu-a01"]


def test_a_nic_stands_in_the_matrix_under_the_name_of_its_column_too(tmp_path: Path) -> None:
    text = (
        "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV18\tPIX\t0-31\t0\n"
        "GPU1\tNV18\t X \tSYS\t32-63\t1\n"
        "NIC0\tPIX\tSYS\t X \t\t\n\nNIC Legend:\n\n  NIC0: mlx5_0\n"
    )
    (node,) = said(tmp_path, text)["facts"]["nodes"]
    assert node["matrix"]["GPU0"] == {"GPU1": "NV18", "mlx5_0": "PIX", "NIC0": "PIX"}
    assert node["matrix"]["NIC0"] == node["matrix"]["mlx5_0"] == {"GPU0": "PIX", "GPU1": "SYS"}
