"""Two pasted readings of one counter are two samples where names or a repeated command say so, and nowhere else."""

from tests.tables import examples
from topodiag.evidence.intake.bundle import Evidence
from topodiag.evidence.intake.reader import as_samples, read_node
from topodiag.evidence.interface import Blob
from topodiag.model.node import Node

FILE = "/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_errors"


def node(texts: dict[str, str]) -> Node:
    evidence = Evidence("pasted")
    evidence.blobs.extend(Blob(name, text.replace("{}", FILE).encode()) for name, text in texts.items())
    return read_node(evidence).node


@examples("texts", "first", "growth", "line")
def test_readings_are_samples_where_names_or_commands_say_so(
    texts: dict[str, str], first: int, growth: int | None, line: int | None
) -> None:
    """The texts by their names, where `{}` is the path of the counter; what the counter was first, by how much it grew,
    and the line of the later reading."""
    counter = node(texts).nics[0].ports[0].counters["port_rcv_errors"]
    assert (counter.first.value, counter.delta) == (first, growth)
    assert line is None or counter.later.origin.line == line


def test_one_command_on_two_hosts_is_no_second_sample() -> None:
    text = f"root@n1:~# grep . {FILE}\n{FILE}:3\nroot@n2:~# grep . {FILE}\n{FILE}:9\n"
    (whole,) = as_samples([Blob("paste.txt", text.encode())])
    assert not whole.later


def test_a_command_for_another_interface_is_no_second_sample() -> None:
    text = "$ ethtool -S eth0 | grep crc\n rx_crc_errors_phy: 3\n$ ethtool -S eth1 | grep crc\n rx_crc_errors_phy: 9\n"
    machine = node({"paste.txt": text})
    assert [device.counters["rx_crc_errors_phy"].delta for device in machine.netdevs] == [None, None]


def test_counters_of_ethtool_that_grep_picked_are_read_and_compared() -> None:
    run = "$ ethtool -S eth0 | grep crc\n     rx_crc_errors_phy: {}\n"
    (device,) = node({"paste.txt": run.format(3) + run.format(40)}).netdevs
    assert device.counters["rx_crc_errors_phy"].delta == 37


def test_captured_texts_are_left_as_the_manifest_has_them() -> None:
    blob = Blob("a", b"x")
    assert as_samples([blob]) == [blob]
