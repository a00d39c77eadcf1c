"""Kernel and driver state as a tree: /proc, /sys/module, DMI, /dev, limits, and the driver's parameters."""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft, Offer
from topodiag.evidence.host import virtualization
from topodiag.evidence.interface import Blob, Parsed, Source, to_float, to_int
from topodiag.evidence.pasted_files import shows
from topodiag.evidence.readings import Notes, Reading, is_absent, is_present, read_readings, value_line
from topodiag.evidence.tree import Tree, TreeFile
from topodiag.lazy import regex
from topodiag.model.busid import normalise_bus_id
from topodiag.model.topics import Topic

_RECOGNISED = regex(
    r"^[=>x!d] /?(?:proc/(?:version|cmdline|uptime|modules|meminfo|self/limits|self/status|driver/nvidia/\S+)"
    r"|etc/os-release|sys/class/dmi/id/\S+|sys/module/\S+|sys/kernel/(?:mm|iommu_groups)\S*"
    r"|sys/class/iommu\S*|statvfs/\S+|dev/\S+)\t",
    re.MULTILINE,
)
_SHOWN = (
    "proc/version", "proc/cmdline", "proc/uptime", "proc/modules", "proc/self/limits", "proc/driver/nvidia/",
    "proc/sys/kernel/numa_balancing", "sys/module/nvidia", "sys/class/dmi/id/", "sys/kernel/mm/",
    "sys/kernel/iommu_groups", "sys/class/iommu",
)  # fmt: skip
"""What a paste may show of the same files."""
_DRIVER = "proc/driver/nvidia/version"
_DRIVER_VERSION = regex(r"(?<![0-9.])([0-9]{3}\.[0-9]{1,4}(?:\.[0-9]{1,4})?)(?![0-9.])")
_INFORMATION = regex(r"proc/driver/nvidia/gpus/([^/]{7,16})/information")
_MODULE = regex(r"sys/module/([A-Za-z0-9_]{1,64})(?:/version)?")
_MODULE_NAME = regex(r"[A-Za-z0-9_-]{1,64}")
_LIMIT = regex(r"Max locked memory\s+(unlimited|[0-9]{1,20})\s")
_FILES = regex(r"Max open files\s+(?:unlimited|[0-9]{1,20})\s+(unlimited|[0-9]{1,20})\s")
_CHOSEN = regex(r"\[([a-z]{1,12})\]")
_SHM_FREE = regex(r"(?:^|\s)avail=([0-9]{1,20})(?:\s|$)")
_SHM_SIZE = regex(r"(?:^|\s)size=([0-9]{1,20})(?:\s|$)")
_PARAMETER = regex(r"([A-Za-z][A-Za-z0-9_]{0,80}):\s*(.{0,4096})")

# The files that NCCL tests to find a peer-memory module (src/transport/net_ib/gdr.cc at v2.30); the last is RCCL's.
_PEERMEM = (
    "sys/kernel/mm/memory_peers/nv_mem/version",
    "sys/kernel/mm/memory_peers/nv_mem_nc/version",
    "sys/module/nvidia_peermem/version",
    "sys/kernel/mm/memory_peers/amdkfd/version",
)
_PEERMEM_PLACES = ("sys/kernel/mm/memory_peers", "sys/module/nvidia_peermem")
_PEERMEM_MODULES = frozenset({"nvidia_peermem", "nv_peer_mem"})
_MODULES_LIMIT = 64 * 1024
"""Bytes that the collector keeps of one file."""

_BARE_METAL_TRUST = 70
"""Of `none` as the hypervisor: below sys-cpu, whose hypervisor flag betrays guests that borrow their host's DMI."""


class OsState(Source[Reading]):
    """Reads the state of kernel and driver. Subjects: `os`, `node`, `registry`, and `gpu BUS_ID`."""

    kind = "os-state"
    speaks_of = frozenset({Topic.OS})
    trust = 80
    measured = regex(r"= proc/uptime\t(?P<numbers>[0-9]{1,15}\.[0-9]{1,6} [0-9]{1,15}\.[0-9]{1,6})\Z")

    def recognises(self, head: str) -> bool:
        return _RECOGNISED.search(head) is not None or shows(head, *_SHOWN)

    def parse(self, blob: Blob) -> Parsed[Reading]:
        tree, parsed = read_readings(blob)
        notes = Notes(blob, parsed)
        for read in (
            _read_kernel,
            _read_driver,
            _read_modules,
            _read_peermem,
            _read_iommu,
            _read_limits,
            _read_devices,
        ):
            read(tree, notes)
        _read_parameters(tree, notes)
        _read_gpus(tree, notes)
        _take(notes, "os", "virtualization", virtualization.hypervisor(tree))
        _take(notes, "os", "bios", virtualization.bios(tree))
        _take(notes, "os", "container", virtualization.container(tree))
        _take(notes, "node", "system", virtualization.system(tree))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[Reading], draft: NodeDraft) -> None:
        for reading in parsed.records:
            kind, _, bus_id = reading.subject.partition(" ")
            if reading.name == "virtualization" and reading.value == "none":
                origin = blob.origin(reading.line, reading.text)
                offer = Offer("none", origin, _BARE_METAL_TRUST, draft.sample)
                draft.single(kind).offers.setdefault("virtualization", []).append(offer)
            else:
                reading.offer_to(draft.gpu(bus_id=bus_id) if bus_id else draft.single(kind), blob)


