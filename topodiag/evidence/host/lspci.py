"""`lspci -vv`, with or without domains and numbers, whole or pasted in part."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.pcie import ALL_ONES, MAX_WIDTH, NEEDS_ROOT, NO_ACS, gen_of_speed
from topodiag.evidence.interface import Blob, Parsed, Source, to_int
from topodiag.evidence.readings import Reading
from topodiag.evidence.sentences import report
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import normalise_bus_id
from topodiag.model.events import Trust
from topodiag.model.provenance import Fact
from topodiag.model.topics import Topic
from topodiag.words.own_data import own_data

MAX_LINE = 2048
"""Characters of a line that are looked at; lspci's own are a few hundred."""

_PLACE = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
_HEADER = regex(rf"(?:> )?\s{{0,16}}({_PLACE}) (?:\"?)(\S.*)")
_BARE = regex(rf"(?:> )?\s{{0,16}}({_PLACE}):?\s{{0,8}}")
"""A function's place alone, as loops and filters leave it above the lines of its link."""
_COMMAND = regex(
    rf"(?:[^\n$#]{{0,80}}[$#] ?)?(?:sudo )?lspci(?= )(?:[^\n|;]{{0,80}}? -[A-Za-z]{{0,6}}s ?({_PLACE})(?=[\s|;]|$))?"
)
"""The command itself: `-s` names the function whose lines follow, where grep took its first line away."""
_CLASS = regex(r"([A-Z0-9][A-Za-z0-9 /,&()-]{2,60}?)(?: \[([0-9a-f]{4})\])?: (\S.*)")
_NUMERIC = regex(r"(?:Class )?([0-9a-f]{4}): ([0-9a-f]{4}):([0-9a-f]{4})\b(.*)")
_IDS = regex(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]")
_TAIL = regex(r" (?:\((?:rev|prog-if) [^)]{1,60}\)?)")
_ALL_ONES = regex(r"\(rev ff\)")
_PROG_IF = regex(r"\(prog-if ([0-9a-f]{2})")
_LINK = regex(r"Speed ([^,]{1,40}), Width x([0-9]{1,3})")
_KNOWN = own_data("evidence/host/lspci")
_ACS_BIT = regex(r"\b([A-Z][A-Za-z]{3,12})([+-])")
_EXPRESS = regex(
    r"Express (?:\(v[0-9]\) )?(Root Port|Upstream Port|Downstream Port|(?:Legacy )?Endpoint"
    r"|PCI-Express to PCI/PCI-X Bridge|PCI/PCI-X to PCI-Express Bridge|Root Complex Integrated Endpoint)"
)
_PORT_TYPES = {"Root Port": "root-port", "Upstream Port": "upstream", "Downstream Port": "downstream"}
_CAPABILITY = regex(r"Capabilities: \[([0-9a-f]{2,3})(?: v[0-9]{1,2})?\] ?(.*)")
_BUSES = regex(r"Bus: primary=([0-9a-f]{2}), secondary=([0-9a-f]{2})")

_NO_FIRMWARE = regex(r"\b(?:Secure |Flash )Recovery\b", re.IGNORECASE)
"""In pci.ids, an adapter of Mellanox that runs the loader of its flash and no firmware: livefish."""

_NAMES = "|".join(map(re.escape, _KNOWN["classes"]))
_RECOGNISED = (
    regex(rf"^(?:> )?\s{{0,16}}{_PLACE} (?:{_NAMES})(?: \[[0-9a-f]{{4}}\])?: ", re.MULTILINE),
    regex(rf"^{_PLACE} [A-Z][A-Za-z /-]{{2,60}}(?: \[[0-9a-f]{{4}}\])?: \S.*\(rev [0-9a-f]{{2}}\)", re.MULTILINE),
    regex(rf"^{_PLACE} (?:Class )?[0-9a-f]{{4}}: [0-9a-f]{{4}}:[0-9a-f]{{4}}(?:\s|$)", re.MULTILINE),
    regex(r"^[>\s]{0,40}(?:LnkCap:\s{1,8}Port #|LnkSta:\s{1,8}Speed |ACSCtl:\s{1,8}SrcValid)", re.MULTILINE),
)  # fmt: skip


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
        return any(pattern.search(head) for pattern in _RECOGNISED)

    def parse(self, blob: Blob) -> Parsed[Reading]:
        parsed: Parsed[Reading] = Parsed()
        function = _Function("", 1, "")
        bridges: dict[str, str] = {}
        lines = list(blob.lines())
        for number, full in lines:
            text = full[:MAX_LINE]
            described = _HEADER.fullmatch(text)
            header = described or _BARE.fullmatch(text)
            if header is not None and (bus_id := normalise_bus_id(header[1])) is not None:
                _finish(function, parsed)
                function = _Function(bus_id, number, text)
                if described is not None:
                    _read_header(function, number, text, described[2])
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
        for short in _short(parsed.records):
            trust = Trust.PROGRAM if short.name == "narrower" else Trust.PERSON
            draft.reports.append(report("pcie.degraded", str(short.value), blob, short.line, short.text, trust=trust))
        for detail in parsed.records:
            if detail.subject:
                detail.offer_to(draft.pci(detail.subject), blob)
            elif detail.name == "acs" and isinstance(detail.value, int):
                draft.acs_lines.append(Fact(detail.value, blob.origin(detail.line, detail.text)))
            if detail.name == "description" and _NO_FIRMWARE.search(str(detail.value)) is not None:
                draft.reports.append(report("nic.firmware", detail.text[:200], blob, detail.line, detail.text))


