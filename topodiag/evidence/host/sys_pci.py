"""`/sys/bus/pci/devices` as a tree: what every PCI function is, where it hangs, and what its link trained to."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from topodiag.evidence.draft import Entity
from topodiag.evidence.host.pcie import ALL_ONES, ALL_ONES_WIDTH, MAX_WIDTH, NEEDS_ROOT, gen_of_speed, read_config
from topodiag.evidence.interface import to_int, whole
from topodiag.evidence.readings import Notes, OfTree, link_name, value_line
from topodiag.evidence.tree import TreeFile
from topodiag.model.busid import NVSWITCH_BUS_ID, normalise_bus_id
from topodiag.model.cpulist import parse_cpulist

Convert = Callable[[str], object]
_DEVICES = "sys/bus/pci/devices"
_GROUPS = "sys/kernel/iommu_groups/"
_AER = {"aer_dev_correctable": "correctable", "aer_dev_nonfatal": "nonfatal", "aer_dev_fatal": "fatal"}


def _cpus(text: str) -> str | None:
    return None if parse_cpulist(text) is None else text


_VALUES: Mapping[str, tuple[str, Convert]] = {
    **{name: (name, whole(0, 0xFFFF)) for name in ("vendor", "device", "subsystem_vendor", "subsystem_device")},
    "class": ("class_code", whole(0, 0xFFFFFF)),
    "numa_node": ("numa", whole(-1, 4095)),
    "local_cpulist": ("local_cpus", _cpus),
    "current_link_speed": ("gen", gen_of_speed),
    "max_link_speed": ("max_gen", gen_of_speed),
}
_WIDTHS = {"current_link_width": "width", "max_link_width": "max_width"}
_LINKS = {"driver": "driver", "iommu_group": "iommu_type", "physfn": "is_vf"}
_FIELDS = {name: field for name, (field, _) in _VALUES.items()} | _WIDTHS | _LINKS
_OF_CONFIG = {"current_link_speed": "gen", "max_link_speed": "max_gen"} | _WIDTHS


class SysPci(OfTree):
    """Reads the attribute files, links, AER counters and config space of every PCI function."""

    def read_notes(self, notes: Notes) -> None:
        for spelling, files in notes.below(_DEVICES).items():
            bus_id = normalise_bus_id(spelling)
            if bus_id is None or bus_id == NVSWITCH_BUS_ID:
                first = next(iter(files.values()))
                notes.parsed.leave(notes.blob, first.at, first.path, "not a PCI bus id")
            else:
                _read_device(notes, notes.draft.pci(bus_id), bus_id, files)


def _read_device(notes: Notes, pci: Entity, bus_id: str, files: Mapping[str, TreeFile]) -> None:
    for name, file in files.items():
        if name in _AER:
            _read_aer(notes, pci, _AER[name], file)
        elif name == "config":
            _read_config(notes, pci, files)
        elif name in _FIELDS and file.error is not None and not file.lines:
            _read_error(notes, pci, name, file, file.error)
        elif name in _VALUES:
            notes.convert(pci, *_VALUES[name], file)
        elif name in _WIDTHS:
            _read_width(notes, pci, _WIDTHS[name], file)
        elif name in _LINKS and file.link is not None:
            _read_link(notes, pci, name, file)
        elif name == "" and file.link is not None:
            _read_place(notes, pci, bus_id, file)
    if "physfn" not in files and "sriov_totalvfs" in files:
        # Only a physical function has virtual ones. Without either file it may be a guest's view of a virtual function.
        notes.take(pci, "is_vf", False, files["sriov_totalvfs"])
    if "class" in files and "driver" not in files:
        notes.miss(pci, "driver", "no driver is bound", files["class"])


def _read_error(notes: Notes, pci: Entity, name: str, file: TreeFile, error: str) -> None:
    missing = error.startswith("ENOENT")
    if name == "driver" and missing:
        notes.miss(pci, "driver", "no driver is bound", file)
    elif not (name == "physfn" and missing):
        notes.miss(pci, _FIELDS[name], error, file)


def _read_width(notes: Notes, pci: Entity, field: str, file: TreeFile) -> None:
    width = to_int(value_line(file)[1])
    if width is not None and 1 <= width <= MAX_WIDTH:
        notes.take(pci, field, width, file)
    elif width in (0, 255):
        notes.miss(pci, field, f"the kernel reports width {width}, which stands for not known", file)
    elif width == ALL_ONES_WIDTH:
        notes.miss(pci, field, "the device does not answer: width 63 is a register read as all ones", file)
        notes.take(pci, "lost", "its link width reads all ones", file)
    else:
        notes.reject(pci, field, "not a PCIe link width", file)


def _read_link(notes: Notes, pci: Entity, name: str, file: TreeFile) -> None:
    target = link_name(file)
    if name == "physfn":
        notes.take(pci, "is_vf", True, file)
    elif name == "driver" and target:
        notes.take(pci, "driver", target, file)
    elif name == "iommu_group" and target.isdecimal():
        kind = notes.files.get(f"{_GROUPS}{target}/type")
        if kind is not None and kind.text:
            notes.take(pci, "iommu_type", value_line(kind)[1], kind)
        elif kind is not None and kind.error:
            notes.miss(pci, "iommu_type", kind.error, kind)
    else:
        notes.reject(pci, _LINKS[name], f"not a target of {name}", file)


def _read_place(notes: Notes, pci: Entity, bus_id: str, file: TreeFile) -> None:
    """Parent and root complex, from where the device's link leads: `.../pci0000:15/0000:15:01.0/0000:16:00.0`.

    Below a VMD controller a second root follows (`pci10000:00`); the nearest one counts.
    """
    steps = [step for step in (file.link or "").split("/") if step][-64:]
    if not steps or normalise_bus_id(steps[-1]) != bus_id:
        notes.reject(pci, "parent", "the link does not lead to the device", file)
        return
    parent = normalise_bus_id(steps[-2]) if len(steps) > 1 else None
    if parent is not None and parent != bus_id:
        notes.take(pci, "parent", parent, file)
    root = next((step for step in reversed(steps) if step.startswith("pci") and ":" in step), None)
    if root is not None:
        notes.take(pci, "root", root, file)


def _read_aer(notes: Notes, pci: Entity, severity: str, file: TreeFile) -> None:
    """Counters by the kernel's names, e.g. `aer_correctable_RxErr`; the TOTAL_ERR_ line is `..._total`.

    Format: drivers/pci/pcie/aer.c, documented in Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats.
    """
    for number, text in file.lines:
        name, _, digits = text.strip().partition(" ")
        if name.replace("_", "").isalpha() and digits.strip().isdecimal() and len(digits) <= 20:
            name = "total" if name.startswith("TOTAL_ERR") else name
            notes.line(file, (number, text)).count(pci, f"aer_{severity}_{name}", int(digits))
        elif text.strip():
            notes.line(file, (number, text)).leave("not an AER counter")


def _read_config(notes: Notes, pci: Entity, files: Mapping[str, TreeFile]) -> None:
    file = files["config"]
    if file.data is None:
        if file.error is not None:
            denied = file.error.startswith(("EACCES", "EPERM"))
            why = f"{NEEDS_ROOT}: config space was not readable ({file.error})" if denied else file.error
            notes.miss(pci, "acs", why, file)
            notes.miss(pci, "port_type", why, file)
        return
    config = read_config(file.data)
    if config.lost:
        notes.take(pci, "lost", ALL_ONES, file)
    acs = None if config.acs is None else (file.at, f"ACSCtl {config.acs:#06x}")
    notes.take(pci, "acs", config.acs, file, acs, why=config.acs_why)
    port = None if config.port_type is None else (file.at, f"port type {config.port_type}")
    notes.take(pci, "port_type", config.port_type, file, port, why=config.port_type_why)
    # The kernel's own words on the link win; the registers stand in where it has no such files (before 4.13).
    for attribute, field in _OF_CONFIG.items():
        value = getattr(config, field)
        if attribute not in files and value is not None:
            notes.take(pci, field, value, file)
