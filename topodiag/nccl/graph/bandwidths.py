"""The figures and names that NCCL gives to what stands in a topology file: links, CPUs, PCI classes.

Constants of src/graph/topo.h and the tables of src/graph/topo.cc. Bandwidths in GB/s, one direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from topodiag.model.nccl_enums import CpuArch, CpuVendor
from topodiag.model.nccl_tree import family_of
from topodiag.model.nccl_versions import Feature, has, is_rubin
from topodiag.nccl.graph.graph import Branch, Vertex
from topodiag.nccl.numbers import c_long, single, wrap32
from topodiag.words.own_data import own_data

T = TypeVar("T")
LOC_BW = 5000.0
MLOPART_BW = 2618.0
"""GB/s inside a GPU, and between the two partitions of one (src/graph/topo.h)."""

X86, POWER, ARM = CpuArch.X86, CpuArch.POWER, CpuArch.ARM
INTEL, AMD, ZHAOXIN = CpuVendor.INTEL, CpuVendor.AMD, CpuVendor.ZHAOXIN
ARCHES = (("x86_64", X86), ("arm64", ARM), ("ppc64", POWER))
VENDORS = (("GenuineIntel", INTEL), ("AuthenticAMD", AMD), ("CentaurHauls", ZHAOXIN), ("  Shanghai  ", ZHAOXIN))
_CLASSES: Mapping[str, str] = own_data("nccl/elements")["classes"]
_SPEEDS: Mapping[str, int] = own_data("nccl/elements")["speeds"]
"""Both by what the value of an attribute starts with."""
_UNKNOWN_SPEED = 60
_DEFAULT_LANES = 16


def nvlink_bandwidth(sm: int, minor: int) -> float:
    """Effective GB/s of one NVLink in one direction, by compute capability (ncclTopoNVLinkBw, src/graph/topo.h)."""
    if is_rubin(sm, minor):
        return single(31.2)
    if sm >= 100 and has(minor, Feature.BLACKWELL):
        return single(40.1 if has(minor, Feature.BLACKWELL_NVLINK_40_1) else 40.0)
    if sm >= 90:
        return single(20.6 if has(minor, Feature.HOPPER_NVLINK_20_6) else 20.0)
    if sm == 86:
        return 12.0
    return 18.0 if 60 <= sm < 70 else 20.0


RCCL_SM = 60
"""The compute capability that RCCL takes every GPU of AMD for (ncclTopoAddGpu, src/graph/topo.cc of RCCL 2.21.5)."""
ROME, ZEN = 2, 1
"""RCCL's models of AMD's CPUs: Rome and later, and older ones."""
ROME_CORNER = 0xF0000
"""Bits of a bus number that tell which corner of a Rome CPU a device hangs from."""
_GCN_NUMBERS = {"906": "gfx906", "908": "gfx908", "910": "gfx90a"}


def gcn_name(text: str) -> str:
    """`gfx90a` for the number 910 of older files, a name as it is (convertGcnArchToGcnArchName, RCCL 2.21.5)."""
    return _GCN_NUMBERS.get(text, text if text.startswith("gfx") else f"gfx{text}")


def xgmi_bandwidth(gcn: str) -> float:
    """GB/s that RCCL counts for an xGMI link in one direction, by architecture (ncclTopoXGMISpeed, src/graph/topo.h of
    RCCL 2.21.5)."""
    if gcn.startswith("gfx90a"):
        return 36.0
    return 48.0 if gcn.startswith("gfx94") else 24.0


def rccl_cpu_model(branch: Branch, vendor: int, minor: int) -> int:
    """As `cpu_model`, by RCCL 2.21.5: AMD's CPUs are Rome (Milan and Genoa too) or older, Intel's Skylake or older. The
    family is that of the CPUID leaf, extended family and family in one number."""
    family, model = branch.number("familyid"), branch.number("modelid")
    if vendor == AMD:
        return ROME if (family == 143 and model >= 49) or family == 175 else ZEN
    return cpu_model(branch, vendor, minor)


def cpu_bandwidth(cpu: Vertex, minor: int) -> float:
    """GB/s between two CPUs of a host, as the first of them says (ncclTopoGetInterCpuBw, src/graph/topo.cc)."""
    if cpu.arch == POWER:
        return 32.0
    if cpu.arch == ARM:
        return 6.0
    if cpu.arch == X86 and cpu.vendor == INTEL:
        return {4: 40.0, 3: 22.0, 2: 10.0}.get(cpu.model, 6.0)
    if cpu.arch == X86 and cpu.vendor == AMD:
        if has(minor, Feature.AMD_CPU_GENERATIONS):
            return {3: 32.0, 2: 24.0}.get(cpu.model, 16.0)
        return 16.0 if has(minor, Feature.AMD_CPU_LINKS) else LOC_BW
    if cpu.arch == X86 and cpu.vendor == ZHAOXIN:
        return 9.0 if cpu.model == 1 else 6.0
    return LOC_BW


def is_amd(cpu: Vertex) -> bool:
    """Whether it is an x86 CPU of AMD."""
    return cpu.arch == X86 and cpu.vendor == AMD


def is_rome(cpu: Vertex) -> bool:
    """Whether RCCL takes a CPU for AMD's Rome."""
    return is_amd(cpu) and cpu.model == ROME


def looked_up(text: str, table: Iterable[tuple[str, T]], default: T) -> T:
    """By what a text starts with, the first in the table (kvConvertToInt, src/graph/xml.h)."""
    return next((value for prefix, value in table if text.startswith(prefix)), default)


def pci_class(text: str, *, rccl: bool = False) -> str:
    """The kind of vertex of a PCI class; PCI for an unknown one. RCCL knows AMD's accelerators."""
    if rccl and text.startswith("0x120000"):
        return "GPU"
    return looked_up(text, _CLASSES.items(), "PCI")


def cpu_model(branch: Branch, vendor: int, minor: int) -> int:
    """Intel 1 Broadwell or older, 2 Skylake, 3 Sapphire Rapids, 4 Emerald Rapids or later; AMD 1 Zen 1 and 2, 2 Zen 3
    and 4, 3 Zen 5, since AMD_CPU_GENERATIONS; Zhaoxin 1 YongFeng; -1."""
    if vendor == AMD and not has(minor, Feature.AMD_CPU_GENERATIONS):
        return -1
    family, model = branch.number("familyid"), branch.number("modelid")
    if vendor == AMD:
        return {26: 3, 25: 2}.get(family_of(family), 1)
    if vendor == ZHAOXIN:
        return 1 if family == 7 and model == 0x5B else -1
    if family != 6 or model < 0x55:
        return 1
    if not has(minor, Feature.LATER_INTEL_CPUS) or model < 0x8F:
        return 2
    if has(minor, Feature.INTEL_BELOW_EMERALD) and model in (0xAD, 0xAE, 0xAF):
        return 4
    return 4 if model >= 0xCF else 3


def link_bandwidth(branch: Branch) -> float:
    """GB/s of a PCI function's link: lanes times what a lane of that speed carries."""
    width = branch.number("link_width") or _DEFAULT_LANES
    speed = looked_up(branch.required("link_speed"), _SPEEDS.items(), _UNKNOWN_SPEED)
    return wrap32(width * speed) / 80.0


def device_id(branch: Branch) -> int:
    """The four PCI ids of a function as one number (ncclTopoAddPci)."""
    shifts = {"vendor": 48, "device": 32, "subsystem_vendor": 16, "subsystem_device": 0}
    return sum(c_long(branch.attributes.get(name, "")) << shift for name, shift in shifts.items()) % (1 << 64)