def _read_header(function: _Function, line: int, text: str, rest: str) -> None:
    """`3D controller [0302]: NVIDIA Corporation GH100 [10de:2330] (rev a1)`, numbers only with `-nn` or `-n`."""
    if _ALL_ONES.search(rest):
        function.take("lost", ALL_ONES, line, text)
    interface = _PROG_IF.search(rest)
    low = int(interface[1], 16) if interface else 0
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
    product = _TAIL.sub("", named[3]).strip()
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
    elif name == "Bus" and function.bus_id and (buses := _BUSES.search(text)):
        domain = function.bus_id.partition(":")[0]
        if buses[2] != "00":
            bridges.setdefault(f"{domain}:{buses[2]}", function.bus_id)
    return None


_OF_LINK = ("width", "max_width", "gen", "max_gen")
RESTING = 1
"""The generation at which drivers rest a link."""
_NARROWED = regex(r"Width x[0-9]{1,2} \(downgraded\)")
"""lspci's own comparison of LnkSta with LnkCap (pciutils ls-caps.c), which `grep LnkSta` leaves alone."""


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
    if not prefix and known and _NARROWED.search(rest):
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
    if express := _EXPRESS.match(capability[2]):
        function.express = True
        bridge = "pci-bridge" if "Bridge" in express[1] else "endpoint"
        function.take("port_type", _PORT_TYPES.get(express[1], bridge), line, text)


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


def _short(records: list[Reading]) -> list[Reading]:
    """Of a text that names no function's kind, the links that are short. Of one function alone: fewer lanes and a lower
    generation than it can do; fewer lanes alone may be the slot's, a lower generation alone may be rest, and the first
    generation always may. Of several that can do the same: those with fewer lanes than others of them."""
    if any(record.name == "class_code" for record in records):
        return []
    links: dict[str, dict[str, Reading]] = {}
    for record in records:
        if record.name in _OF_LINK:
            links.setdefault(record.subject, {}).setdefault(record.name, record)
    whole = {
        bus_id: readings for bus_id, readings in links.items()
        if len(readings) == len(_OF_LINK) and all(isinstance(reading.value, int) for reading in readings.values())
    }  # fmt: skip
    if len(links) > 1:
        return [
            _said_short(whole[bus_id], "narrower")
            for bus_id in whole
            if bus_id and _narrower(whole[bus_id], whole.values())
        ]
    if sum(record.name in _OF_LINK for record in records) > len(_OF_LINK):
        return []
    return [_said_short(readings, "short") for readings in whole.values() if _short_of(readings)]


def _values(readings: dict[str, Reading]) -> tuple[int, int, int, int]:
    width, able, gen, best = (int(str(readings[name].value)) for name in _OF_LINK)
    return width, able, gen, best


def _short_of(readings: dict[str, Reading]) -> bool:
    width, able, gen, best = _values(readings)
    return 0 < width < able and RESTING < gen < best


def _narrower(readings: dict[str, Reading], details: Iterable[dict[str, Reading]]) -> bool:
    """Whether another function that can do the same has all its lanes, and this one has not."""
    width, able, _, best = _values(readings)
    alike = [row for row in map(_values, details) if (row[1], row[3]) == (able, best)]
    return 0 < width < able and any(row[0] == able for row in alike)


def _said_short(readings: dict[str, Reading], name: str) -> Reading:
    width, able, gen, best = _values(readings)
    place = readings["width"].subject or "a device without its name"
    slower = f" and generation {gen} of {best}" if gen < best else ""
    at = readings["width"]
    return Reading(at.subject, name, f"x{width} of x{able}{slower} on {place}", at.line, at.text)


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
