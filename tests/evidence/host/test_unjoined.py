"""Processes of nccl-tests that one command started and that do not know of each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import loud
from topodiag.evidence.host.unjoined import unjoined

COMMAND = "$ mpirun -np 2 -H n1,n2 ./build/all_reduce_perf -b 256M -e 256M -g 2\n"
HEAD = "# nThread 1 nGpus 2 minBytes 268435456 maxBytes 268435456 step: 1048576(bytes) warmup iters: 5 iters: 20\n"
ROW = "#  Rank  {} Group  0 Pid   {} on   {} device  {} [0x0{}] NVIDIA H100\n"


def listed(host: str, pid: int, first: int = 0) -> str:
    return "".join(ROW.format(first + device, pid, host, device, device) for device in range(2))


ALONE = HEAD + listed("n1", 2832) + HEAD + listed("n2", 3255)
JOINED = HEAD + listed("n1", 2832) + listed("n2", 3255, 2)


def test_two_lists_of_one_command_that_begin_with_rank_0_are_told(tmp_path: Path) -> None:
    assert loud(tmp_path, COMMAND + ALONE) == ["JOB001"]
    [(part, words, number, _)] = unjoined(enumerate((COMMAND + ALONE).split("\n"), 1))
    assert (part, number) == ("ranks-alone", 6)
    assert words == "2 processes of one command call themselves rank 0, on n1, n2"


def test_slurm_starts_one_job_where_it_names_mpi() -> None:
    command = "$ srun --mpi=pmix -n 2 ./build/all_reduce_perf -g 2\n"
    assert list(unjoined(enumerate((command + ALONE).split("\n"), 1)))


@pytest.mark.parametrize(
    "text",
    [
        COMMAND + JOINED,
        ALONE,
        "$ pdsh -w n[1-2] ./build/all_reduce_perf -g 2\n" + ALONE,
        "$ srun -n 2 ./build/all_reduce_perf -g 2\n" + ALONE,
        "$ mpirun -np 1 ./build/all_reduce_perf -g 2\n" + HEAD + listed("n1", 2832)
        + "$ mpirun -np 1 -H n2 ./build/all_reduce_perf -g 2\n" + HEAD + listed("n2", 3255),
        COMMAND + JOINED + HEAD + listed("n1", 5832) + listed("n2", 6255, 2),
    ],
)  # fmt: skip
def test_tests_that_are_meant_for_one_node_each_are_not(text: str) -> None:
    assert not list(unjoined(enumerate(text.split("\n"), 1)))
