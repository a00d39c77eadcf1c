"""GPU004 by power limits alone: a limit below that of most siblings; those of a whole node are the site's choice."""

from __future__ import annotations

import pytest

from tests.evidence.filled import node_of
from topodiag.checks.gpu.clocks import ClocksHeldDown


def limits(*watts: int) -> str:
    return "index, power.limit [W]\n" + "".join(f"{at}, {each}.00 W\n" for at, each in enumerate(watts))


def test_a_power_limit_below_that_of_most_siblings_is_told() -> None:
    (finding,) = ClocksHeldDown().judge(node_of(limits(700, 700, 400, 700))).findings
    assert finding.message == "GPU2: clocks are held down, its power limit is 400 W, 700 W on its peers"


@pytest.mark.parametrize("watts", [(500, 500, 500), (700, 400), (700, 400, 700, 400), (700, 680, 700)])
def test_a_limit_of_all_or_of_half_is_the_sites_choice(watts: tuple[int, ...]) -> None:
    assert not ClocksHeldDown().judge(node_of(limits(*watts))).findings


ROCM = (
    "Device Node  IDs              Temp    Power  Partitions         SCLK     MCLK     Fan  Perf  PwrCap  VRAM%  GPU%\n"
    "              (DID,     GUID)  (Edge)  (Avg)  (Mem, Compute, ID)\n"
    "0      1     0x7550,   4418   44.0°C  50.0W  N/A, N/A, 0        {}Mhz    1258Mhz  0%   auto  304.0W  62%    {}%\n"
)


@pytest.mark.parametrize(
    ("clock", "load", "told"), [(41, 100, True), (41, 0, False), (41, 60, False), (1900, 100, False)]
)
def test_a_gpu_that_is_loaded_at_a_clock_of_sleep_is_told(clock: int, load: int, told: bool) -> None:
    findings = ClocksHeldDown().judge(node_of(ROCM.format(clock, load))).findings
    assert bool(findings) is told
    assert not told or findings[0].message == "GPU0: clocks are held down, 41 MHz under full load, as a GPU that sleeps"
