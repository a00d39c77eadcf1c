"""`numactl -H`: the processors, the memory and the distances of NUMA nodes.

    available: 2 nodes (0-1)
    node 0 cpus: 0 1 2 3 4 5 6 7
    node 0 size: 515512 MB
    node distances:
    node   0   1
      0:  10  21
      1:  21  10

Format: numactl 2.0.8 to 2.0.18 (numactl.c, hardware). Memory without processors is usual (CXL, Grace's GPUs);
processors without memory are not.

Processors and NUMA nodes from `/proc/cpuinfo` and `/sys/devices/system/{cpu,node}`, as a tree.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Direct, Parsed, Source, to_int
from topodiag.evidence.pasted_files import shows
from topodiag.evidence.readings import Notes, Reading, read_readings, value_line
from topodiag.evidence.sentences import report
from topodiag.evidence.tree import Tree, TreeFile
from topodiag.lazy import dataclass, regex
from topodiag.model.cpulist import parse_cpulist
from topodiag.model.events import REMARK
from topodiag.model.topics import Topic
from topodiag.words.fold import fold_numbers
from topodiag.words.own_data import own_data

MAX_NODES = 1024
MAX_LINE = 16384
_FIELD = regex(r"[ \t>|]{0,20}node (\d{1,4}) (cpus|size):\s{0,8}(.{0,16000})")
_ROW = regex(r"[ \t>|]{0,20}(\d{1,4}):((?:\s{1,8}\d{1,4}){1,1024})\s*\Z")


class Numactl(Direct):
    """NUMA nodes from `numactl -H`."""

    kind = "numactl"
    speaks_of = frozenset({Topic.CPUS})
    trust = 65
    a_piece = "it names no processor"

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        parsed: Parsed[int] = Parsed()
        busy = set[int]()
        for number, text in blob.lines():
            field, row = _FIELD.match(text[:MAX_LINE]), _ROW.match(text[:MAX_LINE]) if parsed.records else None
            match = field or row
            if match is None or int(match[1]) >= MAX_NODES:
                continue
            node, numbers = int(match[1]), [int(digits) for digits in re.findall(r"\d{1,12}", match[match.re.groups])]
            if field is None:
                draft.numa(node).offer("distances", tuple(numbers), blob.origin(number, text))
            elif field[2] == "cpus":
                draft.numa(node).offer("cpus", fold_numbers(set(numbers)), blob.origin(number, text))
                busy |= {node} if numbers else set()
            elif numbers[:1] == [0] and node in busy:
                said = f"NUMA node {node} has processors and no memory"
                draft.reports.append(report(REMARK, said, blob, number, text))
            parsed.records.append(number)
        return parsed


_SHOWN = ("proc/cpuinfo", "sys/devices/system/node/", "sys/devices/system/cpu/")
_NODE = regex(r"sys/devices/system/node/node([0-9]{1,4})/(cpulist|distance)")
_PACKAGE = regex(r"sys/devices/system/cpu/cpu([0-9]{1,5})/topology/physical_package_id")

_NAMES = own_data("evidence/host/names")
Line = tuple[int, str]


class SysCpu(Source[Reading]):
    """Reads the processors' names and the NUMA nodes. Subjects are `cpu`, `os` and `numa N`.

    Trusted a little less than os-state, because the hypervisor flag says that this is a guest and not of whom.
    """

    kind = "sys-cpu"
    speaks_of = frozenset({Topic.CPUS})
    trust = 78

    def recognises(self, head: str) -> bool:
        return shows(head, *_SHOWN)

    def parse(self, blob: Blob) -> Parsed[Reading]:
        tree, parsed = read_readings(blob)
        notes = Notes(blob, parsed)
        cpuinfo = tree.files.get("proc/cpuinfo")
        if cpuinfo is not None:
            _read_cpuinfo(cpuinfo, notes)
        _read_count(tree, notes)
        _read_sockets(tree, notes)
        _read_nodes(tree, notes)
        _read_governor(tree, notes)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[Reading], draft: NodeDraft) -> None:
        for reading in parsed.records:
            kind, _, number = reading.subject.partition(" ")
            reading.offer_to(draft.numa(int(number)) if number else draft.single(kind), blob)


@dataclass(frozen=True, slots=True)
class _Processor:
    """The first value of every key of cpuinfo, with its line: all processors are taken to be alike."""

    file: TreeFile
    values: dict[str, str]
    lines: dict[str, Line]
    notes: Notes

    def take(self, field: str, key: str, value: object) -> None:
        self.notes.take("cpu", field, value, self.file, self.lines[key])

    def number(self, field: str, key: str) -> None:
        if key in self.values:
            value = to_int(self.values[key], low=0, high=0xFFFF)
            if value is None:
                self.notes.reject("cpu", field, f"not a number for {key}", self.file, self.lines[key])
            else:
                self.take(field, key, value)


def _read_governor(tree: Tree, notes: Notes) -> None:
    """The frequency governor and the driver below it, of the first processor."""
    for name, field in (("scaling_governor", "governor"), ("scaling_driver", "frequency_driver")):
        file = tree.files.get(f"sys/devices/system/cpu/cpu0/cpufreq/{name}")
        if file is not None and (word := value_line(file)[1]).replace("_", "").replace("-", "").isalnum():
            notes.take("os", field, word[:32], file)


def _read_cpuinfo(file: TreeFile, notes: Notes) -> None:
    values: dict[str, str] = {}
    lines: dict[str, Line] = {}
    for number, text in file.lines:
        name, colon, value = text.partition(":")
        key = name.strip().lower()
        if colon and key not in values:
            lines[key] = (number, text)
            values[key] = value.strip()
    processor = _Processor(file, values, lines, notes)
    if file.error is not None and not file.lines:
        notes.miss("cpu", "name", file.error, file)
    elif "vendor_id" in values:
        _read_x86(processor)
    elif "cpu implementer" in values:
        _read_arm(processor)
    elif values.get("cpu", "").startswith("POWER"):
        processor.take("arch", "cpu", "ppc64le")
        processor.take("vendor", "cpu", "IBM")
        processor.take("name", "cpu", values["cpu"].partition(",")[0])
    elif file.text:
        notes.miss("cpu", "arch", "neither x86, ARM nor POWER, by its cpuinfo", file)


def _read_x86(processor: _Processor) -> None:
    values = processor.values
    processor.take("arch", "vendor_id", "x86_64")
    if values["vendor_id"]:
        processor.take("vendor", "vendor_id", values["vendor_id"])
    processor.number("family", "cpu family")
    processor.number("model", "model")
    if values.get("model name"):
        processor.take("name", "model name", values["model name"])
    if "hypervisor" in values.get("flags", "").split():
        # CPUID leaf 1, ECX bit 31: no processor sets it, every hypervisor does.
        at = (processor.lines["flags"][0], "flags : ... hypervisor ...")
        processor.notes.take("os", "virtualization", "vm", processor.file, at)


def _read_arm(processor: _Processor) -> None:
    values = processor.values
    processor.take("arch", "cpu implementer", "aarch64")
    implementer = to_int(values["cpu implementer"], low=0, high=0xFF)
    if implementer is None:
        at = processor.lines["cpu implementer"]
        processor.notes.reject("cpu", "vendor", "not a CPU implementer", processor.file, at)
        return
    processor.take("vendor", "cpu implementer", _NAMES["arm-vendors"].get(hex(implementer), hex(implementer)))
    processor.number("family", "cpu architecture")
    processor.number("model", "cpu part")
    part = to_int(values.get("cpu part"), low=0, high=0xFFF)
    name = _NAMES["arm-parts"].get(f"{implementer:#x} {part:#x}") if part is not None else None
    if name is not None:
        processor.take("name", "cpu part", name)


def _read_count(tree: Tree, notes: Notes) -> None:
    """Online processors: the capture holds one cpuinfo block per socket, so blocks are no count."""
    file = tree.files.get("sys/devices/system/cpu/online")
    if file is None:
        return
    cpus = parse_cpulist(value_line(file)[1]) if file.lines else None
    if file.error is not None and not cpus:
        notes.miss("cpu", "count", file.error, file)
    else:
        notes.read("cpu", "count", len(cpus) if cpus else None, "not a cpu list", file)


def _read_sockets(tree: Tree, notes: Notes) -> None:
    """Distinct packages, over the first processor of each NUMA node and the processors in cpuinfo."""
    packages: set[int] = set()
    origin: tuple[TreeFile, Line] | None = None
    for path, file in tree.files.items():
        if _PACKAGE.fullmatch(path) and file.lines:
            package = to_int(value_line(file)[1], low=0, high=0xFFFF)
            if package is not None:  # the kernel writes -1 where the firmware does not say
                packages.add(package)
                origin = origin or (file, value_line(file))
    cpuinfo = tree.files.get("proc/cpuinfo")
    for number, text in cpuinfo.lines if cpuinfo is not None else ():
        key, colon, value = text.partition(":")
        if colon and key.strip() == "physical id" and (package := to_int(value, low=0, high=0xFFFF)) is not None:
            packages.add(package)
            origin = origin or ((cpuinfo, (number, text)) if cpuinfo is not None else None)
    if packages and origin is not None:
        notes.take("cpu", "sockets", len(packages), *origin)


def _read_nodes(tree: Tree, notes: Notes) -> None:
    packages = {int(match[1]): file for path, file in tree.files.items() if (match := _PACKAGE.fullmatch(path))}
    for path, file in tree.files.items():
        match = _NODE.fullmatch(path)
        if match is None or int(match[1]) >= MAX_NODES:
            continue
        subject, what = f"numa {int(match[1])}", match[2]
        if not file.lines:
            notes.miss(subject, "cpus" if what == "cpulist" else "distances", file.error or "nothing was read", file)
        elif what == "cpulist":
            _read_node_cpus(subject, file, packages, notes)
        else:
            _read_distances(subject, file, notes)


def _read_node_cpus(subject: str, file: TreeFile, packages: dict[int, TreeFile], notes: Notes) -> None:
    text = value_line(file)[1]
    cpus = parse_cpulist(text)
    if cpus is None:
        notes.reject(subject, "cpus", "not a cpu list", file)
        return
    notes.take(subject, "cpus", text, file)  # empty for a node that is memory alone
    for cpu, package in packages.items():
        if cpu in cpus and (socket := to_int(value_line(package)[1], low=0, high=0xFFFF)) is not None:
            notes.take(subject, "socket", socket, package)
            return


def _read_distances(subject: str, file: TreeFile, notes: Notes) -> None:
    words = value_line(file)[1].split()[:MAX_NODES]
    distances = tuple(to_int(word, low=0, high=255) for word in words)
    known = distances if distances and None not in distances else None
    notes.read(subject, "distances", known, "not a row of distances", file)
