"""HST007: the kernel stops, a processor hangs, or memory loses data."""

from dataclasses import replace

from tests.checks import nodes
from tests.checks.host.test_storage import node
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.host.machine import MachineStops


@examples("lines", "part", "wanted")
def test_what_the_kernel_says_of_the_machine(lines: list[str], part: bool | None, wanted: Wanted) -> None:
    made = node(*lines)
    outcome = MachineStops().judge(replace(made, topics=frozenset()) if part else made)
    assert shown(outcome, wanted) == wanted


def test_a_machine_without_a_kernel_log_is_unknown() -> None:
    assert shown(MachineStops().judge(nodes.hgx_h100()), "unknown") == "unknown"
