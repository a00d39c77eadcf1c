"""Published healthy results over the raw model: what the calibration is fitted on. Reads ../shared/corpus/healthy.csv
where it stands; each row's machine is named by healthy_machines.toml."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from topodiag.cost.calibration import Calibration, Observation, generation_of
from topodiag.cost.expect import Expected, expected, recalibrated
from topodiag.cost.nccl.choice import LARGE_BYTES
from topodiag.model.bench import BenchDevice, BenchRow, BenchRun, Timing

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parents[1] / "shared" / "corpus"


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

    @cached_property
    def raw(self) -> Expected:
        """Without any calibration."""
        return expected(self.run, fitted=Calibration(), **self.options)

    def expected(self, fitted: Calibration) -> Expected:
        return recalibrated(self.run, self.raw, fitted)


def rows(path: Path = CORPUS / "healthy.csv") -> list[Healthy]:
    machines = tomllib.loads((HERE / "healthy_machines.toml").read_text(encoding="utf-8"))["machine"]
    with path.open(encoding="utf-8", newline="") as file:
        return [_row(each, machines) for each in csv.DictReader(file)]


def _row(row: dict[str, str], machines: list[dict[str, Any]]) -> Healthy:
    machine = next(each for each in machines if re.search(each["match"], row["system"]))
    gpus = int(row["gpus"]) if row["gpus"] else None
    nodes = int(row["nodes"]) if row["nodes"] else None
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


def observations(healthy: list[Healthy]) -> Iterator[Observation]:
    """Measured over raw, for every row with an expectation."""
    for row in healthy:
        if row.none:
            continue
        made = row.raw
        if made.setup is None or made.rates is None or made.expectation is None:
            continue
        at_size = made.rates.busbw.get(row.size) or made.rates.peak
        yield Observation(
            generation_of(made.setup.sm),
            made.rates.transport,
            row.collective,
            row.group,
            row.busbw / at_size,
            row.source.split("#")[0],
        )
