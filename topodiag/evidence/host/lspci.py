"""`lspci -vv`, with or without domains and numbers, whole or pasted in part."""

from __future__ import annotations

import re
from dataclasses import field

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.pcie import ALL_ONES, MAX_WIDTH, NEEDS_ROOT, NO_ACS, gen_of_speed
from topodiag.evidence.interface import Blob, Parsed, Source, to_int
from topodiag.evidence.readings import Reading
from topodiag.evidence.sentences import report
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import normalise_bus_id
from topodiag.model.provenance import Fact
from topodiag.model.topics import Topic
from topodiag.words.own_data import own_data

MAX_LINE = 2048
"""Characters of a line that are looked at; lspci's own are a few hundred."""

_PLACE = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
_HEADER = regex(rf"(?:> )?\s{{0,16}}({_PLACE}) (?:\"?)(\S.*)")
_COMMAND = regex(
    rf"(?:[^\n$#]{{0,80}}[$#] ?)?(?:sudo )?lspci(?= )(?:[^\n|;]{{0,80}}? -[A-Za-z]{{0,6}}s ?({_PLACE})(?=[\s|;]|$))?"
)
"""The command itself: `-s` names the function whose lines follow, where grep took its first line away."""
_CLASS = regex(r"([A-Z0-9][A-Za-z0-9 /,&()-]{2,60}?)(?: \[([0-9a-f]{4})\])?: (\S.*)")
_NUMERIC = regex(r"(?:Class )?([0-9a-f]{4}): ([0-9a-f]{4}):([0-9a-f]{4})\b(.*)")
_IDS = regex(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]")
_LINK = regex(r"Speed ([^,]{1,40}), Width x([0-9]{1,3})( \(downgraded\))?")
"""The last is lspci's own comparison of LnkSta with LnkCap (pciutils ls-caps.c), which `grep LnkSta` leaves alone."""
_KNOWN = own_data("evidence/host/lspci")
_ACS_BIT = regex(r"\b([A-Z][A-Za-z]{3,12})([+-])")
_PORT_TYPES = {"Root Port": "root-port", "Upstream Port": "upstream", "Downstream Port": "downstream",
               "Bridge": "pci-bridge", "Endpoint": "endpoint"}  # fmt: skip
_CAPABILITY = regex(r"Capabilities: \[([0-9a-f]{2,3})(?: v[0-9]{1,2})?\] ?(.*)")
_NO_FIRMWARE = ("secure recovery", "flash recovery")
"""In pci.ids, an adapter of Mellanox that runs the loader of its flash and no firmware: livefish."""
_LINES = regex(r"^[>\s]{0,40}(?:LnkCap:\s{1,8}Port #|LnkSta:\s{1,8}Speed |ACSCtl:\s{1,8}SrcValid)", re.MULTILINE)
"""What grep leaves of a function."""


@dataclass(slots=True)
class _Function:
    """The function whose lines are being read."""

    bus_id: str
    line: int
    text: str
    details: list[Reading] = field(default_factory=list)
    express: bool = False
    extended: bool = False
    listed: bool = False
    acs: bool = False
    acs_named: bool = False
    closed: bool = True
    """False when the text ended inside the function: what was not seen may have been cut off."""

    def take(self, name: str, value: int | str | bool | None, line: int, text: str, why: str = "") -> None:
        self.details.append(Reading(self.bus_id, name, value, line, text.strip(), why))


