"""Texts that a parallel shell has put a host's name before each line of."""

import pytest

from tests.tables import examples
from topodiag.evidence.intake.bundle import Evidence
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.intake.same_node import host_of_text
from topodiag.evidence.interface import Blob
from topodiag.evidence.signatures.wrappers import of_one_host

MATRIX = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV18\t0-55\t0\nGPU1\tNV18\t X \t56-111\t1\n"


def prefixed(prefix: str, text: str = MATRIX) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize("prefix", ["gpu-001: ", "gpu-001.example.org: ", "0: ", " 3: ", "c1_n2:"])
def test_a_prefix_that_all_lines_share_is_taken_off(prefix: str) -> None:
    assert of_one_host(prefixed(prefix)) == (prefix.strip(" :"), MATRIX)


@examples("text")
def test_text_without_one_shared_prefix_is_left_alone(text: str) -> None:
    assert of_one_host(text) == ("", text)


def test_a_prefixed_file_is_read_as_the_file_that_it_was_and_its_lines_keep_their_numbers() -> None:
    node = read_node(Evidence("topo.txt", blobs=[Blob("topo.txt", prefixed("gpu-001: ").encode())]))
    assert [item.kind for item in node.inputs] == ["nvidia-smi-topo"]
    numa = node.node.gpus[1].numa
    assert (numa.value, numa.origin.line) == (1, 3)


@pytest.mark.parametrize("clock", ["2026-03-02T07:02:{:02d}+0000 n1", "07:02:{:02d} n1", "2026-03-02_07:02:{:02d} n1"])
def test_a_clock_before_each_line_is_no_label(clock: str) -> None:
    text = "".join(clock.format(at) + " kernel: NVRM: Xid (PCI:0000:61:00): 119, pid=1\n" for at in range(5))
    assert of_one_host(text)[0] == ""
    assert host_of_text(Blob("kernel.txt", text.encode())) in ("", "n1")


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("uname: Linux tin-4 6.1.0-9-generic #1 SMP x86_64 GNU/Linux\n", "tin-4"),
        ("Linux version 6.1.0-9-generic (builder@farm)\n", ""),
        ("3月 04 05:06:07 tin-4 kernel: usb 1-1: new device\n", "tin-4"),
    ],
)
def test_a_text_names_its_host_by_uname_and_the_journal(text: str, host: str) -> None:
    assert host_of_text(Blob("kernel.txt", text.encode())) == host
