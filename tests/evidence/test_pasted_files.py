"""Files of /sys and /proc as a shell shows them are read as the captured files are."""

import time

import pytest

from tests.evidence.filled import node_of
from tests.tables import examples
from topodiag.evidence.pasted_files import shown_files
from topodiag.model.provenance import Topic

PORT = "/sys/class/infiniband/mlx5_0/ports/1"


def shown(text: str) -> list[tuple[str, str, str]]:
    return [(file.op, file.path, file.text) for file in shown_files(text)]


def test_what_follows_the_next_prompt_is_not_of_the_file() -> None:
    text = "$ cat /sys/class/net/ib0/mtu\n4092\n$ uptime\n 10:11:12 up 3 days\n"
    assert shown(text) == [("=", "sys/class/net/ib0/mtu", "4092")]


def test_a_folder_and_a_star_leave_two_slashes() -> None:
    counter = "sys/class/infiniband/rocep3s0f1/ports/1/hw_counters/local_ack_timeout_err"
    assert shown(f"/{counter.replace('counters/', 'counters//')}:17\n") == [("=", counter, "17")]
    assert shown("/sys/class/infiniband/rocep3s0f1/ports/1/hw_counters/\n") == []


def test_cat_of_several_files_is_not_told_apart() -> None:
    assert shown("$ cat /sys/class/net/ib0/mtu /sys/class/net/ib1/mtu\n4092\n2044\n") == []


def test_a_paste_is_a_part_so_what_it_does_not_show_may_be_there() -> None:
    node = node_of(f"{PORT}/counters/port_rcv_errors:3\n")
    assert not node.topics & {Topic.RDMA_DEVICES, Topic.GPUS, Topic.OS}


@examples("text")
def test_a_mention_of_a_file_shows_nothing(text: str) -> None:
    assert shown(text) == []


@pytest.mark.parametrize(
    "line", ["/sys/" + "a/" * 2000, "cat /sys/a" * 400, "/sys/x" * 600, "$ ls /proc/" + " " * 4000]
)
def test_long_lines_cost_little_time(line: str) -> None:
    start = time.process_time()
    list(shown_files(f"{line}\n" * 20))
    assert time.process_time() - start < 1.0


def test_a_long_name_that_is_none_costs_no_time() -> None:
    line = "roce" * 15 + "²"
    began = time.process_time()
    assert not list(shown_files(f"$ ls /sys/class/infiniband\n{line}\n"))
    assert time.process_time() - began < 1