class Lspci(Source[Reading]):
    """Reads what each function is, its link, its place, its driver and its ACS control register."""

    kind = "lspci"
    speaks_of = frozenset({Topic.PCI})
    trust = 70

    def recognises(self, head: str) -> bool:
        headers = (match for line in head.split("\n") if (match := _HEADER.fullmatch(line[:MAX_LINE])) is not None)
        return _LINES.search(head) is not None or any(_is_described(match[2]) for match in headers)

    def parse(self, blob: Blob) -> Parsed[Reading]:
        parsed: Parsed[Reading] = Parsed()
        function = _Function("", 1, "")
        bridges: dict[str, str] = {}
        lines = list(blob.lines())
        for number, full in lines:
            text = full[:MAX_LINE]
            header = _HEADER.fullmatch(text)
            if header is not None and (bus_id := normalise_bus_id(header[1])) is not None:
                _finish(function, parsed)
                function = _Function(bus_id, number, text)
                _read_header(function, number, text, header[2])
            elif (command := _COMMAND.match(text)) is not None:
                _finish(function, parsed)
                function = _Function((normalise_bus_id(command[1]) or "") if command[1] else "", number, text)
            elif (why := _read_line(function, number, text, bridges)) is not None:
                parsed.leave(blob, number, text, why)
        function.closed = len(lines) > 2 and not lines[-1][1].strip() and not lines[-2][1].strip()
        _finish(function, parsed)
        _place(parsed, bridges)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[Reading], draft: NodeDraft) -> None:
        for detail in parsed.records:
            if detail.subject:
                detail.offer_to(draft.pci(detail.subject), blob)
            elif detail.name == "acs" and isinstance(detail.value, int):
                draft.acs_lines.append(Fact(detail.value, blob.origin(detail.line, detail.text)))
            if detail.name == "description" and any(word in str(detail.value).lower() for word in _NO_FIRMWARE):
                draft.reports.append(report("nic.firmware", detail.text[:200], blob, detail.line, detail.text))


def _is_described(rest: str) -> bool:
    """Whether what stands behind a function's place is a description of lspci's."""
    named = _CLASS.match(rest)
    return _NUMERIC.match(rest) is not None or (
        named is not None and (named[1] in _KNOWN["classes"] or named[2] is not None or " (rev " in rest)
    )


def _read_header(function: _Function, line: int, text: str, rest: str) -> None:
    """`3D controller [0302]: NVIDIA Corporation GH100 [10de:2330] (rev a1)`, numbers only with `-nn` or `-n`."""
    if "(rev ff)" in rest:
        function.take("lost", ALL_ONES, line, text)
    low = to_int("0x" + rest.partition("(prog-if ")[2][:2]) or 0
    if numeric := _NUMERIC.match(rest):
        function.take("class_code", int(numeric[1], 16) << 8 | low, line, text)
        function.take("vendor", int(numeric[2], 16), line, text)
        function.take("device", int(numeric[3], 16), line, text)
        return
    named = _CLASS.match(rest)
    if named is None:
        return
    code = int(named[2], 16) if named[2] else _KNOWN["classes"].get(named[1])
    if code is not None:
        function.take("class_code", code << 8 | low, line, text)
    product = named[3].partition(" (rev ")[0].partition(" (prog-if ")[0].strip()
    numbers = _IDS.findall(product)
    if numbers:
        function.take("vendor", int(numbers[-1][0], 16), line, text)
        function.take("device", int(numbers[-1][1], 16), line, text)
        product = _IDS.sub("", product).strip()
    else:
        vendor = next((number for name, number in _KNOWN["vendors"].items() if product.startswith(name)), None)
        if vendor is not None:
            function.take("vendor", vendor, line, text)
    if product:
        function.take("description", product[:200], line, text)
    if "Virtual Function" in product:
        function.take("is_vf", True, line, text)