def _take(notes: Notes, subject: str, name: str, verdict: virtualization.Verdict) -> None:
    if verdict.file is None:
        return  # nothing was looked at
    if verdict.word is None:
        notes.miss(subject, name, verdict.why, verdict.file, verdict.line)
    else:
        notes.take(subject, name, verdict.word, verdict.file, verdict.line)


def _readable(tree: Tree, path: str, name: str, notes: Notes) -> TreeFile | None:
    """The file if it has lines; otherwise its error becomes the reason why the field is unknown."""
    file = tree.files.get(path)
    if file is None or file.lines:
        return file
    notes.miss("os", name, file.error or "nothing was read", file)
    return None


def _read_kernel(tree: Tree, notes: Notes) -> None:
    if (file := _readable(tree, "proc/version", "kernel", notes)) is not None:
        words = value_line(file)[1].split(None, 3)
        kernel = words[2][:120] if words[:2] == ["Linux", "version"] and len(words) > 2 else None
        notes.read("os", "kernel", kernel, "not a /proc/version", file)
    if (file := _readable(tree, "proc/cmdline", "cmdline", notes)) is not None:
        notes.take("os", "cmdline", value_line(file)[1], file)
    if (file := _readable(tree, "proc/uptime", "uptime_s", notes)) is not None:
        notes.read("os", "uptime_s", to_float(value_line(file)[1], low=0), "not an uptime", file)
    if (file := _readable(tree, "proc/sys/kernel/numa_balancing", "numa_balancing", notes)) is not None:
        state = to_int(value_line(file)[1], low=0, high=7)
        why = "not a state of numa_balancing"
        notes.read("os", "numa_balancing", None if state is None else state != 0, why, file)
    _read_distribution(tree, notes)


def _read_distribution(tree: Tree, notes: Notes) -> None:
    """PRETTY_NAME, or NAME and VERSION_ID (os-release(5))."""
    file = _readable(tree, "etc/os-release", "distribution", notes)
    values: dict[str, tuple[tuple[int, str], str]] = {}
    for number, text in file.lines if file is not None else ():
        name, equals, value = text.strip().partition("=")
        if equals:
            values.setdefault(name, ((number, text), value.strip("\"'")[:120]))
    if file is not None and "PRETTY_NAME" in values:
        notes.take("os", "distribution", values["PRETTY_NAME"][1], file, values["PRETTY_NAME"][0])
    elif file is not None and "NAME" in values:
        words = [values[name][1] for name in ("NAME", "VERSION_ID") if name in values]
        notes.take("os", "distribution", " ".join(words), file, values["NAME"][0])


def _read_driver(tree: Tree, notes: Notes) -> None:
    file = tree.files.get(_DRIVER)
    if file is not None and file.lines:
        line = next((line for line in file.lines if "NVRM version" in line[1]), file.lines[0])
        version = _DRIVER_VERSION.search(line[1])
        if version is None:
            notes.reject("os", "driver_version", "no driver version in it", file, line)
            return
        notes.take("os", "driver_version", version[1], file, line)
        notes.take("os", "driver_open", "open kernel module" in line[1].lower(), file, line)
        return
    module = tree.files.get("sys/module/nvidia/version")
    if module is not None and (version := _DRIVER_VERSION.search(value_line(module)[1])) is not None:
        notes.take("os", "driver_version", version[1], module)
        return
    loaded = tree.files.get("proc/modules")
    if file is not None and not is_absent(tree, _DRIVER):
        why, shown = file.error or "nothing was read", file
    elif loaded is not None and not any(text.startswith("nvidia ") for _, text in loaded.lines):
        why, shown = "the NVIDIA kernel module is not loaded", loaded
    elif file is not None:
        why, shown = "no NVIDIA driver in /proc", file
    else:
        return
    notes.miss("os", "driver_version", why, shown)
    notes.miss("os", "driver_open", why, shown)


def _read_modules(tree: Tree, notes: Notes) -> None:
    """Loaded modules. /proc/modules lacks what is built into the kernel, /sys/module has that too."""
    file = _readable(tree, "proc/modules", "modules", notes)
    if file is None:
        return
    names: set[str] = set()
    for number, text in file.lines:
        name = text.split(" ", 1)[0]
        if _MODULE_NAME.fullmatch(name):
            names.add(name)
        elif text.strip():
            notes.leave("not a line of /proc/modules", file, (number, text))
    for path in tree.files:
        match = _MODULE.fullmatch(path)
        if match is not None and is_present(tree, path):
            names.add(match[1])
    notes.take("os", "modules", frozenset(names), file)


