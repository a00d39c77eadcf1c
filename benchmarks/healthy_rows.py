"""Published healthy results over the raw model: what the calibration is fitted on. Reads ../shared/corpus/healthy.csv
where it stands, and published.csv; each row's machine is named by healthy_machines.toml."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from calibrating import Observation

from topodiag.expect.calibration import Calibration, generation_of
from topodiag.expect.expect import Expected, expected
from topodiag.expect.stages import NEAR, net_speeds
from topodiag.expect.wires import WIRES
from topodiag.hardware import catalog
from topodiag.model.bench import BenchDevice, BenchRow, BenchRun, Timing
from topodiag.nccl.tuning.choice import LARGE_BYTES

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parents[1] / "shared" / "corpus"
MORE = HERE / "published.csv"
"""Further published results: for the fit, and to see that the model holds beyond the rows of the goal."""


@dataclass(frozen=True)
class Healthy:
    """One published row; `none` says why no expectation is asked for."""

    system: str
    nodes: int | None
    collective: str
    size: int
    busbw: float
    source: str
    run: BenchRun
    options: dict[str, Any]
    group: str = ""
    none: str = ""

    @property
    def name(self) -> str:
        return f"{self.system[:52]} {self.collective}"

    @property
    def machine(self) -> str:
        """Its build: the system, or else the GPUs or NICs."""
        named = next((device.name for device in self.run.devices), "")
        return str(self.options.get("system") or named or self.options.get("nics"))

    @cached_property
    def raw(self) -> Expected:
        """Without any calibration."""
        return expected(self.run, fitted=Calibration(), **self.options)

    def expected(self, fitted: Calibration) -> Expected:
        return expected(self.run, fitted=fitted, **self.options)


def rows(path: Path = CORPUS / "healthy.csv") -> list[Healthy]:
    machines = tomllib.loads((HERE / "healthy_machines.toml").read_text(encoding="utf-8"))["machine"]
    with path.open(encoding="utf-8", newline="") as file:
        return [_row(each, machines) for each in csv.DictReader(file)]


def _row(row: dict[str, str], machines: list[dict[str, Any]]) -> Healthy:
    machine = next((each for each in machines if re.search(each["match"], row["system"])), None) or _read(row["system"])
    gpus = int(row["gpus"]) if row["gpus"] else machine.get("ranks")
    nodes = int(row["nodes"]) if row["nodes"] else machine.get("nodes")
    collective = "all_reduce" if row["collective"] == "any" else row["collective"]
    size = int(row["size_bytes"]) if row["size_bytes"] else LARGE_BYTES
    busbw = float(row["busbw_GBps"])
    devices: tuple[BenchDevice, ...] = ()
    if "gpu" in machine and gpus and nodes:
        devices = tuple(
            BenchDevice(rank, f"host{rank * nodes // gpus}", rank % (gpus // nodes), machine["gpu"])
            for rank in range(gpus)
        )
    timing = Timing(busbw_gbs=busbw, algbw_gbs=float(row["algbw_GBps"]) if row["algbw_GBps"] else None)
    run = BenchRun(
        collective,
        (BenchRow(size, out_of_place=timing),),
        devices,
        gpus,
        nccl=(row["nccl_version"] or machine.get("version", "")),
        source=row["source_url"],
    )
    options: dict[str, Any] = {"nodes": nodes}
    if "system" in machine:
        options["system"] = machine["system"]
    if "nics" in machine:
        options["nics"] = (machine["nics"][0], float(machine["nics"][1]))
    for key in ("network", "env"):
        if key in machine:
            options[key] = machine[key]
    return Healthy(
        row["system"], nodes, collective, size, busbw, row["source_url"], run, options,
        machine.get("group", ""), machine.get("none", ""),
    )  # fmt: skip


_GPUS = {
    "GB300": "NVIDIA GB300",
    "GB200": "NVIDIA GB200",
    "GH200": "NVIDIA GH200 480GB",
    "B300": "NVIDIA B300",
    "B200": "NVIDIA B200",
    "H200": "NVIDIA H200",
    "H100": "NVIDIA H100 80GB HBM3",
    "H20": "NVIDIA H20",
    "H800": "NVIDIA H800",
    "A800": "NVIDIA A800-SXM4-80GB",
    "A100": "NVIDIA A100-SXM4-80GB",
    "V100": "Tesla V100-SXM2-32GB",
    "L40S": "NVIDIA L40S",
}
_NICS = re.compile(r"\b([0-9]{1,2}) ?x ?(?:CX[0-9] )?([0-9]{2,3}) ?G")


def _read(text: str) -> dict[str, Any]:
    """A row that healthy_machines.toml does not name: what its own words say, as a user would give it."""
    made: dict[str, Any] = {"group": text}
    nics = _NICS.search(text)
    if nics is not None:
        made["nics"] = [int(nics[1]), int(nics[2])]
    spec = catalog.system_by_product(text)
    if spec is not None:
        return made | {"system": spec.name}
    name = next((full for short, full in _GPUS.items() if re.search(rf"\b{short}\b", text)), None)
    return made | ({"gpu": name} if name else {"none": "its machine is not recognised"})


def observations(healthy: list[Healthy]) -> Iterator[Observation]:
    """Measured over raw, for every row with an expectation; what a ring over NICs reached also over their line rate."""
    for row in healthy:
        if row.none:
            continue
        made, source = row.raw, row.source.split("#")[0]
        if made.rates is None or made.expectation is None:
            continue
        at_size = made.rates.busbw.get(row.size) or made.rates.peak
        generation = generation_of(made.setup.sm) if made.setup is not None else ""
        transport = made.rates.transport
        yield Observation(generation, transport, row.collective, row.group, row.busbw / at_size, source)
        if made.setup is not None and transport.endswith("-ring"):
            line = made.setup.domain * sum(net_speeds(made.setup.tree)) / 8
            # Where PCIe is the bound, or NICs stay idle, it says nothing of wires.
            if made.rates.peak >= NEAR * line:
                wires = f"{made.setup.network}-{WIRES}"
                yield Observation("", wires, row.collective, row.group, row.busbw / line, source)
