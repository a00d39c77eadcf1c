"""NVL003: NVLink error counters."""

from typing import Any

import pytest

from tests.checks.bent import Built, machine
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.nvlink.errors import NvlinkErrors, unpack_ber
from topodiag.model.node import Node


def judge(node: Node) -> Any:
    return NvlinkErrors().judge(node, ())


def counting(name: str, *reading: float) -> Node:
    """Eight H100 whose links have the counter at 0, except link 6 of GPU3: first and later value, 10 s apart."""
    quiet = [0, 0, 10.0] if len(reading) > 1 else [0]
    loud = [*reading, 10.0] if len(reading) > 1 else [*reading]
    path = f"nvlinks/{{}}/counters/{name}"
    return machine("hgx_h100", {f"gpus/all/{path.format('all')}": quiet, f"gpus/3/{path.format(6)}": loud})


@examples("node", "changes", "wanted")
def test_error_counters_of_links(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(judge(machine(node, changes, counting=counting)), wanted) == wanted


def test_the_bit_error_rate_is_unpacked_as_nvml_packs_it() -> None:
    assert unpack_ber(0xFFF) == 0.0
    assert unpack_ber(0x30B) == pytest.approx(3e-11)
    assert unpack_ber(None) is None
    assert unpack_ber(1 << 40) is None
