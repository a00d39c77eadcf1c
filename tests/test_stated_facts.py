"""What a text states of a job stands in the result's facts, and what states nothing of it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.pasted import said
from tests.tables import examples, texts

HEAD = "gpu-a01:100:120 [0] NCCL INFO "
NETWORK = f"{HEAD}Using network Socket\n"
TEXTS = texts(__file__)
DEVICES = TEXTS["devices"]
ROW = (
    "     8388608       2097152     float     sum      -1    812.4   10.33   10.33    0    809.9   10.36   10.36    0\n"
)


def jobs(folder: Path, text: str) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = said(folder, text)["facts"]["jobs"]
    return records


def job(folder: Path, text: str) -> dict[str, Any]:
    (made,) = jobs(folder, text)
    return made


@examples("label", "built")
def test_the_version_is_a_number_and_stands_as_printed_beside(tmp_path: Path, label: str, built: str) -> None:
    document = job(tmp_path, f"{NETWORK}{label}NCCL version 2.21.5{built}\n")
    assert (document["nccl_version"], document["nccl_versions"]) == ("2.21.5", [f"2.21.5{built}"])


def test_a_build_that_two_programs_name_is_one_version(tmp_path: Path) -> None:
    torch = "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:410, unhandled system error, NCCL version 2.21.5\n"
    for text in (
        f"NCCL version 2.21.5+cuda12.4\n{torch}",
        "vLLM is using nccl==2.21.5\nNCCL version 2.21.5+cuda12.4\n",
    ):
        document = job(tmp_path, NETWORK + text)
        assert (document["nccl_version"], document["nccl_versions"]) == ("2.21.5", ["2.21.5+cuda12.4"])


@examples("line")
def test_other_programs_name_the_version(tmp_path: Path, line: str) -> None:
    assert job(tmp_path, f"{NETWORK}{line}\n")["nccl_version"] == "2.14.3"


@examples("line")
def test_versions_of_something_else_are_none_of_the_job(tmp_path: Path, line: str) -> None:
    assert job(tmp_path, f"{NETWORK}{line}\n")["nccl_version"] is None


@examples("line")
def test_the_size_of_the_job_by_any_program(tmp_path: Path, line: str) -> None:
    assert job(tmp_path, f"{NETWORK}{line}\n")["world_size"] == 8


@examples("line")
def test_sizes_of_parts_and_options_of_commands_are_none_of_the_job(tmp_path: Path, line: str) -> None:
    assert job(tmp_path, f"{NETWORK}{line}\n")["world_size"] is None


def test_what_nccl_was_told_goes_before_what_others_say(tmp_path: Path) -> None:
    text = f"{HEAD}comm 0x55 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 8f000 commId 0x1 - Init START\n"
    assert job(tmp_path, f"{text}rank 0, world_size=8\n")["world_size"] == 2


def test_the_ranks_of_a_group_alone_are_no_size_of_the_job(tmp_path: Path) -> None:
    split = (
        "ncclCommSplit comm 0x7f rank 1 nranks 4 cudaDev 1 nvmlDev 5 busId 8f000 parent 0x66 splitCount 1 color 3 key 1"
    )
    document = job(tmp_path, f"{HEAD}{split} - Init START\n")
    assert document["world_size"] is None
    assert [communicator["nranks"] for communicator in document["communicators"]] == [4]


@examples("line")
def test_the_host_of_a_rank_by_its_launcher(tmp_path: Path, line: str) -> None:
    assert job(tmp_path, f"{NETWORK}{line}\n")["hosts"] == ["gpu-a01", "gpu-b02.cluster.local"]


@examples("line")
def test_hosts_that_no_rank_is_said_to_run_on_are_none(tmp_path: Path, line: str) -> None:
    assert job(tmp_path, f"{NETWORK}{line}\n")["hosts"] == ["gpu-a01"]


def test_the_list_of_devices_is_a_job_of_its_own_without_a_log(tmp_path: Path) -> None:
    document = job(tmp_path, DEVICES + ROW)
    assert (document["name"], document["world_size"], document["hosts"]) == ("job", 2, ["gpu-a01"])
    assert [(rank["rank"], rank["pid"], rank["cuda_dev"], rank["bus_id"]) for rank in document["ranks"]] == [
        (0, 4711, 0, "0000:8f:00.0"),
        (1, 4711, 1, None),  # the number of a bus alone is no bus id
    ]


def test_the_list_of_devices_completes_the_job_of_its_log(tmp_path: Path) -> None:
    log = "gpu-a01:4711:4720 [0] NCCL INFO Using network Socket\n"
    for text in (DEVICES + ROW + log, DEVICES.partition("#\n")[2] + log):
        document = job(tmp_path, text)
        assert document["networks"] == ["Socket"]
        assert [(rank["rank"], rank["host"], rank["bus_id"]) for rank in document["ranks"]] == [
            (0, "gpu-a01", "0000:8f:00.0"),
            (1, "gpu-a01", None),
        ]


def test_runs_of_other_processes_are_jobs_of_their_own(tmp_path: Path) -> None:
    again = DEVICES.replace("4711", "4800")
    records = jobs(tmp_path, DEVICES + ROW + again + ROW)
    assert [(record["name"], [rank["pid"] for rank in record["ranks"]]) for record in records] == [
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
    assert [communicator["nranks"] for communicator in job(tmp_path, line)["communicators"]] == [8]
    choice = f"{HEAD}524288 Bytes -> Algo 0 proto 1 time 138.4\n"
    assert [
        communicator["nranks"] for communicator in job(tmp_path, line.partition(":")[2] + choice)["communicators"]
    ] == [8]


@examples("line", "network")
def test_the_network_by_nccl_of_any_age(tmp_path: Path, line: str, network: str) -> None:
    assert job(tmp_path, f"{HEAD}{line}\n")["networks"] == [network]


@examples("line")
def test_plugins_of_something_else_are_no_network(tmp_path: Path, line: str) -> None:
    assert job(tmp_path, f"{HEAD}{line}\n")["networks"] == []


def test_heads_without_the_word_nccl_are_a_log(tmp_path: Path) -> None:
    document = job(tmp_path, "gpu-a01:700:785 [0] INFO 0 -> 1 via direct shared memory\n")
    assert document["hosts"] == ["gpu-a01"]


def test_a_nic_stands_in_the_matrix_under_the_name_of_its_column_too(tmp_path: Path) -> None:
    text = (
        "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV18\tPIX\t0-31\t0\n"
        "GPU1\tNV18\t X \tSYS\t32-63\t1\n"
        "NIC0\tPIX\tSYS\t X \t\t\n\nNIC Legend:\n\n  NIC0: mlx5_0\n"
    )
    (node,) = said(tmp_path, text)["facts"]["nodes"]
    assert node["matrix"]["GPU0"] == {"GPU1": "NV18", "mlx5_0": "PIX", "NIC0": "PIX"}
    assert node["matrix"]["NIC0"] == node["matrix"]["mlx5_0"] == {"GPU0": "PIX", "GPU1": "SYS"}
