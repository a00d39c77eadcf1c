"""Kernel and driver state as a tree: /proc, /sys/module, DMI, /dev, limits, and the driver's parameters.

Whose machine this is: bare metal or a guest, in a container or not, and what the firmware calls it.

The hypervisors' DMI strings are those that their makers document and that systemd-detect-virt(1) looks for.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from topodiag.evidence.host.shell_facts import read_files
from topodiag.evidence.interface import to_int
from topodiag.evidence.readings import Notes, OfTree, is_absent, is_present, value_line
from topodiag.evidence.tree import TreeFile
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import normalise_bus_id
from topodiag.model.gpudirect import PEERMEM_MODULES
from topodiag.words.own_data import own_data

_DRIVER = "proc/driver/nvidia/version"
_DRIVER_VERSION = regex(r"(?<![0-9.])([0-9]{3}\.[0-9]{1,4}(?:\.[0-9]{1,4})?)(?![0-9.])")

_PEERMEM = tuple(own_data("evidence/host/names")["peermem_files"])
_PEERMEM_PLACES = ("sys/kernel/mm/memory_peers", "sys/module/nvidia_peermem")
_MODULES_LIMIT = 64 * 1024
"""Bytes that the collector keeps of one file."""

_BARE_METAL_TRUST = 70
"""Of `none` as the hypervisor: below sys-cpu, whose hypervisor flag betrays guests that borrow their host's DMI."""


class OsState(OfTree):
    """Reads the state of kernel and driver."""

    def read_notes(self, notes: Notes) -> None:
        for read in (_read_kernel, _read_driver, _read_modules, _read_peermem, _read_iommu, _read_devices, _read_gpus):
            read(notes)
        judges = {"virtualization": _hypervisor, "bios": _bios, "container": _container, "system": _system}
        for name, judge in judges.items():
            verdict = judge(notes.files)
            if verdict.file is None:
                continue  # nothing was looked at
            entity = notes.draft.single("node") if name == "system" else notes.system
            notes.take(entity, name, verdict.word, verdict.file, verdict.line, why=verdict.why)
            if name == "virtualization" and verdict.word == "none":
                offers = entity.offers[name]
                offers[-1] = replace(offers[-1], trust=_BARE_METAL_TRUST)


def _readable(notes: Notes, path: str, name: str) -> TreeFile | None:
    """The file if it has lines; otherwise its error becomes the reason why the field is unknown."""
    file = notes.files.get(path)
    if file is None or file.lines:
        return file
    notes.miss(notes.system, name, file.error or "nothing was read", file)
    return None


def _read_kernel(notes: Notes) -> None:
    read_files(notes)
    # PRETTY_NAME, or NAME and VERSION_ID (os-release(5)).
    _readable(notes, "etc/os-release", "distribution")
    values: dict[str, tuple[TreeFile, tuple[int, str], str]] = {}
    for file, line in notes.lines_of("etc/os-release"):
        name, _, value = line[1].strip().partition("=")
        values.setdefault(name, (file, line, value.strip("\"'")[:120]))
    named = [values[name] for name in ("PRETTY_NAME", "NAME", "VERSION_ID") if name in values]
    if named:
        texts = [value for _, _, value in named[: 1 if "PRETTY_NAME" in values else 2]]
        notes.take(notes.system, "distribution", " ".join(texts), *named[0][:2])


def _read_driver(notes: Notes) -> None:
    """The version, from the driver's own file, or from that of its module; else why there is none."""
    file, module = notes.files.get(_DRIVER), notes.files.get("sys/module/nvidia/version")
    if file is not None and file.lines:
        line = next((line for line in file.lines if "NVRM version" in line[1]), file.lines[0])
        version = _DRIVER_VERSION.search(line[1])
        if version is None:
            notes.reject(notes.system, "driver_version", "no driver version in it", file, line)
            return
        notes.take(notes.system, "driver_version", version[1], file, line)
        notes.take(notes.system, "driver_open", "open kernel module" in line[1].lower(), file, line)
        return
    if module is not None and (version := _DRIVER_VERSION.search(value_line(module)[1])) is not None:
        notes.take(notes.system, "driver_version", version[1], module)
        return
    loaded = notes.files.get("proc/modules")
    if loaded is not None and not any(text.startswith("nvidia ") for _, text in loaded.lines):
        why, shown = "the NVIDIA kernel module is not loaded", loaded
    elif file is not None:
        why, shown = file.error or "nothing was read", file
    else:
        return
    notes.miss(notes.system, "driver_version", why, shown)
    notes.miss(notes.system, "driver_open", why, shown)


