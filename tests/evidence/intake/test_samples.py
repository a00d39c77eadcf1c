"""Two pasted readings of one counter are two samples where names or a repeated command say so, and nowhere else."""

import pytest

from topodiag.evidence.intake.bundle import Evidence
from topodiag.evidence.intake.reader import as_samples, read_node
from topodiag.evidence.interface import Blob
from topodiag.model.node import Node

FILE = "/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_errors"


def node(**texts: str) -> Node:
    evidence = Evidence("pasted")
    evidence.blobs.extend(Blob(name.replace("_", "."), text.encode()) for name, text in texts.items())
    return read_node(evidence).node


def errors(machine: Node) -> tuple[int | None, int | None]:
    counter = machine.nics[0].ports[0].counters["port_rcv_errors"]
    return counter.first.value, counter.delta


@pytest.mark.parametrize(("one", "two"), [("before", "after"), ("pre", "post"), ("n1_t0", "n1_t1"), ("start", "end")])
def test_names_that_differ_in_a_word_of_time_are_two_samples(one: str, two: str) -> None:
    assert errors(node(**{f"{two}_txt": f"{FILE}:9\n", f"{one}_txt": f"{FILE}:3\n"})) == (3, 6)


def test_texts_of_two_names_are_not_two_samples() -> None:
    assert errors(node(n1_txt=f"{FILE}:3\n", n2_txt=f"{FILE}:9\n")) == (3, None)


def test_a_later_text_without_an_earlier_one_is_the_only_reading() -> None:
    assert errors(node(after_txt=f"{FILE}:9\n")) == (9, None)


def test_a_command_that_stands_twice_in_one_text_was_run_twice() -> None:
    text = f"$ grep . {FILE}\n{FILE}:3\n$ sleep 60\n$ grep . {FILE}\n{FILE}:9\n"
    machine = node(paste_txt=text)
    assert errors(machine) == (3, 6)
    origin = machine.nics[0].ports[0].counters["port_rcv_errors"].later.origin
    assert origin.line == 5


def test_a_command_after_others_on_its_line_was_run_twice_too() -> None:
    text = f"$ date; grep . {FILE}\n{FILE}:3\n$ sleep 60; date; grep . {FILE}\n{FILE}:9\n"
    assert errors(node(paste_txt=text)) == (3, 6)


def test_one_command_on_two_hosts_is_no_second_sample() -> None:
    text = f"root@n1:~# grep . {FILE}\n{FILE}:3\nroot@n2:~# grep . {FILE}\n{FILE}:9\n"
    (whole,) = as_samples([Blob("paste.txt", text.encode())])
    assert not whole.later


def test_a_command_for_another_interface_is_no_second_sample() -> None:
    text = "$ ethtool -S eth0 | grep crc\n rx_crc_errors_phy: 3\n$ ethtool -S eth1 | grep crc\n rx_crc_errors_phy: 9\n"
    machine = node(paste_txt=text)
    assert [device.counters["rx_crc_errors_phy"].delta for device in machine.netdevs] == [None, None]


def test_counters_of_ethtool_that_grep_picked_are_read_and_compared() -> None:
    run = "$ ethtool -S eth0 | grep crc\n     rx_crc_errors_phy: {}\n"
    (device,) = node(paste_txt=run.format(3) + run.format(40)).netdevs
    assert device.counters["rx_crc_errors_phy"].delta == 37


def test_captured_texts_are_left_as_the_manifest_has_them() -> None:
    blob = Blob("a", b"x")
    assert as_samples([blob]) == [blob]
