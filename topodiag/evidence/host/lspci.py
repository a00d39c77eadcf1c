"""`lspci -vv`, with or without domains and numbers, whole or pasted in part."""

from __future__ import annotations

from topodiag.evidence.draft import Entity
from topodiag.evidence.host.pcie import ALL_ONES, MAX_WIDTH, NEEDS_ROOT, NO_ACS, gen_of_speed
from topodiag.evidence.interface import MAX_LINE, to_int
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.lazy import dataclass
from topodiag.model.busid import normalise_bus_id
from topodiag.model.provenance import Fact
from topodiag.words.own_data import own_data, patterns

_LIKE = patterns("evidence/host/lines", "lspci")
_KNOWN = own_data("evidence/host/lspci")
_PORT_TYPES = {"Root Port": "root-port", "Upstream Port": "upstream", "Downstream Port": "downstream",
               "Bridge": "pci-bridge", "Endpoint": "endpoint"}  # fmt: skip
_NO_FIRMWARE = ("secure recovery", "flash recovery")
"""In pci.ids, an adapter of Mellanox that runs the loader of its flash and no firmware: livefish."""
_LINES = ("LnkCap: Port #", "LnkSta: Speed ", "ACSCtl: SrcValid")
"""What grep leaves of a function."""


@dataclass(slots=True)
class _Function:
    """The function whose lines are being read; without a place, what grep left of one."""

    bus_id: str
    first: Line | None
    entity: Entity | None = None
    express: bool = False
    extended: bool = False
    listed: bool = False
    acs: bool = False
    acs_named: bool = False

    def take(self, line: Line, name: str, value: int | str | bool | None, why: str = "") -> None:
        line.page.mark(line.number)
        if self.entity is not None:
            line.offer(self.entity, name, value, why)
        elif name == "acs" and isinstance(value, int):
            line.page.draft.acs_lines.append(Fact(value, line.origin))


class Lspci(OfPage):
    """Reads what each function is, its link, its place, its driver and its ACS control register."""

    def recognises(self, head: str) -> bool:
        headers = (match for line in head.split("\n") if (match := _LIKE["header"].fullmatch(line[:MAX_LINE])))
        bare = (" ".join(line.lstrip("> \t").split()) for line in head.split("\n"))
        return any(line.startswith(_LINES) for line in bare) or any(_is_described(match[2] or "") for match in headers)

    def read_page(self, page: Page) -> None:
        function = _Function("", None)
        bridges: dict[str, str] = {}
        places: dict[str, Line] = {}
        lines = list(page.cut_lines())
        for line in lines:
            header, command = _LIKE["header"].fullmatch(line.text), _LIKE["command"].match(line.text)
            if header is None and command is None:
                _read_line(function, line, bridges)
                continue
            place = header[1] if header is not None else command[1] if command is not None else None
            bus_id = normalise_bus_id(place or "")
            _finish(function)
            page.begin()
            function = _Function(bus_id or "", line, page.draft.pci(bus_id) if bus_id else None)
            if bus_id:
                places.setdefault(bus_id, line)
            if header is not None and header[2]:
                _read_header(function, line, header[2])
        _finish(function, cut=len(lines) < 3 or any(line.text.strip() for line in lines[-2:]))
        # The bridge above each function: the one whose secondary bus is the function's bus.
        for bus_id, line in places.items():
            parent = bridges.get(bus_id.rpartition(":")[0])
            if parent is not None and parent != bus_id:
                line.offer(page.draft.pci(bus_id), "parent", parent)


def _is_described(rest: str) -> bool:
    """Whether what stands behind a function's place is a description of lspci's."""
    named = _LIKE["class"].match(rest)
    return _LIKE["numeric"].match(rest) is not None or (
        named is not None and (named[1] in _KNOWN["classes"] or named[2] is not None or " (rev " in rest)
    )


def _read_header(function: _Function, line: Line, rest: str) -> None:
    """`3D controller [0302]: NVIDIA Corporation GH100 [10de:2330] (rev a1)`, numbers only with `-nn` or `-n`."""
    if "(rev ff)" in rest:
        function.take(line, "lost", ALL_ONES)
    low = to_int("0x" + rest.partition("(prog-if ")[2][:2]) or 0
    if numeric := _LIKE["numeric"].match(rest):
        function.take(line, "class_code", int(numeric[1], 16) << 8 | low)
        function.take(line, "vendor", int(numeric[2], 16))
        function.take(line, "device", int(numeric[3], 16))
        return
    named = _LIKE["class"].match(rest)
    if named is None:
        return
    code = int(named[2], 16) if named[2] else _KNOWN["classes"].get(named[1])
    if code is not None:
        function.take(line, "class_code", code << 8 | low)
    product = named[3].partition(" (rev ")[0].partition(" (prog-if ")[0].strip()
    numbers = _LIKE["ids"].findall(product)
    if numbers:
        function.take(line, "vendor", int(numbers[-1][0], 16))
        function.take(line, "device", int(numbers[-1][1], 16))
        product = _LIKE["ids"].sub("", product).strip()
    else:
        vendor = next((number for name, number in _KNOWN["vendors"].items() if product.startswith(name)), None)
        if vendor is not None:
            function.take(line, "vendor", vendor)
    if product:
        function.take(line, "description", product[:200])
    if any(word in product.lower() for word in _NO_FIRMWARE):
        line.report("nic.firmware", line.text.strip()[:200])
    if "Virtual Function" in product:
        function.take(line, "is_vf", True)