def _read_peermem(tree: Tree, notes: Notes) -> None:
    """Whether a peer-memory module is there: by the files that NCCL tests, else by its absence from all that is loaded.

    The module is NVIDIA's or the RDMA stack's, never built into a kernel, so /proc/modules would list it; a list that
    fills its capture to the limit may have been cut.
    """
    for path in _PEERMEM:
        if is_present(tree, path):
            notes.take("os", "peermem", True, tree.files[path])
            return
    asked = [file for file in tree.files.values() if file.error is not None and file.path.startswith(_PEERMEM_PLACES)]
    if asked and all(is_absent(tree, path) for path in _PEERMEM):
        notes.take("os", "peermem", False, asked[0])
        return
    if asked and not all(is_absent(tree, file.path) for file in asked):
        notes.miss("os", "peermem", "not every place of the module could be looked at", asked[0])
        return
    loaded = tree.files.get("proc/modules")
    if loaded is not None and loaded.lines and sum(len(text) + 1 for _, text in loaded.lines) < _MODULES_LIMIT:
        names = {text.split(" ", 1)[0] for _, text in loaded.lines}
        if names.isdisjoint(_PEERMEM_MODULES):
            notes.take("os", "peermem", False, loaded)


def _read_iommu(tree: Tree, notes: Notes) -> None:
    """An IOMMU is at work when the kernel shows one, or groups behind one."""
    empty: list[TreeFile] = []
    for folder in ("sys/class/iommu", "sys/kernel/iommu_groups"):
        inside = next((file for file in tree.below(folder) if file.error is None), None)
        if inside is not None:
            notes.take("os", "iommu_enabled", True, inside)
            return
        shown = tree.files.get(folder)
        if shown is not None and (shown.is_dir or is_absent(tree, folder)):
            empty.append(shown)
    if empty:
        notes.take("os", "iommu_enabled", False, empty[-1])


def _read_limits(tree: Tree, notes: Notes) -> None:
    """Limits on locked memory (soft) and open files (hard) (proc_pid_limits(5)), size of /dev/shm, huge pages."""
    file = _readable(tree, "proc/self/limits", "memlock_bytes", notes)
    for number, text in file.lines if file is not None else ():
        if text.startswith("Max open files") and file is not None:
            hard = _FILES.match(text + " ")
            if hard is not None:
                limit = -1 if hard[1] == "unlimited" else int(hard[1])
                notes.take("os", "open_files", limit, file, (number, text))
        if text.startswith("Max locked memory") and file is not None:
            match = _LIMIT.match(text + " ")
            if match is None:
                notes.reject("os", "memlock_bytes", "not a limit", file, (number, text))
            else:
                limit = -1 if match[1] == "unlimited" else int(match[1])
                notes.take("os", "memlock_bytes", limit, file, (number, text))
    if (file := _readable(tree, "statvfs/dev/shm", "shm_bytes", notes)) is not None:
        size = _SHM_SIZE.search(value_line(file)[1])
        notes.read("os", "shm_bytes", int(size[1]) if size else None, "no size in it", file)
        free = _SHM_FREE.search(value_line(file)[1])
        if free is not None:
            notes.take("os", "shm_free_bytes", int(free[1]), file)
    if (file := tree.files.get("sys/kernel/mm/transparent_hugepage/enabled")) is not None:
        chosen = _CHOSEN.search(value_line(file)[1])
        if chosen is not None:
            notes.take("os", "huge_pages", chosen[1], file)


def _read_devices(tree: Tree, notes: Notes) -> None:
    names: set[str] = set()
    shown: TreeFile | None = None
    for path, file in tree.files.items():
        if path == "dev" or path.startswith("dev/"):
            shown = shown or file
            if path != "dev" and (file.error is None or file.lines):
                names.add(path.removeprefix("dev/"))
    if shown is not None:
        notes.take("os", "devices", frozenset(names), shown)


def _read_parameters(tree: Tree, notes: Notes) -> None:
    """The driver's parameters, `Name: value`, strings in quotes."""
    file = tree.files.get("proc/driver/nvidia/params")
    for number, text in file.lines if file is not None else ():
        match = _PARAMETER.fullmatch(text.strip())
        if match is not None and file is not None:
            notes.take("registry", match[1], match[2].strip().strip('"'), file, (number, text))
        elif text.strip() and file is not None:
            notes.leave("not a parameter", file, (number, text))


def _read_gpus(tree: Tree, notes: Notes) -> None:
    """What the driver says of each GPU that it claimed, even of one that NVML no longer reaches."""
    for path, file in tree.files.items():
        match = _INFORMATION.fullmatch(path)
        bus_id = normalise_bus_id(match[1]) if match is not None else None
        if bus_id is None:
            continue
        for number, text in file.lines:
            name, _, value = text.partition(":")
            value = value.strip()
            if name.strip() == "Model" and value and "?" not in value and value != "Unknown":
                notes.take(f"gpu {bus_id}", "name", value[:120], file, (number, text))
            elif name.strip() == "GPU UUID" and value.startswith("GPU-") and "?" not in value:
                notes.take(f"gpu {bus_id}", "uuid", value[:60], file, (number, text))
            elif name.strip() == "Device Minor" and (minor := to_int(value, low=0, high=4095)) is not None:
                notes.take(f"gpu {bus_id}", "minor", minor, file, (number, text))
