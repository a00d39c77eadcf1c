"""The machine as a drawing: NUMA nodes, switches, GPUs, NICs and NVSwitches, each with the link it sits on.

`Gen1/5` reads "runs at generation 1, can do 5", `x8/16` the same of lanes. Red is what a check found; a slow idle
link is dim, because the drawing judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import groupby

from rich.text import Text

from topodiag.lazy import dataclass
from topodiag.model.busid import slot_of
from topodiag.model.devices import Gpu, Nic, NicRole, PciDevice, PciKind
from topodiag.model.events import Event
from topodiag.model.finding import Marks, Severity
from topodiag.model.maker import XGMI, dialect_of
from topodiag.model.node import Node, Sight, gpu_sight
from topodiag.model.shape import Branch, Group, Leaf, has_tree, shape_of
from topodiag.report.text import Page, Part
from topodiag.report.words import SIGNS
from topodiag.words.units import in_gbps, in_gbs, short_bus, spell_gbs

FOLD_FROM = 3
"""So many like NVSwitches or NICs without findings under one bridge stand on one line."""
MAX_XIDS = 4
MAX_IDS = 4
"""Checks that a mark names."""
MAX_NAME = 40
"""Characters of a device's name in the drawing; real ones have fewer than 20."""
MANY_GPUS = 16
"""Above so many GPUs, like ones fold too."""


@dataclass(slots=True)
class _Row:
    guide: str
    below: str
    """What continues the drawing under this row when its last column wraps."""
    name: Text
    bus: Text
    link: Text
    detail: Text


@dataclass(slots=True)
class _Drawing:
    page: Page
    node: Node
    marks: Marks
    rows: list[_Row | Text] = field(default_factory=list)
    slashes: bool = False
    driver_spoke: bool = True

    def link(self, device: PciDevice | None, *names: str | None) -> Text:
        """`Gen5 x16`, with what it can do beside what it does, red where a PCI check named it."""
        if device is None:
            return Text()
        if device.gen.value is None and device.width.value is None:
            return self.page.text(("link ?" if device.gen.origin or device.width.origin else "", "dim"))
        words: list[Part] = []
        checks = {finding.id for finding in self.marks.about("PCI00", device.bus_id, *names)}
        for word, check, now, slot, most in (
            ("Gen", "PCI002", device.gen.value, device.slot_max_gen.value, device.max_gen.value),
            ("x", "PCI001", device.width.value, device.slot_max_width.value, device.max_width.value),
        ):
            if now is None:
                continue
            best = slot if slot is not None else most
            low = best is not None and now < best
            hue = "sick" if check in checks else "dim" if low else ""
            words.append((f"{word}{now}/{best}" if low else f"{word}{now}", hue))
            self.slashes |= low
        return self.page.join(words, " ")

    def row(self, guide: str, below: str, name: Part, bus: str | None, link: Text, *detail: Part) -> None:
        shown = [part for part in detail if isinstance(part, tuple) or (part.plain if isinstance(part, Text) else part)]
        bus_text, words = self.page.text((short_bus(bus), "dim")), self.page.join(shown, "  ")
        self.rows.append(_Row(guide, below, self.page.text(name), bus_text, link, words))


def draw_tree(page: Page, node: Node, marks: Marks) -> None:
    """The drawing; nothing when neither devices nor NUMA nodes are known."""
    drawing = _Drawing(page, node, marks, driver_spoke=gpu_sight(node).sight is Sight.SEEN)
    groups = shape_of(node, lambda bus_id: bool(marks.on(bus_id)))
    if not groups:
        return
    for group in groups:
        drawing.rows.append(_numa_line(page, node, group))
        _draw_children(drawing, group.children, "")
    page.blank()
    _print(drawing)
    if drawing.slashes:
        page.add("", ("a/b: runs at a, built for b; idle links lower their generation to save power", "dim"))
    if any(group.children for group in groups) and not has_tree(node):
        page.add("", ("no PCI tree in the evidence: devices stand under their NUMA node or CPUs", "dim"))


