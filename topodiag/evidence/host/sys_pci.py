"""`/sys/bus/pci/devices` as a tree: what every PCI function is, where it hangs, and what its link trained to."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.pcie import ALL_ONES, ALL_ONES_WIDTH, MAX_WIDTH, NEEDS_ROOT, gen_of_speed, read_config
from topodiag.evidence.interface import Blob, Parsed, Source, to_int
from topodiag.evidence.pasted_files import shows
from topodiag.evidence.readings import Notes, Reading, read_readings, value_line
from topodiag.evidence.tree import Tree, TreeFile
from topodiag.lazy import regex
from topodiag.model.busid import NVSWITCH_BUS_ID, normalise_bus_id
from topodiag.model.cpulist import parse_cpulist
from topodiag.model.topics import Topic

Convert = Callable[[str], object]
_DEVICES = "sys/bus/pci/devices/"
_GROUPS = "sys/kernel/iommu_groups/"
_ROOT = regex(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_AER_LINE = regex(r"([A-Za-z_]{1,40})\s+([0-9]{1,20})")
_AER = {"aer_dev_correctable": "correctable", "aer_dev_nonfatal": "nonfatal", "aer_dev_fatal": "fatal"}


def _whole(low: int, high: int) -> Convert:
    return lambda text: to_int(text, low=low, high=high)


def _cpus(text: str) -> str | None:
    return None if parse_cpulist(text) is None else text


_VALUES: Mapping[str, tuple[str, Convert]] = {
    "class": ("class_code", _whole(0, 0xFFFFFF)),
    "vendor": ("vendor", _whole(0, 0xFFFF)),
    "device": ("device", _whole(0, 0xFFFF)),
    "subsystem_vendor": ("subsystem_vendor", _whole(0, 0xFFFF)),
    "subsystem_device": ("subsystem_device", _whole(0, 0xFFFF)),
    "numa_node": ("numa", _whole(-1, 4095)),
    "local_cpulist": ("local_cpus", _cpus),
    "current_link_speed": ("gen", gen_of_speed),
    "max_link_speed": ("max_gen", gen_of_speed),
}
_WIDTHS = {"current_link_width": "width", "max_link_width": "max_width"}
_LINKS = {"driver": "driver", "iommu_group": "iommu_group", "physfn": "is_vf"}
_FIELDS = {name: field for name, (field, _) in _VALUES.items()} | _WIDTHS | _LINKS
_OF_CONFIG = {"current_link_speed": "gen", "max_link_speed": "max_gen"} | _WIDTHS


class SysPci(Source[Reading]):
    """Reads the attribute files, links, AER counters and config space of every PCI function."""

    kind = "sys-pci"
    speaks_of = frozenset({Topic.PCI})
    trust = 80

    def recognises(self, head: str) -> bool:
        return shows(head, "sys/bus/pci/devices/")

    def parse(self, blob: Blob) -> Parsed[Reading]:
        tree, parsed = read_readings(blob)
        notes = Notes(blob, parsed)
        for bus_id, files in _by_device(blob, tree, parsed).items():
            _read_device(bus_id, files, tree, notes)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[Reading], draft: NodeDraft) -> None:
        for reading in parsed.records:
            reading.offer_to(draft.pci(reading.subject), blob)


def _by_device(blob: Blob, tree: Tree, parsed: Parsed[Reading]) -> dict[str, dict[str, TreeFile]]:
    """The files of each function by name; the link of the function itself has the empty name."""
    devices: dict[str, dict[str, TreeFile]] = {}
    for path, file in tree.files.items():
        if not path.startswith(_DEVICES):
            continue
        spelling, _, name = path[len(_DEVICES) :].partition("/")
        bus_id = normalise_bus_id(spelling)
        if bus_id is None or bus_id == NVSWITCH_BUS_ID:
            parsed.leave(blob, file.at, path, "not a PCI bus id")
            continue
        devices.setdefault(bus_id, {})[name] = file
    return devices


def _read_device(bus_id: str, files: dict[str, TreeFile], tree: Tree, notes: Notes) -> None:
    for name, file in files.items():
        if name in _AER:
            _read_aer(bus_id, _AER[name], file, notes)
        elif name == "config":
            _read_config(bus_id, files, notes)
        elif name in _FIELDS and file.error is not None and not file.lines:
            _read_error(bus_id, name, file, notes)
        elif name in _VALUES:
            _read_value(bus_id, name, file, notes)
        elif name in _WIDTHS:
            _read_width(bus_id, _WIDTHS[name], file, notes)
        elif name in _LINKS and file.link is not None:
            _read_link(bus_id, name, file, tree, notes)
        elif name == "" and file.link is not None:
            _read_place(bus_id, file, notes)
    if "physfn" not in files and "sriov_totalvfs" in files:
        # Only a physical function has virtual ones. Without either file it may be a guest's view of a virtual function.
        notes.take(bus_id, "is_vf", False, files["sriov_totalvfs"])
    if "class" in files and "driver" not in files:
        notes.miss(bus_id, "driver", "no driver is bound", files["class"])


def _read_error(bus_id: str, name: str, file: TreeFile, notes: Notes) -> None:
    missing = (file.error or "").startswith("ENOENT")
    if name == "driver" and missing:
        notes.miss(bus_id, "driver", "no driver is bound", file)
    elif not (name == "physfn" and missing):
        notes.miss(bus_id, _FIELDS[name], file.error or "", file)


def _read_value(bus_id: str, name: str, file: TreeFile, notes: Notes) -> None:
    field, convert = _VALUES[name]
    text = value_line(file)[1]
    if text.lower().startswith("unknown"):
        notes.miss(bus_id, field, f"the kernel says {text!r}"[:80], file)
    else:
        notes.read(bus_id, field, convert(text), f"not a value of {name}", file)


def _read_width(bus_id: str, field: str, file: TreeFile, notes: Notes) -> None:
    width = to_int(value_line(file)[1])
    if width is not None and 1 <= width <= MAX_WIDTH:
        notes.take(bus_id, field, width, file)
    elif width in (0, 255):
        notes.miss(bus_id, field, f"the kernel reports width {width}, which stands for not known", file)
    elif width == ALL_ONES_WIDTH:
        notes.miss(bus_id, field, "the device does not answer: width 63 is a register read as all ones", file)
        notes.take(bus_id, "lost", "its link width reads all ones", file)
    else:
        notes.reject(bus_id, field, "not a PCIe link width", file)


def _read_link(bus_id: str, name: str, file: TreeFile, tree: Tree, notes: Notes) -> None:
    target = (file.link or "").rstrip("/").rpartition("/")[2]
    if name == "physfn":
        notes.take(bus_id, "is_vf", True, file)
    elif name == "driver" and target:
        notes.take(bus_id, "driver", target, file)
    elif name == "iommu_group" and (group := to_int(target, low=0, high=2**31)) is not None:
        notes.take(bus_id, "iommu_group", group, file)
        kind = tree.files.get(f"{_GROUPS}{target}/type")
        if kind is not None and kind.text:
            notes.take(bus_id, "iommu_type", value_line(kind)[1], kind)
        elif kind is not None and kind.error:
            notes.miss(bus_id, "iommu_type", kind.error, kind)
    else:
        notes.reject(bus_id, _LINKS[name], f"not a target of {name}", file)


def _read_place(bus_id: str, file: TreeFile, notes: Notes) -> None:
    """Parent and root complex, from where the device's link leads: `.../pci0000:15/0000:15:01.0/0000:16:00.0`.

    Below a VMD controller a second root follows (`pci10000:00`); the nearest one counts.
    """
    steps = [step for step in (file.link or "").split("/") if step][-64:]
    if not steps or normalise_bus_id(steps[-1]) != bus_id:
        notes.reject(bus_id, "parent", "the link does not lead to the device", file)
        return
    parent = normalise_bus_id(steps[-2]) if len(steps) > 1 else None
    if parent is not None and parent != bus_id:
        notes.take(bus_id, "parent", parent, file)
    root = next((step for step in reversed(steps) if _ROOT.fullmatch(step)), None)
    if root is not None:
        notes.take(bus_id, "root", root, file)


def _read_aer(bus_id: str, severity: str, file: TreeFile, notes: Notes) -> None:
    """Counters by the kernel's names, e.g. `aer_correctable_RxErr`; the TOTAL_ERR_ line is `..._total`.

    Format: drivers/pci/pcie/aer.c, documented in Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats.
    """
    for number, text in file.lines:
        match = _AER_LINE.fullmatch(text.strip())
        if match is not None:
            name = "total" if match[1].startswith("TOTAL_ERR") else match[1]
            notes.count(bus_id, f"aer_{severity}_{name}", int(match[2]), file, (number, text))
        elif text.strip():
            notes.leave("not an AER counter", file, (number, text))


def _read_config(bus_id: str, files: dict[str, TreeFile], notes: Notes) -> None:
    file = files["config"]
    if file.data is None:
        if file.error is not None:
            denied = file.error.startswith(("EACCES", "EPERM"))
            why = f"{NEEDS_ROOT}: config space was not readable ({file.error})" if denied else file.error
            notes.miss(bus_id, "acs", why, file)
            notes.miss(bus_id, "port_type", why, file)
        return
    config = read_config(file.data)
    if config.lost:
        notes.take(bus_id, "lost", ALL_ONES, file)
    for name, value, why in (
        ("acs", config.acs, config.acs_why),
        ("port_type", config.port_type, config.port_type_why),
    ):
        if value is not None:
            shown = f"ACSCtl {value:#06x}" if name == "acs" else f"port type {value}"
            notes.take(bus_id, name, value, file, (file.at, shown))
        else:
            notes.miss(bus_id, name, why, file)
    # The kernel's own words on the link win; the registers stand in where it has no such files (before 4.13).
    for attribute, field in _OF_CONFIG.items():
        value = getattr(config, field)
        if attribute not in files and value is not None:
            notes.take(bus_id, field, value, file)
