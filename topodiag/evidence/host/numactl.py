"""`numactl -H`: the processors and the memory of NUMA nodes.

    available: 2 nodes (0-1)
    node 0 cpus: 0 1 2 3 4 5 6 7
    node 0 size: 515512 MB

Format: numactl 2.0.8 to 2.0.18 (numactl.c, hardware).

Processors and NUMA nodes from `/proc/cpuinfo` and `/sys/devices/system/{cpu,node}`, as a tree.
"""

from __future__ import annotations

from topodiag.evidence.draft import Entity
from topodiag.evidence.host.shell_facts import read_files
from topodiag.evidence.interface import to_int, whole
from topodiag.evidence.page import OfPage, Page
from topodiag.evidence.readings import Notes, OfTree, value_line
from topodiag.evidence.tree import TreeFile
from topodiag.model.cpulist import parse_cpulist
from topodiag.model.tables import MEMORY_MB, NUMA, PROCESSORS, Row, Table
from topodiag.words.own_data import own_data
from topodiag.words.units import fold_numbers

MAX_NODES = 1024
MAX_LINE = 16384


class Numactl(OfPage):
    """NUMA nodes from `numactl -H`."""

    def read_page(self, page: Page) -> None:
        processors, rows = dict[int, int](), list[Row]()
        for line in page.cut_lines(MAX_LINE):
            head, colon, rest = line.bare.partition(":")
            word, place, field, *_ = *head.split(), "", "", ""
            node = to_int(place, low=0, high=MAX_NODES - 1)
            if node is None or not colon or word != "node" or field not in ("cpus", "size"):
                continue
            numbers = [int(digits) for digits in rest.split() if digits.isdecimal() and len(digits) <= 12]
            if field == "cpus":
                line.put(page.draft.numa(node), cpus=fold_numbers(set(numbers)))
                processors[node] = len(numbers)
            elif numbers:
                cells = {NUMA: str(node), PROCESSORS: str(processors.get(node, 0)), MEMORY_MB: str(numbers[0])}
                rows.append(Row(cells, line.origin))
            page.mark(line.number)
        page.draft.tables.append(Table(tuple(rows)))


_NODES = "sys/devices/system/node"
_CPUS = "sys/devices/system/cpu"
_PACKAGE = "topology/physical_package_id"
_NAMES = own_data("evidence/host/names")
_package = whole(0, 0xFFFF)
"""Reads a socket; the kernel writes -1 where the firmware does not say."""


class SysCpu(OfTree):
    """Reads the processors' names and the NUMA nodes.

    Trusted a little less than os-state, because the hypervisor flag says that this is a guest and not of whom.
    """

    def read_notes(self, notes: Notes) -> None:
        _read_cpuinfo(notes)
        _read_count(notes)
        packages = {
            int(cpu.removeprefix("cpu")): files[_PACKAGE]
            for cpu, files in notes.below(_CPUS).items()
            if _PACKAGE in files and cpu.removeprefix("cpu").isdecimal()
        }
        _read_sockets(notes, packages)
        for node, files in notes.below(_NODES).items():
            number = to_int(node.removeprefix("node"), low=0, high=MAX_NODES - 1)
            if number is not None and "cpulist" in files:
                _read_node_cpus(notes, notes.draft.numa(number), files["cpulist"], packages)
        read_files(notes)