def _numa_line(page: Page, node: Node, group: Group) -> Text:
    if group.numa is None and group.cpus:
        return page.cut(page.text((f"cpus {group.cpus}", "name")), page.width)
    if group.numa is None:
        several = len(node.numa) > 1
        return page.text(("NUMA unknown", "name"), ("  the platform gives no affinity" if several else "", "dim"))
    numa = next((numa for numa in node.numa if numa.id == group.numa), None)
    words: list[Part] = [(f"NUMA {group.numa}", "name")]
    cpus = numa.cpus.value if numa else None
    if cpus is None:
        cpus = next((gpu.cpu_affinity.value for gpu in node.gpus if gpu.numa.value == group.numa), None)
    if numa and numa.socket.value is not None:
        words.append((f"socket {numa.socket.value}", "dim"))
    if cpus:
        words.append((f"cpus {cpus}", "dim"))
    return page.cut(page.join(words, "  "), page.width)


def _draw_children(drawing: _Drawing, children: Iterable[Branch | Leaf], indent: str) -> None:
    folded = list(_fold(drawing, children))
    for number_, (child, likes) in enumerate(folded):
        last = number_ == len(folded) - 1
        guide, below = indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  ")
        if isinstance(child, Branch):
            _draw_branch(drawing, child, guide, below)
        else:
            _draw_leaf(drawing, child, likes, guide, below)


def _draw_branch(drawing: _Drawing, branch: Branch, guide: str, below: str) -> None:
    bridge = branch.bridges[-1]
    uplink = next((b for b in reversed(branch.bridges) if b.port_type.value == "upstream"), bridge)
    name = _bridge_name(branch, top=not below.strip("│ ") and len(below) <= 3)
    buses = [b.bus_id for b in branch.bridges]
    wide = drawing.page.width >= 120
    what = uplink.description.get("") if wide else ""
    link, signed = drawing.link(uplink, *buses), _sign(drawing.page, drawing.marks, *buses)
    drawing.row(guide, below + "│  ", name, uplink.bus_id, link, (what, "dim"), signed)
    _draw_children(drawing, branch.children, below)


def _bridge_name(branch: Branch, *, top: bool) -> str:
    """By port type where config space was readable; else by shape: ports below a port below a root make a switch."""
    kinds = [bridge.port_type.value for bridge in branch.bridges]
    if "upstream" in kinds:
        return "switch"
    if "root-port" in kinds:
        return "root port"
    fans = any(isinstance(child, Branch) or child.bridges for child in branch.children)
    if fans and (len(branch.bridges) > 1 or not top):
        return "switch"
    return "root port" if top and len(branch.bridges) == 1 else "bridge"


def _draw_leaf(drawing: _Drawing, leaf: Leaf, likes: list[Leaf], guide: str, below: str) -> None:
    page, device = drawing.page, leaf.device
    names = [*_names(leaf), *(bridge.bus_id for bridge in leaf.bridges)]
    link = drawing.link(leaf.pci, *names)
    name = page.clean(_names(leaf)[0] or "?", MAX_NAME)
    if likes:
        last = likes[-1]
        name = f"{len(likes) + 1}× NVSwitch" if isinstance(device, PciDevice) else f"{name} … {_names(last)[0]}"
    to = f"to {short_bus(likes[-1].device.bus_id)}" if likes else ""
    words = _device_words(drawing, device) or [(to, "dim")]
    is_compute = isinstance(device, Gpu) or (isinstance(device, Nic) and device.role is NicRole.COMPUTE)
    signed = _sign(page, drawing.marks, *names)
    drawing.row(guide, below, (name, "name" if is_compute else ""), device.bus_id, link, *words, signed)


def _device_words(drawing: _Drawing, device: Gpu | Nic | PciDevice) -> list[Part]:
    """What is said of a GPU or a NIC; nothing of other devices."""
    if isinstance(device, Gpu):
        return list(_gpu_words(drawing, device))
    return list(_nic_words(drawing, device)) if isinstance(device, Nic) else []


