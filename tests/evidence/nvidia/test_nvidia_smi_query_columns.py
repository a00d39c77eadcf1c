"""`nvidia-smi --query-gpu` as CSV: columns by name, in any order and with or without their heading."""

from __future__ import annotations

from tests.evidence.filled import node_of, read, recognises

HEAD = (
    "index, pci.bus_id, name, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, pcie.link.width.max\n"
)
ROWS = (
    "0, 00000000:53:00.0, NVIDIA H100 80GB HBM3, 5, 5, 16, 16\n"
    "1, 00000000:75:00.0, NVIDIA H100 80GB HBM3, 3, 5, 8, 16\n"
)
COMMAND = (
    "$ nvidia-smi --query-gpu=index,pci.bus_id,name,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,"
    "pcie.link.width.max --format=csv,noheader\n"
)


def test_columns_are_read_by_name_with_a_heading_or_by_the_command_before() -> None:
    for text in (HEAD + ROWS, COMMAND + ROWS, COMMAND + HEAD + ROWS):
        node = node_of(text)
        assert [(gpu.index, gpu.bus_id) for gpu in node.gpus] == [(0, "0000:53:00.0"), (1, "0000:75:00.0")]
        slow = node.pci["0000:75:00.0"]
        assert (slow.gen.value, slow.max_gen.value, slow.width.value, slow.max_width.value) == (3, 5, 8, 16)


def test_the_mask_of_clock_reasons_is_read_by_its_bits() -> None:
    node = node_of("index, clocks_event_reasons.active, utilization.gpu [%]\n0, 0x0000000000000088, 97 %\n")
    assert set(node.gpus[0].throttle.get(())) == {"hw_slowdown", "hw_power_brake_slowdown"}


def test_a_row_of_another_width_and_other_csv_are_left_alone() -> None:
    _, parsed = read("nvidia-smi-query", HEAD + "0, 00000000:53:00.0\n")
    assert parsed.records == []
    assert not recognises("nvidia-smi-query", "name, size, time\nall_reduce, 8, 12\n")