def _read_modules(notes: Notes) -> None:
    """Loaded modules. /proc/modules lacks what is built into the kernel, /sys/module has that too."""
    file = _readable(notes, "proc/modules", "modules")
    if file is None:
        return
    shown = notes.below("sys/module").items()
    names = {name for name, files in shown if is_present(files, "") or is_present(files, "version")}
    for number, text in file.lines:
        name = text.split(" ", 1)[0]
        if _is_name(name):
            names.add(name)
        elif text.strip():
            notes.line(file, (number, text)).leave("not a line of /proc/modules")
    notes.take(notes.system, "modules", frozenset(names), file)


def _read_peermem(notes: Notes) -> None:
    """Whether a peer-memory module is there: by the files that NCCL tests, else by its absence from all that is
    loaded.

    The module is NVIDIA's or the RDMA stack's, never built into a kernel, so /proc/modules would list it; a list
    that fills its capture to the limit may have been cut.
    """
    files = notes.files
    asked = [file for file in files.values() if file.error is not None and file.path.startswith(_PEERMEM_PLACES)]
    loaded = files.get("proc/modules")
    present = next((path for path in _PEERMEM if is_present(notes.files, path)), None)
    if present is not None:
        notes.take(notes.system, "peermem", True, files[present])
    elif asked and all(is_absent(notes.files, path) for path in _PEERMEM):
        notes.take(notes.system, "peermem", False, asked[0])
    elif asked and not all(is_absent(notes.files, file.path) for file in asked):
        notes.miss(notes.system, "peermem", "not every place of the module could be looked at", asked[0])
    elif (
        loaded is not None
        and 0 < len(loaded.text or "") < _MODULES_LIMIT
        and PEERMEM_MODULES.isdisjoint(text.split(" ", 1)[0] for _, text in loaded.lines)
    ):
        notes.take(notes.system, "peermem", False, loaded)


def _read_iommu(notes: Notes) -> None:
    """An IOMMU is at work when the kernel shows one, or groups behind one."""
    empty: list[TreeFile] = []
    for folder in ("sys/class/iommu", "sys/kernel/iommu_groups"):
        below = (file for path, file in notes.files.items() if path.startswith(f"{folder}/"))
        inside = next((file for file in below if file.error is None), None)
        if inside is not None:
            notes.take(notes.system, "iommu_enabled", True, inside)
            return
        shown = notes.files.get(folder)
        if shown is not None and (shown.is_dir or is_absent(notes.files, folder)):
            empty.append(shown)
    if empty:
        notes.take(notes.system, "iommu_enabled", False, empty[-1])


def _read_devices(notes: Notes) -> None:
    shown = [file for path, file in notes.files.items() if path == "dev" or path.startswith("dev/")]
    present = [file for file in shown if file.path != "dev" and (file.error is None or file.lines)]
    if shown:
        notes.take(notes.system, "devices", frozenset(file.path.removeprefix("dev/") for file in present), shown[0])


def _read_gpus(notes: Notes) -> None:
    """What the driver says of each GPU that it claimed, even of one that NVML no longer reaches, and the driver's
    parameters: `Name: value`, strings in quotes."""
    for file, line in notes.lines_of("proc/driver/nvidia/params"):
        name, colon, value = line[1].partition(":")
        if colon and _is_name(name.strip()):
            notes.take(notes.draft.single("registry"), name.strip(), value.strip().strip('"'), file, line)
        elif line[1].strip():
            notes.line(file, line).leave("not a parameter")
    for place in notes.below("proc/driver/nvidia/gpus"):
        bus_id = normalise_bus_id(place)
        for file, line in notes.lines_of(f"proc/driver/nvidia/gpus/{place}/information") if bus_id else ():
            name, value = (part.strip() for part in line[1].partition(":")[::2])
            gpu = notes.draft.gpu(bus_id=bus_id)
            if name == "Model" and value and "?" not in value and value != "Unknown":
                notes.take(gpu, "name", value[:120], file, line)
            elif name == "GPU UUID" and value.startswith("GPU-") and "?" not in value:
                notes.take(gpu, "uuid", value[:60], file, line)
            elif name == "Device Minor" and (minor := to_int(value, low=0, high=4095)) is not None:
                notes.take(gpu, "minor", minor, file, line)


def _is_name(text: str) -> bool:
    """Whether a text is the name of a module or of one of its parameters."""
    return text.replace("_", "").replace("-", "").isalnum() and len(text) <= 80


_DMI = "sys/class/dmi/id/"

_NAMES = own_data("evidence/host/names")


@dataclass(frozen=True, slots=True)
class _Verdict:
    """A word, and the line that says so; without a word, why."""

    word: str | None
    file: TreeFile | None = None
    line: tuple[int, str] | None = None
    why: str = ""


