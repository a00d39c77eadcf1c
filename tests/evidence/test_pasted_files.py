"""Files of /sys and /proc as a shell shows them are read as the captured files are."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.filled import node_of
from tests.tables import examples
from topodiag.evidence.pasted_files import shown_files
from topodiag.model.topics import Topic

PORT = "/sys/class/infiniband/mlx5_0/ports/1"


def shown(text: str) -> list[tuple[str, str, str]]:
    return [(file.op, file.path, file.text) for file in shown_files(text)]


def test_grep_names_the_file_before_each_value() -> None:
    (nic,) = node_of(f'root@n1:~# grep "" {PORT}/*\n{PORT}/rate:400 Gb/sec (4X NDR)\n{PORT}/state:4: ACTIVE\n').nics
    assert (nic.ports[0].rate_gbps.value, nic.ports[0].state.value) == (400.0, "ACTIVE")
    origin = nic.ports[0].rate_gbps.origin
    assert origin is not None
    assert origin.line == 2


def test_colons_of_a_bus_id_do_not_end_the_path() -> None:
    node = node_of("/sys/bus/pci/devices/0000:1b:00.0/current_link_width:8\n")
    assert node.pci["0000:1b:00.0"].width.value == 8


@pytest.mark.parametrize("prompt", ["$ ", "# ", "user@n1:~$ ", "[root@n1 ~]# ", "$ sudo ", "> $ ", ""])
def test_cat_of_one_file_is_followed_by_what_it_holds(prompt: str) -> None:
    assert node_of(f"{prompt}cat /proc/sys/kernel/numa_balancing\n1\n").os.numa_balancing.value is True


def test_what_follows_the_next_prompt_is_not_of_the_file() -> None:
    text = "$ cat /sys/class/net/ib0/mtu\n4092\n$ uptime\n 10:11:12 up 3 days\n"
    assert shown(text) == [("=", "sys/class/net/ib0/mtu", "4092")]


def test_cat_of_several_files_is_not_told_apart() -> None:
    assert shown("$ cat /sys/class/net/ib0/mtu /sys/class/net/ib1/mtu\n4092\n2044\n") == []


def test_heads_of_several_files_are_told_apart() -> None:
    text = "==> /sys/class/net/ib0/mtu <==\n4092\n\n==> /sys/class/net/ib1/mtu <==\n2044\n"
    assert {device.name: device.mtu.value for device in node_of(text).netdevs} == {"ib0": 4092, "ib1": 2044}


def test_a_file_that_cannot_be_read_says_why() -> None:
    node = node_of("$ cat /sys/class/net/ib0/speed\ncat: /sys/class/net/ib0/speed: Invalid argument\n")
    assert "EINVAL" in node.netdevs[0].speed_mbps.why


def test_a_folder_is_listed_short_and_long() -> None:
    assert [nic.name for nic in node_of("$ ls /sys/class/infiniband\nmlx5_0  mlx5_1\n").nics] == ["mlx5_0", "mlx5_1"]
    long = (
        "$ ls -l /sys/class/infiniband/\ntotal 0\nlrwxrwxrwx 1 root root 0 Nov  1 10:10 mlx5_0 ->"
        " ../../devices/pci0000:00/0000:00:01.0/0000:18:00.0/infiniband/mlx5_0\n"
    )
    assert [(nic.name, nic.bus_id) for nic in node_of(long).nics] == [("mlx5_0", "0000:18:00.0")]


def test_a_value_that_is_shown_again_later_does_not_change_the_first_reading() -> None:
    text = f"{PORT}/counters/port_rcv_errors:3\n$ sleep 60\n{PORT}/counters/port_rcv_errors:9\n"
    assert node_of(text).nics[0].ports[0].counters["port_rcv_errors"].first.value == 3


def test_a_paste_is_a_part_so_what_it_does_not_show_may_be_there() -> None:
    node = node_of(f"{PORT}/counters/port_rcv_errors:3\n")
    assert not node.told & {Topic.RDMA_DEVICES, Topic.GPUS, Topic.OS}


@examples("text")
def test_a_mention_of_a_file_shows_nothing(text: str) -> None:
    assert shown(text) == []


@given(st.text())
def test_any_text_is_read_without_an_exception(text: str) -> None:
    list(shown_files(f"/sys/a:{text}\ncat /proc/{text}"))


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