def _read_cpuinfo(notes: Notes) -> None:
    """The first value of every key of cpuinfo counts: all processors are taken to be alike."""
    file = notes.files.get("proc/cpuinfo")
    if file is None:
        return
    lines: dict[str, tuple[int, str]] = {}
    for number, text in file.lines:
        name, colon, _ = text.partition(":")
        if colon:
            lines.setdefault(name.strip().lower(), (number, text))
    values = {key: text.partition(":")[2].strip() for key, (_, text) in lines.items()}
    cpu = notes.draft.single("cpu")
    if file.error is not None and not file.lines:
        notes.miss(cpu, "name", file.error, file)
        return
    fields = _of_processor(values)
    for (field, key), known in fields.items():
        if known is None:
            notes.reject(cpu, field, f"not a number for {key}", file, lines[key])
        else:
            notes.take(cpu, field, known, file, lines[key])
    if file.text and not fields:
        notes.miss(cpu, "arch", "neither x86, ARM nor POWER, by its cpuinfo", file)
    if "hypervisor" in values.get("flags", "").split():
        # CPUID leaf 1, ECX bit 31: no processor sets it, every hypervisor does.
        at = (lines["flags"][0], "flags : ... hypervisor ...")
        notes.take(notes.system, "virtualization", "vm", file, at)


def _of_processor(values: dict[str, str]) -> dict[tuple[str, str], object]:
    """What cpuinfo says of a processor, by field and the key that says it; None for a number that is none."""
    fields: dict[tuple[str, str], object] = {}
    numbers: tuple[tuple[str, str], ...] = ()
    if "vendor_id" in values:
        fields = {("arch", "vendor_id"): "x86_64", ("vendor", "vendor_id"): values["vendor_id"],
                  ("name", "model name"): values.get("model name", "")}  # fmt: skip
        numbers = (("family", "cpu family"), ("model", "model"))
    elif "cpu implementer" in values:
        maker, part = (to_int(values.get(key), low=0, high=0xFFFF) for key in ("cpu implementer", "cpu part"))
        vendor = None if maker is None else _NAMES["arm-vendors"].get(hex(maker), hex(maker))
        name = _NAMES["arm-parts"].get(f"{maker or 0:#x} {part or 0:#x}", "")
        fields = {("arch", "cpu implementer"): "aarch64", ("vendor", "cpu implementer"): vendor,
                  ("name", "cpu part"): name}  # fmt: skip
        numbers = (("family", "cpu architecture"), ("model", "cpu part"))
    elif values.get("cpu", "").startswith("POWER"):
        name = values["cpu"].partition(",")[0]
        fields = {("arch", "cpu"): "ppc64le", ("vendor", "cpu"): "IBM", ("name", "cpu"): name}
    return {place: value for place, value in fields.items() if value != ""} | {
        (field, key): to_int(values[key], low=0, high=0xFFFF) for field, key in numbers if key in values
    }


def _read_count(notes: Notes) -> None:
    """Online processors: the capture holds one cpuinfo block per socket, so blocks are no count."""
    file = notes.files.get(f"{_CPUS}/online")
    if file is not None:
        notes.convert(notes.draft.single("cpu"), "count", lambda text: len(parse_cpulist(text) or ()) or None, file)


def _read_sockets(notes: Notes, packages: dict[int, TreeFile]) -> None:
    """Distinct packages, over the first processor of each NUMA node and the processors in cpuinfo."""
    shown = [(file, value_line(file), file.text or "") for file in packages.values()]
    for file, line in notes.lines_of("proc/cpuinfo"):
        key, _, value = line[1].partition(":")
        if key.strip() == "physical id":
            shown.append((file, line, value))
    known = [(socket, file, line) for file, line, text in shown if (socket := _package(text)) is not None]
    if known:
        _, file, line = known[0]
        notes.take(notes.draft.single("cpu"), "sockets", len({socket for socket, _, _ in known}), file, line)


def _read_node_cpus(notes: Notes, numa: Entity, file: TreeFile, packages: dict[int, TreeFile]) -> None:
    cpus = parse_cpulist(file.text or "") if file.lines else None
    if not file.lines:
        notes.miss(numa, "cpus", file.error or "nothing was read", file)
    elif cpus is None:
        notes.reject(numa, "cpus", "not a cpu list", file)
    else:
        notes.take(numa, "cpus", file.text, file)  # empty: memory alone
    for cpu, package in packages.items():
        if cpu in (cpus or ()) and (socket := _package(package.text or "")) is not None:
            notes.take(numa, "socket", socket, package)
            return
