"""Looks things up in the datasheets (the TOML files beside this module); decides nothing about a node.

Each file is read on first use and kept. A look-up that finds nothing answers None: an unknown product has no
expectation, which is not the same as an expectation of nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from msgspec import convert

from topodiag.hardware.specs import GpuSpec, InstanceGroup, InstanceSpec, NicSpec, PcieGeneration, SystemSpec
from topodiag.lazy import regex
from topodiag.words.own_data import own_data

_MAX_NAME = 256
"""Longest product name that is looked at, characters; the real ones stay below 80."""

_MAX_LANES = 32
"""The widest PCIe link (PCI Express Base Specification)."""

_BRANDS = regex(r"^(?:nvidia|tesla|geforce)\s+", re.IGNORECASE)
_MIG = regex(r"\s+MIG\s.*$", re.IGNORECASE)


# --- GPUs ---------------------------------------------------------------------------------------------------


@cache
def _gpu_rows() -> tuple[tuple[str, tuple[int, ...], GpuSpec], ...]:
    """Pattern of the name, PCI device ids, product. The patterns are compiled where a search comes to them."""
    rows = []
    for family in own_data("hardware/gpus")["family"]:
        for product in family["products"]:
            row = {**family, **product}
            rows.append((row["match"], tuple(row.get("pci", ())), _gpu(row, family["name"])))
    return tuple(rows)


def _gpu(row: dict[str, Any], family: str) -> GpuSpec:
    gen, width = row["pcie"]
    rates = {
        "nvlink_line_gbs": row.get("line_gbs", 0),
        "nvlink_nccl_gbs": nvlink_nccl_gbs(row["sm"]) if row.get("nvlinks") else 0,
    }
    return convert({**row, **rates, "family": family, "pcie_gen": gen, "pcie_width": width}, GpuSpec)


@cache
def gpus() -> tuple[GpuSpec, ...]:
    """All GPU products."""
    return tuple(spec for _, _, spec in _gpu_rows())


@lru_cache(maxsize=256)
def gpu_by_name(text: str) -> GpuSpec | None:
    """The product that NVML or nvidia-smi calls `text`; None for unknown names and virtual GPUs (`GRID A100-7-40C`).

    Case, the words NVIDIA, Tesla and GeForce in front, a MIG slice at the end and the dots of a cut name do not matter.
    """
    name = " ".join(text[:_MAX_NAME].split())
    while (shorter := _BRANDS.sub("", name)) != name:
        name = shorter
    name = _MIG.sub("", name).rstrip(".").rstrip(" -")
    return next((spec for pattern, _, spec in _gpu_rows() if re.fullmatch(pattern, name, re.IGNORECASE)), None)


@cache
def _gpus_by_device() -> dict[int, GpuSpec]:
    return {device: spec for _, devices, spec in _gpu_rows() for device in devices}


def gpu_by_pci_device(device_id: int) -> GpuSpec | None:
    """The product with this PCI device id of vendor 10de. Ids that several products share (B200 boards) count once."""
    return _gpus_by_device().get(device_id)


# --- NICs ---------------------------------------------------------------------------------------------------


@cache
def nics() -> tuple[NicSpec, ...]:
    """All NIC products, each virtual function as a product of its own after its physical one."""
    return tuple(
        spec for vendor in own_data("hardware/nics")["vendor"] for row in vendor["nics"] for spec in _nic(vendor, row)
    )


def _nic(vendor: dict[str, Any], row: dict[str, Any]) -> Iterator[NicSpec]:
    gen, width = row.get("pcie", (0, 0))
    functions = [(row["device"], row["name"], row.get("is_vf", False))]
    if "vf" in row:
        functions.append((row["vf"], f"{row['name']} VF", True))
    for device, name, is_vf in functions:
        own = {"name": name, "vendor": vendor["id"], "device": device, "is_vf": is_vf}
        if "hca_type" in vendor:
            own["hca_type"] = f"{vendor['hca_type']}{device}"
        yield convert({"source": vendor["source"], **row, **own, "pcie_gen": gen, "pcie_width": width}, NicSpec)


@cache
def _nics_by_id() -> dict[tuple[int, int], NicSpec]:
    return {(spec.vendor, spec.device): spec for spec in nics()}


@cache
def _nics_by_hca_type() -> dict[str, NicSpec]:
    return {spec.hca_type: spec for spec in nics() if spec.hca_type}


def nic_by_pci_id(vendor: int, device: int) -> NicSpec | None:
    """The NIC with these PCI vendor and device ids."""
    return _nics_by_id().get((vendor, device))


def nic_by_hca_type(hca_type: str) -> NicSpec | None:
    """The NIC that ibstat and sysfs call `hca_type`, e.g. `MT4129`."""
    return _nics_by_hca_type().get(hca_type.strip().upper())


# --- systems ------------------------------------------------------------------------------------------------


@cache
def systems() -> tuple[SystemSpec, ...]:
    """All known machines, those of a fixed make before the boards that integrators build around."""
    return tuple(_system(row) for row in own_data("hardware/systems")["system"])


def _system(row: dict[str, Any]) -> SystemSpec:
    count, gbps = row.get("nics", (0, 0))
    gpu, *others = row["gpu"]
    return convert(
        {
            **row,
            "gpu": gpu,
            "other_gpus": others,
            "compute_nics": count,
            "compute_nic_gbps": gbps,
            "product_names": row.get("names", ()),
            "nvlinks_per_gpu": row.get("nvlinks"),
        },
        SystemSpec,
    )


@cache
def _products() -> tuple[tuple[str, SystemSpec], ...]:
    """Product names in lower case, the longest first."""
    named = [(name.lower(), spec) for spec in systems() for name in spec.product_names]
    return tuple(sorted(named, key=lambda item: -len(item[0])))


def system_by_product(text: str) -> SystemSpec | None:
    """The machine whose DMI product name or instance type stands in `text`; the longest name that fits wins."""
    product = text[:_MAX_NAME].lower()
    return next((spec for name, spec in _products() if _has_word(product, name)), None)


def system_by_name(text: str) -> SystemSpec | None:
    """The machine of a name, whatever its signs and case."""
    wanted = plain_name(text)
    return next((spec for spec in systems() if wanted and plain_name(spec.name) == wanted), None)


def plain_name(text: str) -> str:
    """The letters and digits of a name, by which names are compared."""
    return "".join(sign for sign in text[:_MAX_NAME].lower() if sign.isalnum())


def _has_word(text: str, word: str) -> bool:
    """Whether `word` stands in `text` with no letter or digit touching it. Patterns cost start-up time: one is compiled
    only for a word that is there."""
    return word in text and re.search(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", text) is not None


def match_system(
    gpu_spec_name: str,
    gpu_count: int,
    compute_nic_count: int | None = None,
    nvswitches: int | None = None,
    virtual: bool | None = None,
) -> tuple[SystemSpec, ...]:
    """The machines that could be the one at hand, those whose NIC count fits first; None means not known.

    `gpu_spec_name` is a `GpuSpec.name` or `.family`. A machine whose NICs are left open fits any number of them, and
    one whose switches the sources do not place fits any number of those.
    """
    fitting = [
        spec
        for spec in systems()
        if gpu_count == spec.gpus
        and _has_gpu(spec, gpu_spec_name)
        and (compute_nic_count is None or spec.compute_nics in (0, compute_nic_count))
        and (nvswitches is None or _switches_fit(spec, nvswitches))
        and (virtual is None or spec.virtual == virtual)
    ]
    if compute_nic_count is not None:
        fitting.sort(key=lambda spec: spec.compute_nics != compute_nic_count)
    return tuple(fitting)


def _has_gpu(spec: SystemSpec, name: str) -> bool:
    names = (spec.gpu, *spec.other_gpus)
    return name in names or any(gpu.family == name for gpu in gpus() if gpu.name in names)


def _switches_fit(spec: SystemSpec, seen: int) -> bool:
    if seen and spec.nvlink != "nvswitch":
        return False
    return spec.nvswitches in (0, seen) or (seen == 0 and spec.virtual)


# --- instance types -----------------------------------------------------------------------------------------


@cache
def instances() -> tuple[InstanceSpec, ...]:
    """The instance types whose PCI layout is published."""
    return tuple(_instance(row) for row in own_data("hardware/instances")["instance"])


def _instance(row: dict[str, Any]) -> InstanceSpec:
    switch = row.get("switches", True)
    groups = [InstanceGroup(numa, tuple(gpus), tuple(nics), switch) for numa, gpus, nics in row["groups"]]
    links = {f"{kind}_link": row[kind] for kind in ("gpu", "nic", "switch")}
    return convert({**row, **links, "groups": groups}, InstanceSpec)


def instance_by_name(text: str) -> InstanceSpec | None:
    """The instance type of this name, in any case, with `Standard_` in front of Azure's or without; its `name` is then
    the one that was asked for, of several with the same layout."""
    instance = text[:_MAX_NAME].strip().lower().removeprefix("standard_")
    named = (replace(spec, name=name) for spec in instances() for name in (spec.name, *spec.names))
    return next((spec for spec in named if instance == spec.name.lower()), None)


# --- links --------------------------------------------------------------------------------------------------


@cache
def _pcie_generations() -> dict[int, PcieGeneration]:
    return {row["gen"]: PcieGeneration(**row) for row in own_data("hardware/links")["pcie"]}


def pcie(gen: int) -> PcieGeneration | None:
    """A PCIe generation by number."""
    return _pcie_generations().get(gen)


def pcie_nccl_gbs(gen: int, width: int) -> float | None:
    """What NCCL reckons for a PCIe link, GB/s in one direction: lanes x value / 80 (src/graph/topo.cc)."""
    generation = pcie(gen)
    return width * generation.nccl_value / 80 if generation is not None and 0 < width <= _MAX_LANES else None


def pcie_line_gbs(gen: int, width: int) -> float | None:
    """What the lanes carry after line coding and before packet headers, GB/s in one direction."""
    generation = pcie(gen)
    return width * generation.line_gbs_per_lane if generation is not None and 0 < width <= _MAX_LANES else None


@lru_cache(maxsize=256)
def nvlink_nccl_gbs(sm: int) -> float:
    """What NCCL reckons per NVLink and direction for a compute capability (times ten), GB/s."""
    rows = own_data("hardware/links")["nvlink"]["rows"]
    return float(next((row for row in rows if row["min_sm"] <= sm <= row.get("max_sm", sm)), rows[-1])["gbs"])


@lru_cache(maxsize=256)
def smp_gbs(arch: str, vendor: str | None = None, family: int | None = None, model: int | None = None) -> float:
    """What NCCL reckons between two NUMA nodes, GB/s in one direction; 5000 (no bound) for processors it does not know.

    `arch` as `uname -m` or NCCL's topology file says it, `vendor` as CPUID does. An Intel or Zhaoxin processor whose
    family or model is not known (None or 0) counts as unknown.
    """
    table = own_data("hardware/links")["smp"]
    machine = _ARCHITECTURES.get(arch.lower(), arch.lower())
    for row in table["rows"]:
        if row["arch"] != machine or row.get("vendor", vendor) not in (vendor, (vendor or "").strip()):
            continue
        if "family" in row and (not family or (family == row["family"] and not model)):
            break  # of a processor of unknown family or model it cannot be said
        if row.get("family", family) == family and _in_range(row, model or 0):
            return float(row["gbs"])
    return float(table["unknown_gbs"])


_ARCHITECTURES = {"aarch64": "arm64", "ppc64le": "ppc64", "amd64": "x86_64"}
"""Other spellings of the names that NCCL uses."""


def _in_range(row: dict[str, Any], model: int) -> bool:
    return bool(row.get("min_model", model) <= model <= row.get("max_model", model))


def latency_us(kind: str) -> float | None:
    """Time that one hop takes in NCCL's tuning model, microseconds; `kind` is `nvlink`, `pcie` or `network`."""
    value = own_data("hardware/links")["latency"].get(f"{kind}_us")
    return float(value) if isinstance(value, float) else None