def _sign(page: Page, marks: Marks, *names: str | None) -> Text:
    """`✖NVL001,PCI001`, each id in the hue of its severity; empty where nothing was found. No blank to wrap at."""
    ids: dict[str, Severity] = {}
    for finding in marks.on(*names):
        ids.setdefault(finding.id, finding.severity)
    if not ids:
        return Text()
    worst = max(ids.values())
    shown = [(check, str(severity)) for check, severity in list(ids.items())[:MAX_IDS]]
    rest = f" +{len(ids) - MAX_IDS}" if len(ids) > MAX_IDS else ""
    return page.text((SIGNS[worst], str(worst)), page.join(shown, ","), (rest, "dim"))


def _names(leaf: Leaf) -> list[str | None]:
    device = leaf.device
    if isinstance(device, Gpu):
        return [device.label, device.bus_id]
    if isinstance(device, Nic):
        return [device.name, device.rdma_name, device.smi_label, device.bus_id]
    return ["NVSwitch" if device.kind is PciKind.NVSWITCH else device.bus_id, device.bus_id]


def _gpu_words(drawing: _Drawing, gpu: Gpu) -> Iterator[Part]:
    page = drawing.page
    if gpu.lost.value:
        yield (gpu.lost.value, "sick")
    if len({other.name.value for other in drawing.node.gpus}) > 1 and gpu.name.value:
        yield gpu.name.value
    yield nvlink_words(page, drawing.node, gpu, drawing.marks)
    if not drawing.driver_spoke:
        yield ("driver silent", "doubtful")
    xids = sorted({event.code for event in drawing.node.events if _is_xid_of(event, gpu) and event.code is not None})
    if xids:
        yield (f"Xid {', '.join(map(str, xids[:MAX_XIDS]))}", "doubtful")
    if gpu.c2c_gbs.value:
        yield f"C2C {in_gbs(gpu.c2c_gbs.value)}"
    if gpu.mig.value:
        yield ("MIG", "doubtful")


def _is_xid_of(event: Event, gpu: Gpu) -> bool:
    """The driver names the slot in an Xid, not the function."""
    if event.kind != "xid" or not event.bus_id or not gpu.bus_id:
        return False
    return slot_of(event.bus_id) == slot_of(gpu.bus_id)


def _nic_words(drawing: _Drawing, nic: Nic) -> Iterator[Part]:
    page = drawing.page
    sick = bool(drawing.marks.about("NIC", nic.name, nic.rdma_name, nic.smi_label))
    for port in nic.ports:
        words: list[Part] = [f"port {port.number}"] if len(nic.ports) > 1 else []
        up = port.state.value is None or port.state.value.upper() in {"ACTIVE", "UP"}
        slow = sick and bool(drawing.marks.about("NIC002", nic.name, nic.rdma_name, nic.smi_label))
        if port.rate_gbps.value and up:
            words.append((in_gbps(port.rate_gbps.value), "sick" if slow else ""))
        if port.link_layer.value:
            words.append((port.link_layer.value, "dim"))
        if not up:
            phys = port.phys_state.value
            tail = f" ({phys})" if phys and phys.lower() not in {"disabled", "linkup"} else ""
            words.append((f"{port.state.get('?')}{tail}", "sick" if sick else "dim"))
        if words:
            yield page.join(words, " ")
    if page.width >= 120 and nic.part.value:
        yield (nic.part.value, "dim")
    if nic.role is not NicRole.UNKNOWN:
        yield (nic.role.value, "dim")


def _fold(drawing: _Drawing, children: Iterable[Branch | Leaf]) -> Iterator[tuple[Branch | Leaf, list[Leaf]]]:
    """Children with the like ones that follow each: NVSwitches, NICs beside many, GPUs above `MANY_GPUS`."""
    for look, run in groupby(children, key=lambda child: _look(drawing, child)):
        alike = list(run)
        leaves = [child for child in alike if isinstance(child, Leaf)]
        if look is not None and len(leaves) >= FOLD_FROM:
            yield leaves[0], leaves[1:]
        else:
            yield from ((child, []) for child in alike)