def _dmi(files: Mapping[str, TreeFile], name: str) -> tuple[str, TreeFile | None]:
    """A DMI string and its file; placeholders of careless firmware are no strings."""
    file = files.get(_DMI + name)
    text = value_line(file)[1] if file is not None and file.lines else ""
    return ("" if text.lower() in _NAMES["placeholders"] else text[:120]), file


def _hypervisor(files: Mapping[str, TreeFile]) -> _Verdict:
    """The hypervisor, `none` on bare metal, or unknown where the firmware's name is of neither."""
    vendor, vendor_file = _dmi(files, "sys_vendor")
    product, product_file = _dmi(files, "product_name")
    if vendor.lower().startswith("amazon") and product.partition(".")[2].partition("-")[0].lower() == "metal":
        return _Verdict("none", product_file)  # EC2 instance types without one: `p4d.metal`, `m7i.metal-24xl`
    if vendor.lower().startswith("microsoft") and product.lower() == "virtual machine":
        return _Verdict("microsoft", product_file)
    # The product first: QEMU's product names are plain PCs, but clouds put their own product over QEMU's vendor.
    for text, file in ((product, product_file), (vendor, vendor_file), _dmi(files, "board_name")):
        for part, name in _NAMES["guests"].items():
            if _has_word(text.lower(), part):
                return _Verdict(name, file)
    kind = files.get("sys/hypervisor/type")
    if kind is not None and value_line(kind)[1]:
        return _Verdict(value_line(kind)[1][:40], kind)
    if any(_has_word(vendor.lower(), maker) for maker in _NAMES["makers"]):
        return _Verdict("none", vendor_file)
    if vendor:
        return _Verdict(None, vendor_file, why="DMI names a vendor of neither servers nor hypervisors that is known")
    why = vendor_file.error if vendor_file is not None else None
    return _Verdict(None, vendor_file, why=f"no DMI vendor: {why or 'empty'}")


def _has_word(text: str, part: str) -> bool:
    """Whether a name begins a word of the text: `kvm` in `KVM Virtual Machine`, never `hp` in `sharp`."""
    at = text.find(part)
    return at >= 0 and (at == 0 or not text[at - 1].isalnum())


def _system(files: Mapping[str, TreeFile]) -> _Verdict:
    """The product as DMI calls it, `VENDOR PRODUCT`; on EC2 the product is the instance type and stands alone."""
    vendor, _ = _dmi(files, "sys_vendor")
    product, file = _dmi(files, "product_name")
    if not product:
        return _Verdict(None, file, why="DMI names no product")
    if vendor.lower().startswith("amazon") or product.lower().startswith(vendor.lower()):
        return _Verdict(product, file)
    return _Verdict(f"{vendor} {product}", file)


def _bios(files: Mapping[str, TreeFile]) -> _Verdict:
    """The version of the system's firmware, with its date."""
    version, file = _dmi(files, "bios_version")
    date, _ = _dmi(files, "bios_date")
    return _Verdict(f"{version} {date}".rstrip() if version else None, file, why="DMI names no BIOS version")


def _container(files: Mapping[str, TreeFile]) -> _Verdict:
    """The container runtime, or `none` without any marker of one and with process 1 where a host's init is."""
    cgroup = files.get("proc/1/cgroup")
    for number, text in cgroup.lines if cgroup is not None else ():
        for part, name in _NAMES["cgroups"].items():
            if part in text:
                return _Verdict(name, cgroup, (number, text))
    # A virtual machine made from an image keeps the image's marker files. Process 2 is its own kernel's.
    own_kernel = files.get("proc/2/comm") if is_present(files, "proc/2/comm") else None
    if is_present(files, "run/.containerenv") and own_kernel is None:
        return _Verdict("podman", files["run/.containerenv"])
    environ = files.get("proc/1/environ")
    for number, text in environ.lines if environ is not None else ():
        name, _, value = text.partition("=")
        if name == "container" and value:
            return _Verdict(value[:40], environ, (number, text))
    if is_present(files, ".dockerenv") and own_kernel is None:
        return _Verdict("docker", files[".dockerenv"])
    if cgroup is not None and _is_host_init(cgroup):
        return _Verdict("none", cgroup)
    if own_kernel is not None:
        return _Verdict("none", own_kernel)
    return _Verdict(None, cgroup, why="no marker of a container, and nothing that proves a host")


def _is_host_init(cgroup: TreeFile) -> bool:
    """A host's process 1 is in `/init.scope`, or with cgroup v1 in the root of every hierarchy.

    With cgroup v2 a lone `0::/` is what a container sees too, so it proves nothing.
    """
    paths = [text.split(":", 2)[-1].strip() for _, text in cgroup.lines if text.count(":") >= 2]
    return "/init.scope" in paths or (len(paths) > 1 and set(paths) == {"/"})
