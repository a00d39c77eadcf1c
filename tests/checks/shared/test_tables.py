"""What a table of any script shows: the row that is not as its siblings, or not as the table says it should be."""

from __future__ import annotations

import pytest

from topodiag.checks.shared.tables import reported_by_tables
from topodiag.evidence.interface import Blob
from topodiag.evidence.table import tables_of
from topodiag.model.node import Node

LIST = "#  Rank  {} Group  0 Pid {} on    {} device  {} [0x1a] NVIDIA H100 80GB HBM3\n"
MPI = "$ mpirun -np 2 -H n1,n2 ./build/all_reduce_perf -g 1\n"
PS = " PID  STAT WCHAN                    ELAPSED      COMMAND\n{}\n"
STEP = "rank  data_ms  step_ms\n0     4.1      120.0\n1     4.0      120.1\n2     {}    120.2\n3     4.2      119.9\n"


def faults(text: str) -> list[str]:
    node = Node("a node", tables=tuple(tables_of(Blob("out.txt", text.encode()))))
    return [event.kind for event in reported_by_tables(node)]


@pytest.mark.parametrize(
    ("text", "bad", "well", "fault"),
    [
        (
            "gpu  link  state\n2    8     active\n2    9     {}\n2    10    active\n",
            "inactive",
            "active",
            "nvlink.down",
        ),
        (
            "GPU  links_active  links_expected\n0    18            18\n1    {}            18\n",
            "14",
            "18",
            "nvlink.down",
        ),
        ("gpu,dbe_volatile\n0,0\n2,{}\n", "1", "0", "gpu.memory"),
        ("gpu  sm_clock  util\n0  1980  100\n1  1980  100\n2  {}\n3  1975  100\n", "500  100", "500  0", "gpu.clocks"),
        (STEP, "190.2", "9.2", "job.rank_late"),
        ("h1: trust=dscp\nh2: trust=dscp\nh3: trust=dscp\nh4: trust={}\n", "pcp", "dscp", "network.lossy"),
        ("h1: mtu=9000\nh2: mtu=9000\nh3: mtu={}\n", "1500", "9000", "network.mtu"),
        ("n1: NCCL_ALGO=Ring\nn2: NCCL_ALGO=Ring\nn3: NCCL_ALGO={}\n", "Tree", "Ring", "job.settings_differ"),
        (PS, "15 DNl nfs_start_io_read 1-22:05 python", "15 Sl nfs_start_io_read 1-22:05 python", "storage.trouble"),
        (
            "0:1  LnkCap: Width x4    LnkSta: Width x4\n0:2  LnkCap: Width x4    LnkSta: Width {}\n",
            "x2",
            "x4",
            "pcie.degraded",
        ),
        (LIST.format(0, 71, "n1", 0) + LIST.format("{}", 72, "n1", 0), "0", "1", "gpu.shared"),
        (MPI + LIST.format(0, 71, "n1", 0) + LIST.format("{}", 72, "n2", 0), "0", "1", "benchmark.ranks_alone"),
        ('[{{"component": "fabric-manager", "health": "{}", "reason": "r"}}]', "Unhealthy", "Healthy", "nvlink.fabric"),
    ],
)
def test_the_row_that_stands_apart_is_told(text: str, bad: str, well: str, fault: str) -> None:
    assert faults(text.format(bad)) == [fault]
    assert faults(text.format(well)) == []


@pytest.mark.parametrize(
    "text",
    [
        "gpu  link  state\n2    8     inactive\n2    9     inactive\n2    10    inactive\n",  # all alike
        "n1: NCCL_ALGO=Ring\nn2: NCCL_ALGO=Tree\n",  # of two hosts none is odd
        LIST.format(0, 71, "n1", 0) + LIST.format(0, 72, "n2", 0),  # tests that each host started for itself
        LIST.format(0, 71, "n1", 0) + LIST.format(0, 71, "n1", 0),  # quoted twice
        LIST.format(0, 71, "n1", 0) + "n1: Test NCCL failure\n# nThread 1\n" + LIST.format(0, 72, "n1", 0),  # again
        '[{"component": "name of something", "health": "Unhealthy"}]',  # of no part that is known
    ],
)
def test_what_is_alike_or_of_nothing_known_is_not_told(text: str) -> None:
    assert faults(text) == []
