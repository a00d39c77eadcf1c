"""`read_file`: a topology file with the tree that is in it, and which NCCL versions refuse it, where and why.

What NCCL takes without a word and not as it was meant: values outside its dictionaries, doubled names and bus ids.

Dictionaries: kvDictPciGen, kvDictPciClass, kvDictCpuArch of src/graph/topo.cc, the same in all known versions but for
class 0x080100 (CX8_CLASS). A text is looked up by prefix (kvConvertToInt in src/graph/xml.h).

Reads the tree out of a file that NCCL refuses: a prolog, a DOCTYPE, tabs, line breaks in tags, text, broken ends.

Source `nccl-xml`: a topology file for NCCL, or a dump of it, as evidence of a node: facts of the draft. A tree tells
what NCCL sees, not how links do: link_speed and link_width are what function and slot can do together up to NCCL 2.29
(the lesser of both ends' max_link_speed in sysfs), so they are offered as that and never as trained values; a network's
speed comes without its port's state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.pcie import MAX_WIDTH, gen_of_speed
from topodiag.evidence.interface import Blob, Parsed, Source, to_int
from topodiag.evidence.nccl_xml import lexer
from topodiag.evidence.nccl_xml.load import OpenElement, c_int, load
from topodiag.evidence.xml_tags import decoded, tags
from topodiag.lazy import regex
from topodiag.model.busid import NVSWITCH_BUS_ID, normalise_bus_id
from topodiag.model.cpulist import parse_cpumask
from topodiag.model.errors import InputError
from topodiag.model.nccl_tree import RCCL_FILE, Element, NcclFile, Refusal, family_of, first_host, renamed
from topodiag.model.nccl_versions import NEWEST, Feature
from topodiag.model.provenance import NotObserved, Origin
from topodiag.words.dialect import Maker
from topodiag.words.units import fold_numbers, spell_bytes

LINK_SPEEDS = (
    "2.5 GT/s", "5 GT/s", "8 GT/s", "16 GT/s", "32 GT/s",
    "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe",
)  # fmt: skip
CLASSES = ("0x060400", "0x068000", "0x068001", "0x03", "0x02")
CX8_CLASS = "0x080100"
RCCL_GPU_CLASS = "0x120000"
"""A processing accelerator, as AMD's GPUs are since MI300: RCCL's dictionary has it, and NCCL meets none."""
ARCHITECTURES = ("x86_64", "arm64", "ppc64")
_GEN3, _PCI, _ANY_CPU = 60, 1, 0


def notes_of(tree: Element) -> Iterator[Refusal]:
    """The notes on a tree, in the order of the file; at most one per value."""
    seen: dict[str, int] = {}
    for element in tree.walk():
        names = [key for key, _ in element.attributes]
        for key in dict.fromkeys(name for name in names if names.count(name) > 1):
            yield _note("doubled-attribute", f"{key} of {element.tag} stands twice: the first counts", element)
        if element.tag == "pci":
            yield from _on_pci(element, seen)
        elif element.tag == "cpu" and (arch := element.get("arch")) and not arch.startswith(ARCHITECTURES):
            yield _note("arch", _fallback(arch, _ANY_CPU), element)


def _on_pci(element: Element, seen: dict[str, int]) -> Iterator[Refusal]:
    speed, width, code = element.get("link_speed"), element.get("link_width"), element.get("class")
    if speed is not None and not speed.startswith(LINK_SPEEDS):
        yield _note("link-speed", f"{_fallback(speed, _GEN3)}: 8 GT/s (Gen3) per lane", element)
    if width is not None and c_int(width) == 0:
        yield _note("link-width", f"link_width '{width}' counts as 16 lanes", element)
    held = {child.tag for child in element.children}
    if code is not None and not code.startswith((*CLASSES, RCCL_GPU_CLASS)) and not held & {"gpu", "nic"}:
        until = Feature.CX8_CLASS.since - 1 if code.startswith(CX8_CLASS) else NEWEST
        yield _note("class", _fallback(code, _PCI), element, until)
    bus_id = (element.get("busid") or "").lower()
    if bus_id and bus_id in seen:
        yield _note("doubled-busid", f"busid {bus_id} stands twice, first on line {seen[bus_id]}", element)
    elif bus_id:
        seen[bus_id] = element.line


def _fallback(text: str, value: int) -> str:
    return f"KV Convert to int : could not find value of '{text}' in dictionary, falling back to {value}"


def _note(rule: str, words: str, element: Element, until: int = NEWEST) -> Refusal:
    return Refusal(rule, words, element.line, 1, until=until)


_ALLOWED = {**lexer.RULES[-1].allowed, "gpu": (*lexer.RULES[-1].allowed["gpu"], "xgmi")}


def read_tolerantly(data: bytes, name: str) -> Element | None:
    """The first `system` of a file and what NCCL reads below it; None where there is none. Raises InputError for a
    file that is deeper or fuller than any machine."""
    stack: list[OpenElement] = []
    for tag in tags(decoded(data), name, lexer.MAX_TAGS):
        if not tag.closes:
            stack.append(OpenElement(tag, _is_known(stack, tag.name)))
        if (tag.closes or tag.self_closing) and (done := _close(stack, tag.name)) is not None:
            return done
        if len(stack) > lexer.MAX_DEPTH:
            raise InputError(name, f"nests deeper than {lexer.MAX_DEPTH} elements", line=tag.line, hint="refused")
    # The file ends before its elements do: they are taken as closed.
    ends = (_close(stack, element.tag.name) for element in stack[::-1])
    return next((done for done in ends if done is not None), None)


def _is_known(stack: list[OpenElement], tag: str) -> bool:
    """Whether NCCL would read this element here. `system` is looked for below foreign roots too."""
    if not any(element.known for element in stack):
        return tag == "system"
    return stack[-1].known and tag in _ALLOWED.get(stack[-1].tag.name, ())


def _close(stack: list[OpenElement], tag: str) -> Element | None:
    """Close the nearest open element of that name with all inside it; a stray end is passed over. Gives the system."""
    if all(element.tag.name != tag for element in stack):
        return None
    while True:
        element = stack.pop()
        if element.known:
            if not (stack and stack[-1].known):
                return element.closed()
            stack[-1].children.append(element.closed())
        if element.tag.name == tag:
            return None


_OF_RCCL = regex(rb"<system\s[^>]{0,400}version=\"2\"|<xgmi\s|<gpu\s[^>]{0,400}\sgcn=")
"""Signs of a file that RCCL wrote or is meant for: its version, its links, the architecture of its GPUs."""


def read_file(data: bytes, name: str) -> NcclFile:
    """Read a topology file. Raises InputError only for what is too large or too deep for any machine."""
    if len(data) > lexer.MAX_FILE_BYTES:
        why = f"is larger than {spell_bytes(lexer.MAX_FILE_BYTES)}"
        raise InputError(name, why, hint="refused: is it a topology file?")
    rccl = _OF_RCCL.search(data) is not None and b"<nvlink" not in data
    all_rules = (lexer.RCCL_RULES,) if rccl else lexer.RULES
    readings = [load(data, name, rules) for rules in all_rules]
    pairs, places = list(zip(readings, all_rules, strict=True)), lexer.Places(data)
    refusals = _joined(((loaded.refused, rules) for loaded, rules in pairs if loaded.refused is not None), places)
    notes = _joined(((note, rules) for loaded, rules in pairs for note in loaded.notes), places)
    tree = readings[-1].tree if readings[-1].refused is None else read_tolerantly(data, name)
    if rccl and tree is not None:
        tree = renamed(tree, {"xgmi": "nvlink"}, RCCL_FILE)
    more = list(islice(notes_of(tree), lexer.MAX_NOTES)) if tree is not None else []
    if tree is None and readings[-1].refused is None:
        more.append(Refusal("no-system", "no system element: NCCL takes nothing from this file", 1, 1))
    nccl_file = NcclFile(name, tree or Element("system"), refusals, (*notes, *more), Origin(name, None))
    return replace(nccl_file, maker=Maker.AMD, asked=(lexer.RCCL_MINOR,)) if rccl else nccl_file


def _joined(remarks: Iterable[tuple[lexer.Remark, lexer.Rules]], places: lexer.Places) -> tuple[Refusal, ...]:
    """Refusals or notes of each version, those that neighbouring versions say alike joined."""
    joined: list[Refusal] = []
    known: dict[lexer.Remark, int] = {}
    for remark, rules in remarks:
        place = known.get(remark)
        if place is not None and joined[place].until + 1 == rules.since:
            joined[place] = replace(joined[place], until=rules.until)
        else:
            known[remark] = len(joined)
            joined.append(Refusal(remark.rule, remark.words, *places.of(remark.offset), rules.since, rules.until))
    return tuple(joined)


_INSIDE = regex(r"<(?:cpu|pci)\s[^<>]{0,400}(?:numaid|affinity|busid)\s{0,9}=|<system\s[^<>]{0,400}\bversion\s{0,9}=")


class NcclXml(Source):
    """Keeps the file as NCCL meets it; alone, it also tells the machine's devices. In a capture it stays a file: it
    says what NCCL was given, which need not be the machine that it was found on."""

    def recognises(self, head: str) -> bool:
        return head.lstrip("\ufeff \t\r\n").startswith("<") and "<system" in head and _INSIDE.search(head) is not None

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[NcclFile]:
        parsed: Parsed[NcclFile] = Parsed()
        try:
            file = read_file(blob.data, blob.name)
        except InputError as error:
            if blob.item is None:
                raise
            parsed.leave(blob, error.line, "", error.message)
            return parsed
        parsed.records.append(file)
        draft.nccl_file = draft.nccl_file or file
        if blob.item is None:
            _Filler(blob, draft).fill(file.tree)
            _say_of_others(file, draft)
        return parsed


def _say_of_others(file: NcclFile, draft: NodeDraft) -> None:
    """A dump of a multi-node NVLink clique is one node per host; the tree keeps them all."""
    hosts = len({cpu.get("host_hash") for cpu in file.tree.having("cpu")})
    if hosts > 1:
        what = f"{hosts - 1} more hosts in {file.name}"
        draft.missing.append(NotObserved(what, "a dump of several hosts counts as its first one"))


MAX_GPUS, MAX_LINKS, MAX_NUMA, MAX_PORT = 256, 64, 4095, 255
_HIDDEN = "fffffff:ffff:ff"
_INTERFACE = regex(r"(?:eth|en[opsxP]|ib|bond|wl|veth|virbr|docker|lo)[0-9a-zA-Z._-]{0,20}")
_REMOTES = (("0x068001", "cpu"), ("0x068000", "switch"), ("0x03", "gpu"), ("0x12", "gpu"))


class _Filler:
    def __init__(self, blob: Blob, draft: NodeDraft) -> None:
        self._draft = draft
        self._line = blob.quoted(2**20)
        self._indices: set[int | None] = set()

    def _origin(self, element: Element) -> Origin:
        return self._line(element.line)

    def fill(self, tree: Element) -> None:
        """Offer everything that the tree says of its first host."""
        for number, cpu in enumerate(first_host(tree)):
            self._cpu(cpu)
            numa = to_int(cpu.get("numaid"), low=-1, high=MAX_NUMA)
            self._below(cpu, numa, f"numa{numa}" if numa is not None else f"cpu{number}", None)

    def _below(self, element: Element, numa: int | None, root: str, parent: str | None) -> None:
        """Every pci and nic element below this one. `parent` is the bus id of the nearest element that has one."""
        for child in element.children:
            if child.tag == "pci":
                bus_id = normalise_bus_id(child.get("busid") or "")
                if bus_id is not None and bus_id != NVSWITCH_BUS_ID:
                    self._pci(child, bus_id, numa, root, parent)
                self._below(child, numa, root, bus_id or parent)
            elif child.tag == "nic":
                self._nets(child, parent)

    def _cpu(self, cpu: Element) -> None:
        origin = self._origin(cpu)
        whole = self._draft.single("cpu")
        family, model = (to_int(cpu.get(name), low=1, high=0xFFFF) for name in ("familyid", "modelid"))
        whole.put(origin, arch=cpu.get("arch") or None, vendor=cpu.get("vendor") or None, model=model)
        whole.offer("family", None if family is None else family_of(family), origin)
        numa = to_int(cpu.get("numaid"), low=0, high=MAX_NUMA)
        if numa is not None:
            cpus = fold_numbers(parse_cpumask(cpu.get("affinity") or "") or ())
            self._draft.numa(numa).offer("cpus", cpus or None, origin, "the file gives no affinity")

    def _pci(self, element: Element, bus_id: str, numa: int | None, root: str, parent: str | None) -> None:
        origin = self._origin(element)
        function = self._draft.pci(bus_id)
        function.offer("class_code", to_int(element.get("class"), low=0, high=0xFFFFFF), origin)
        for name in ("vendor", "device", "subsystem_vendor", "subsystem_device"):
            function.offer(name, to_int(element.get(name), low=0, high=0xFFFF), origin)
        gen = gen_of_speed(element.get("link_speed") or "")
        width = to_int(element.get("link_width"), low=1, high=MAX_WIDTH)
        function.put(origin, numa=numa, root=root, parent=parent, slot_max_gen=gen, slot_max_width=width)
        if element.having("pci"):
            # NCCL climbs two levels at a time: what it shows above a device is a switch's upstream port.
            function.offer("port_type", "upstream", origin)
        for gpu in element.having("gpu"):
            self._gpu(gpu, bus_id, numa)
        bare = (element.get("class") or "").startswith("0x03") and element.get("vendor") in (None, "0x10de")
        if bare and not element.having("gpu"):
            # A file for a virtual machine may name places alone: NCCL asks the driver for the rest.
            self._draft.gpu(bus_id=bus_id).offer("numa", numa, origin)

    def _gpu(self, element: Element, bus_id: str, numa: int | None) -> None:
        origin = self._origin(element)
        index = to_int(element.get("dev"), low=0, high=MAX_GPUS - 1)
        gpu = self._draft.gpu(index=None if index in self._indices else index, bus_id=bus_id)
        self._indices.add(index)
        if element.get("gcn") is None:  # RCCL's files count compute units there
            gpu.offer("sm", to_int(element.get("sm"), low=1, high=999), origin)
        gpu.offer("numa", numa, origin)
        number = 0
        for link in element.having("nvlink"):
            remote = _remote(link)
            target = normalise_bus_id(link.get("target") or "")
            for _ in range(max(0, min(c_int(link.get("count") or ""), MAX_LINKS - number))):
                one = gpu.child("nvlink", number)
                one.put(self._origin(link), state="active", remote_type=remote, remote_bus_id=target)
                number += 1
        for c2c in element.having("c2c")[:1]:
            megabytes, count = c_int(c2c.get("bw") or ""), c_int(c2c.get("count") or "")
            gpu.offer("c2c", True, self._origin(c2c))
            if 0 < megabytes < 10**7 and 0 < count < MAX_LINKS:
                gpu.offer("c2c_gbs", megabytes * count / 1000, self._origin(c2c))

    def _nets(self, nic: Element, bus_id: str | None) -> None:
        single_net = len({net.get("name") for net in nic.having("net")}) == 1
        for net in nic.having("net"):
            name = net.get("name")
            if not name or len(name) > 64:
                continue
            origin = self._origin(net)
            speed = to_int(net.get("speed"), low=1, high=10**8)
            port = to_int(net.get("port"), low=0, high=MAX_PORT) or 0
            if port == 0 and _INTERFACE.fullmatch(name):
                self._draft.netdev(name).put(origin, speed_mbps=speed, bus_id=bus_id)
                continue
            # A NIC that NCCL merged from several is called by all of them: mlx5_0+mlx5_1.
            parts = name.split("+")
            for part in parts:
                entity = self._draft.nic(rdma=part, bus_id=bus_id if single_net and len(parts) == 1 else None)
                if speed is not None:
                    entity.child("port", port or 1).offer("rate_gbps", speed / 1000 / len(parts), origin)


def _remote(link: Element) -> str:
    code, target = link.get("tclass"), link.get("target")
    if code is None and (target == _HIDDEN or (target and normalise_bus_id(target) == NVSWITCH_BUS_ID)):
        return "switch"
    return next((kind for prefix, kind in _REMOTES if code and code.startswith(prefix)), "unknown")