def _read_line(function: _Function, line: int, text: str, bridges: dict[str, str]) -> str | None:
    """Take the values of one line of a function; the answer is why a line of a known kind could not be read."""
    if "!!! Unknown header type 7f" in text:
        function.take("lost", ALL_ONES, line, text)
        return None
    name, colon, rest = text.lstrip("> \t").partition(":")
    rest = rest.strip()
    if not colon:
        return None
    if name in ("LnkCap", "LnkSta"):
        return _read_link(function, line, text, name, rest)
    if name == "ACSCtl":
        return _read_acs(function, line, text, rest)
    if name == "Capabilities":
        _read_capability(function, line, text)
    elif name == "NUMA node" and (node := to_int(rest, low=-1, high=4095)) is not None:
        function.take("numa", node, line, text)
    elif name == "Kernel driver in use" and rest:
        function.take("driver", rest[:80], line, text)
    elif name == "IOMMU group" and (group := to_int(rest, low=0, high=2**31)) is not None:
        function.take("iommu_group", group, line, text)
    elif name == "Subsystem" and (numbers := _IDS.findall(rest)):
        function.take("subsystem_vendor", int(numbers[-1][0], 16), line, text)
        function.take("subsystem_device", int(numbers[-1][1], 16), line, text)
    elif name == "Bus" and function.bus_id and (bus := rest.partition("secondary=")[2][:2]) not in ("", "00"):
        bridges.setdefault(f"{function.bus_id.partition(':')[0]}:{bus}", function.bus_id)
    return None


def _read_link(function: _Function, line: int, text: str, name: str, rest: str) -> str | None:
    link = _LINK.search(rest)
    if link is None:
        return "no speed and width in it"
    prefix = "max_" if name == "LnkCap" else ""
    gen = gen_of_speed(link[1])
    width = int(link[2])
    function.take(f"{prefix}gen", gen, line, text, "" if gen else f"lspci says speed {link[1]}"[:80])
    known = 1 <= width <= MAX_WIDTH
    function.take(f"{prefix}width", width if known else None, line, text, "" if known else f"lspci says width x{width}")
    if not prefix and known and link[3]:
        function.take("narrowed", True, line, text)
    return None


def _read_acs(function: _Function, line: int, text: str, rest: str) -> str | None:
    """The register from its flags by name. ACSCap, which says what could be switched on, is another line."""
    bits = {flag: sign for flag, sign in _ACS_BIT.findall(rest) if flag in _KNOWN["acs"]}
    if "ReqRedir" not in bits or "CmpltRedir" not in bits:
        return "ACS flags are missing"
    function.acs = True
    function.take("acs", sum(_KNOWN["acs"][flag] for flag, sign in bits.items() if sign == "+"), line, text)
    return None


def _read_capability(function: _Function, line: int, text: str) -> None:
    if "<access denied>" in text:
        why = f"{NEEDS_ROOT}: lspci was denied the capabilities"
        for name in ("acs", "port_type", "gen", "width", "max_gen", "max_width"):
            function.take(name, None, line, text, why)
        function.acs = True
        return
    capability = _CAPABILITY.search(text)
    if capability is None:
        return
    function.listed = True
    function.extended |= int(capability[1], 16) >= 0x100
    function.acs_named |= "Access Control Services" in capability[2]
    kind = next((kind for name, kind in _PORT_TYPES.items() if name in capability[2]), None)
    if capability[2].startswith("Express") and kind is not None:
        function.express = True
        function.take("port_type", kind, line, text)


def _finish(function: _Function, parsed: Parsed[Reading]) -> None:
    """Close a function: where its capabilities were listed without ACS, say whether it has none or none was shown."""
    if function.bus_id and function.listed and not function.acs:
        if function.acs_named:
            why = "ACS is there, but its control register was not printed: lspci -vv prints it"
        elif not function.closed:
            why = "the text ends before the function does"
        elif function.extended or not function.express:
            why = NO_ACS
        else:
            why = "no extended capabilities were printed"
        function.take("acs", None, function.line, function.text, why)
    parsed.records.extend(function.details)


def _place(parsed: Parsed[Reading], bridges: dict[str, str]) -> None:
    """The bridge above each function: the one whose secondary bus is the function's bus."""
    seen: set[str] = set()
    for detail in list(parsed.records):
        bus_id = detail.subject
        if bus_id and bus_id not in seen:
            seen.add(bus_id)
            parent = bridges.get(bus_id.rpartition(":")[0])
            if parent is not None and parent != bus_id:
                parsed.records.append(Reading(bus_id, "parent", parent, detail.line, detail.text))
