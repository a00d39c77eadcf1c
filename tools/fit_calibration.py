"""Fits topodiag/expect/calibration.toml on published healthy results (../shared/corpus/healthy.csv and
benchmarks/published.csv).

    python tools/fit_calibration.py            prints the factors
    python tools/fit_calibration.py --write    writes them

The tolerances are not fitted but chosen; they stand here with their reasons.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from calibrating import fit  # noqa: E402
from healthy_rows import MORE, observations, rows  # noqa: E402

from topodiag.expect.calibration import Calibration, Factor, Tolerance  # noqa: E402

TARGET = ROOT / "topodiag" / "expect" / "calibration.toml"

TOLERANCES = (
    Tolerance("nvlink", 0.1, "published nodes lie within 7 % of the model"),
    Tolerance("nvls", 0.12, "published nodes lie within 9 % of the model"),
    Tolerance("pcie", 0.4, "host chipsets differ, and NCCL's figures between sockets are its own lower bounds"),
    Tolerance("rdma", 0.1, "published clusters on InfiniBand and RoCE lie within 7 % of the model"),
    Tolerance("rdma-p2p", 0.2, "alltoall depends on the fabric's routing: 0.88 to 0.96 published"),
    Tolerance(
        "rdma-flow", 0.4, "one flow meets hash collisions and the limits of its few channels: 0.8 to 1.1 published"
    ),
    Tolerance("rdma-wires", 0.25, "neither GPUs nor GPUDirect are known: 20 GB/s of a 200 Gb/s NIC is called usual"),
    Tolerance("xgmi", 0.25, "one system published, at 0.94"),
    Tolerance("xgmi-nodes", 0.25, "two systems published, at 1.06 and 1.07"),
    Tolerance("rdma-tree", 0.3, "two-node trees reach between the ring's rate and twice that"),
    Tolerance("cloud", 0.2, "virtual networks: 0.86 to 1.04 published"),
    Tolerance("cloud-tree", 0.5, "two-node trees reach between the ring's rate and twice that"),
    Tolerance("cloud-flow", 0.6, "one flow of a virtual network"),
    Tolerance("tcpx", 0.5, "TCP by the host's cores: 0.52 to 0.75 published of the same machine type"),
    Tolerance("slingshot", 0.3, "0.75 to 0.97 published"),
    Tolerance("slingshot-p2p", 0.7, "0.38 published"),
    Tolerance("rdma-pcie", 0.2, "one system published, at 1.17 of what NCCL reckons for PCIe"),
    Tolerance("racks", 0.5, "nothing published that NICs of racks bound"),
    Tolerance("sockets", 0.6, "TCP depends on cores, sockets and MTU"),
    Tolerance("", 0.25, "nothing published"),
)

HEADER = """\
# Residual efficiency: what published healthy runs reach of the raw model (cost/expect_rates.py), by transport, GPU
# generation and collective. Written by tools/fit_calibration.py from published nccl-tests results; do not edit.
#
# factor       each system counts once, drawn towards the wider cell (without collective, then without generation)
# low, high    the least and the greatest ratio of a row; rows, systems: how many rows of which systems
# tolerance    how far below its expectation a run may fall before it is called low; chosen, with the reason
"""


def text(made: Calibration) -> str:
    parts = [HEADER]
    for tolerance in made.tolerances.values():
        parts.append(
            f'[[tolerance]]\ntransport = "{tolerance.transport}"\nbelow = {tolerance.below}\nwhy = "{tolerance.why}"\n'
        )
    for factor in sorted(made.factors.values(), key=lambda f: (f.transport, f.generation, f.collective)):
        parts.append(_factor(factor))
    return "\n".join(parts)


def _factor(factor: Factor) -> str:
    lines = ["[[factor]]", f'transport = "{factor.transport}"']
    for name in ("generation", "collective"):
        if getattr(factor, name):
            lines.append(f'{name} = "{getattr(factor, name)}"')
    lines += [
        f"factor = {factor.factor:.3f}",
        f"low = {factor.low:.3f}",
        f"high = {factor.high:.3f}",
        f"rows = {factor.rows}",
        f"systems = [{', '.join(repr(each).replace(chr(39), chr(34)) for each in factor.systems)}]",
    ]
    if factor.collective:
        lines += ["sources = [", *(f'    "{source}",' for source in factor.sources), "]"]
    return "\n".join(lines) + "\n"


def main() -> None:
    made = fit(observations([*rows(), *rows(MORE)]), {each.transport: each for each in TOLERANCES})
    if "--write" in sys.argv[1:]:
        TARGET.write_text(text(made), encoding="utf-8")
        print(f"wrote {TARGET.relative_to(ROOT)}: {len(made.factors)} factors")
        return
    print(text(made))


if __name__ == "__main__":
    main()