def _read_line(function: _Function, line: Line, bridges: dict[str, str]) -> None:
    """Take the values of one line of a function."""
    name, _, rest = line.text.lstrip("> \t").partition(":")
    rest = rest.strip()
    if "!!! Unknown header type 7f" in line.text:
        function.take(line, "lost", ALL_ONES)
    elif name in ("LnkCap", "LnkSta"):
        _read_link(function, line, name, rest)
    elif name == "CESta" and function.entity is not None:
        # Bits that stay until somebody clears them. An advisory error is what probing a bus at boot leaves behind.
        bits = [word for word in rest.split() if word.endswith("+") and word != "AdvNonFatalErr+"]
        line.count(function.entity, "aer_correctable_status", len(bits))
    elif name == "ACSCtl":
        _read_acs(function, line, rest)
    elif name == "Capabilities":
        _read_capability(function, line)
    elif name == "NUMA node" and (node := to_int(rest, low=-1, high=4095)) is not None:
        function.take(line, "numa", node)
    elif name == "Kernel driver in use" and rest:
        function.take(line, "driver", rest[:80])
    elif name == "Subsystem" and (numbers := _LIKE["ids"].findall(rest)):
        function.take(line, "subsystem_vendor", int(numbers[-1][0], 16))
        function.take(line, "subsystem_device", int(numbers[-1][1], 16))
    elif name == "Bus" and function.bus_id and (bus := rest.partition("secondary=")[2][:2]) not in ("", "00"):
        bridges.setdefault(f"{function.bus_id.partition(':')[0]}:{bus}", function.bus_id)


def _read_link(function: _Function, line: Line, name: str, rest: str) -> None:
    link = _LIKE["link"].search(rest)
    if link is None:
        line.leave("no speed and width in it")
        return
    prefix = "max_" if name == "LnkCap" else ""
    width = to_int(link[2], low=1, high=MAX_WIDTH)
    function.take(line, f"{prefix}gen", gen_of_speed(link[1]), f"lspci says speed {link[1]}"[:80])
    function.take(line, f"{prefix}width", width, f"lspci says width x{int(link[2])}")
    if not prefix and width and link[3]:
        function.take(line, "narrowed", True)


def _read_acs(function: _Function, line: Line, rest: str) -> None:
    """The register from its flags by name. ACSCap, which says what could be switched on, is another line."""
    bits = {word[:-1]: word[-1] for word in rest.split() if word[:-1] in _KNOWN["acs"]}
    if "ReqRedir" not in bits or "CmpltRedir" not in bits:
        line.leave("ACS flags are missing")
        return
    function.acs = True
    function.take(line, "acs", sum(_KNOWN["acs"][flag] for flag, sign in bits.items() if sign == "+"))


def _read_capability(function: _Function, line: Line) -> None:
    if "<access denied>" in line.text:
        why = f"{NEEDS_ROOT}: lspci was denied the capabilities"
        for name in ("acs", "port_type", "gen", "width", "max_gen", "max_width"):
            function.take(line, name, None, why)
        function.acs = True
        return
    offset, _, name = line.text.partition("Capabilities: [")[2].partition("]")
    address = to_int(f"0x{offset.partition(' ')[0]}")
    if address is None or not offset:
        return
    function.listed = True
    function.extended |= address >= 0x100
    function.acs_named |= "Access Control Services" in name
    kind = next((kind for words, kind in _PORT_TYPES.items() if words in name), None)
    if name.strip().startswith("Express") and kind is not None:
        function.express = True
        function.take(line, "port_type", kind)


def _finish(function: _Function, *, cut: bool = False) -> None:
    """Close a function: where its capabilities were listed without ACS, say whether it has none or none was shown. What
    was not seen where the text is cut off may have been there."""
    if function.first is None or not function.listed or function.acs:
        return
    if function.acs_named:
        why = "ACS is there, but its control register was not printed: lspci -vv prints it"
    elif cut:
        why = "the text ends before the function does"
    elif function.extended or not function.express:
        why = NO_ACS
    else:
        why = "no extended capabilities were printed"
    function.take(function.first, "acs", None, why)