def _look(drawing: _Drawing, leaf: Branch | Leaf) -> tuple[str, ...] | None:
    """What makes two leaves look the same on paper; None for one that stands alone, and for what holds leaves."""
    if isinstance(leaf, Branch) or drawing.page.style.verbose:
        return None
    if drawing.marks.on(*_names(leaf), *(bridge.bus_id for bridge in leaf.bridges)):
        return None
    link = drawing.link(leaf.pci).plain
    if isinstance(leaf.device, PciDevice):
        return ("nvswitch", link)
    alike = drawing.node.gpus if isinstance(leaf.device, Gpu) else drawing.node.nics
    words = drawing.page.join(_device_words(drawing, leaf.device), " ").plain
    return (type(leaf.device).__name__, link, words) if len(alike) > MANY_GPUS else None


def _print(drawing: _Drawing) -> None:
    page = drawing.page
    rows = [row for row in drawing.rows if isinstance(row, _Row)]
    room = page.width // 2
    first = min(max((page.text(row.guide).cell_len + row.name.cell_len for row in rows), default=0), room)
    bus = min(max((row.bus.cell_len for row in rows), default=0), room // 2)
    link = min(max((row.link.cell_len for row in rows), default=0), room // 2)
    for row in drawing.rows:
        if isinstance(row, Text):
            page.add("", row)
            continue
        head = page.pad(page.text((row.guide, "dim"), row.name), first)
        for text, width in ((row.bus, bus), (row.link, link)):
            if width:
                head.append_text(page.pad(page.text("  ", text), width + 2))
        if not row.detail.plain:
            head.rstrip()
        page.add(head, "  " if row.detail.plain else "", row.detail, under=(row.below, "dim"))


def nvlink_words(page: Page, node: Node, gpu: Gpu, marks: Marks) -> Text:
    """The words, red where a check found links missing or slow."""
    active = gpu.active_links
    if active is None:
        return _from_matrix(page, node, gpu, marks)
    total = len(gpu.nvlinks)
    ids = {finding.id for finding in marks.about("NVL", gpu.label)}
    count = f"{active}" if active == total else f"{active} of {total}"
    hue = "sick" if "NVL001" in ids else "nvlink" if active else "dim"
    drawn = page.text(f"{dialect_of(node).links} ", (count, hue))
    running = [link for link in gpu.nvlinks if link.state.value != "inactive"]
    rates = sorted({link.line_gbs.value for link in running if link.line_gbs.value})
    if rates and active:
        spread = in_gbs(rates[0]) if len(rates) == 1 else f"{spell_gbs(rates[0])}–{in_gbs(rates[-1])}"
        drawn.append_text(page.text(" × ", (spread, "sick" if "NVL002" in ids else "")))
    return drawn


def _from_matrix(page: Page, node: Node, gpu: Gpu, marks: Marks) -> Text:
    """Bonded links per peer, where only the matrix speaks of NVLink."""
    peers = [
        fact.value
        for (a, b), fact in node.smi_matrix.items()
        if a == gpu.label and b.startswith("GPU") and b != a and fact.value
    ]
    linked = [word for word in peers if word.startswith("NV") or word == XGMI]
    sick = bool(marks.about("NVL", gpu.label))
    if linked:
        words = ", ".join(sorted(set(linked), key=lambda word: (len(word), word)))
        to = f"{len(linked)} of {len(peers)} peers"
        return page.text((words, "nvlink"), " to ", (to, "sick" if sick and len(linked) < len(peers) else ""))
    if gpu.nvlink_note.value:
        return page.text((f"{dialect_of(node).links}: {gpu.nvlink_note.value}", "sick" if sick else "dim"))
    return page.text((f"no {dialect_of(node).links} to its peers", "sick") if sick and peers else "")
