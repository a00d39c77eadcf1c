"""Tests of perftest whose pair of hosts is known."""

import pytest

from topodiag.evidence.network.perftest import pair_runs

TEST = """### {a} -> {b}: ib_write_bw -d mlx5_4 --report_gbits
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_4
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             {rate}             {rate}\t\t   0.748444
"""


def measured(*rates: tuple[str, str, str]) -> str:
    return "".join(TEST.format(a=a, b=b, rate=rate) for a, b, rate in rates)


@pytest.mark.parametrize(
    ("text", "source", "pairs"),
    [
        (measured(("ws-1", "ws-2", "391.84"), ("ws-1", "ws-3", "196.31")), "x", [("ws-1", "ws-2"), ("ws-1", "ws-3")]),
        (measured(("ws-1", "ws-2", "391.84")), "out/gpu-07-gpu-12.txt", [("ws-1", "ws-2")]),
        (TEST.format(a="", b="", rate="391.84"), "out/gpu-07-gpu-12.txt", [("gpu-07", "gpu-12")]),
        (TEST.format(a="", b="", rate="391.84"), "ib_write_bw_n3_to_n14.log", [("n3", "n14")]),
        (TEST.format(a="", b="", rate="391.84"), "write-bw-2026-04-07.log", []),
    ],
    ids=["lines above", "a line before the name", "name of the file", "other signs in the name", "a date"],
)
def test_tests_whose_pair_is_known_are_runs_of_two_hosts(text: str, source: str, pairs: list[tuple[str, str]]) -> None:
    runs = pair_runs(text, source)
    assert [run.hosts for run in runs] == pairs
    assert all(run.top == (65536, pytest.approx(391.84 / 8)) for run in runs[:1])
