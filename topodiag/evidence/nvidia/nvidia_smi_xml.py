"""`nvidia-smi -q -x`: one XML report of the driver and every GPU, of any version of its DTD.

Read tag by tag, so that a report that ends in the middle, or one broken element, keeps all else. The prolog is left
out, and its entities stay plain text. What the elements mean holds for the report as text and for queries as well, in
every spelling of the DTDs (v8 to v13): they are leaf elements by their path, with the line they stand on.
"""

from __future__ import annotations

from dataclasses import field
from functools import partial

from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import MAX_GPUS, Blob, behind, reading, to_int
from topodiag.evidence.nvidia import nvidia_words as nvidia
from topodiag.evidence.page import OfPage, Page
from topodiag.evidence.xml_tags import XmlTag, tags
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import normalise_bus_id, unplaced
from topodiag.model.errors import InputError
from topodiag.words.own_data import own_data

MAX_TAGS = 4_000_000
"""A GPU with many processes has some thousands."""
MAX_FIELDS = 20_000
"""Of one GPU."""
MAX_DEPTH = 24
MAX_VALUE = 400
_ROOT, _GPU = "nvidia_smi_log", "gpu"


class NvidiaSmiXml(OfPage):
    """The full query. Offers GPUs with their PCIe link, state, fabric and memory errors, and the driver's version."""

    def read_page(self, page: Page) -> None:
        blob, leave = page.blob, partial(page.parsed.leave, page.blob)
        text, lost = blob.text, nvidia.fill_lost(blob, page.draft)
        start = text.find(f"<{_ROOT}")
        if start < 0:
            if not lost:
                leave(1, text[:200], "no report of nvidia-smi -q -x")
            return
        reader = _Reader(text.count("\n", 0, start))
        try:
            for tag in tags(text[start:], blob.name, MAX_TAGS):
                reader.take(tag)
        except InputError as error:
            leave(error.line, "", error.message)
        report = reader.report
        report.whole = reader.is_open is None
        if not report.whole:
            leave(None, "", f"the report ends before its last element, inside {reader.is_open}")
        if reader.broken is not None:
            leave(reader.broken, "", "broken XML: its elements do not nest; what can be read is kept")
        if len(report.gpus) == MAX_GPUS:
            leave(None, "", f"{MAX_GPUS} GPUs or more: the others are left out")
        fill_report(page, report, ordered=not lost)
        page.parsed.records = [0] * (1 + len(report.gpus))


class _Reader:
    """Elements without children, of the driver and of each GPU, as far as the report is read."""

    def __init__(self, above: int) -> None:
        self.above = above
        """Lines above the report."""
        self.report = SmiReport()
        self.is_open: str | None = _ROOT
        """The element that has not ended; None after the last."""
        self.broken: int | None = None
        """The first line with the end of an element that is not open."""
        self._gpu: SmiGpu | None = None
        self._path: list[str] = []
        self._leaf = False

    def take(self, tag: XmlTag) -> None:
        if tag.name in (_ROOT, _GPU):
            self._path, self._leaf, self._gpu = [], False, None
            self.is_open = _ROOT if tag.closes == (tag.name == _GPU) else None if tag.closes else _GPU
            if tag.name == _GPU and not tag.closes:
                number = len(self.report.gpus)
                self._gpu = self.report.gpu(number, (tag.get("id") or "")[:40]) or SmiGpu(number)
        elif not tag.closes:
            self._path.append(tag.name)
            self._leaf = True
            if tag.self_closing or len(self._path) > MAX_DEPTH:
                self._close(tag)
        elif tag.name in self._path:
            self._close(tag)
        else:
            self.broken = self.broken or self.above + tag.line

    def _close(self, tag: XmlTag) -> None:
        """End an element and what is open inside of it; keep its text where it has no children."""
        if self._path[-1] != tag.name:
            self.broken = self.broken or self.above + tag.line
        elif self._leaf:
            self.report.add(
                self._gpu, XmlField("/".join(self._path), tag.before.strip()[:MAX_VALUE], self.above + tag.line)
            )
        self._leaf = False
        while self._path.pop() != tag.name:
            pass


@dataclass(frozen=True, slots=True)
class XmlField:
    """One element without children: its path below the GPU (`pci/pci_gpu_link_info/pcie_gen/max_link_gen`) and text."""

    path: str
    text: str
    line: int
    written: str = ""
    """The line itself, where the report is not XML."""

    @property
    def quote(self) -> str:
        if self.written:
            return self.written
        tag = self.path.rpartition("/")[2]
        return f"<{tag}>{self.text}</{tag}>"


@dataclass(slots=True)
class SmiGpu:
    """One GPU by its place in the order of the GPUs and the bus id in its head, "" without; the first word on each
    element counts."""

    order: int
    bus_id: str = ""
    fields: dict[str, XmlField] = field(default_factory=dict)


@dataclass(slots=True)
class SmiReport:
    """What stands before the GPUs, and these, by number or bus id. `whole` is False for a report that ends before its
    last element."""

    driver: list[XmlField] = field(default_factory=list)
    gpus: dict[int | str, SmiGpu] = field(default_factory=dict)
    whole: bool = True

    def gpu(self, key: int | str, bus_id: str = "") -> SmiGpu | None:
        """The GPU of a number, which is its place, or of a bus id; None for one too many."""
        if key not in self.gpus and len(self.gpus) < MAX_GPUS:
            self.gpus[key] = SmiGpu(key if isinstance(key, int) else len(self.gpus), bus_id)
        return self.gpus.get(key)

    def add(self, gpu: SmiGpu | None, xml_field: XmlField) -> None:
        """An element of a GPU, or of the driver."""
        if gpu is not None and len(gpu.fields) < MAX_FIELDS:
            gpu.fields.setdefault(xml_field.path, xml_field)
        elif gpu is None and len(self.driver) < MAX_FIELDS:
            self.driver.append(xml_field)

    @property
    def counted(self) -> int | None:
        """How many GPUs there are, as the report says it."""
        return next((to_int(head.text, low=0) for head in self.driver if head.path == "attached_gpus"), None)


MAX_MIB = 1 << 30
MAX_COUNT = 2**63 - 1

_LOST = ("is lost", "requires reset")
_REASON = regex(r"clocks_(?:event|throttle)_reasons/clocks_(?:event|throttle)_reason_([a-z_]{1,60})$")
_NAMES = own_data("evidence/nvidia/names")


def fill_report(page: Page, report: SmiReport, *, ordered: bool) -> None:
    """Offer a whole report to the draft. `ordered` is False where the order of the GPUs may not be nvidia-smi's."""
    blob, draft, gpus = page.blob, page.draft, report.gpus.values()
    for head in report.driver:
        name = _NAMES["versions"].get(head.path)
        if name is not None:
            # R610 appends why the line will go away in brackets.
            origin = blob.origin(head.line, head.quote)
            draft.single("os").offer(name, reading(head.text.partition(" [")[0]), origin)
    numbered = ordered and _is_numbered(blob, report)
    uuids = nvidia.distinct_uuids((gpu.order, gpu.fields["uuid"].text) for gpu in gpus if "uuid" in gpu.fields)
    bus_ids = nvidia.distinct((gpu.order, normalise_bus_id(gpu.bus_id) or "") for gpu in gpus)
    for gpu in gpus:
        bus_id, uuid = bus_ids.get(gpu.order), uuids.get(gpu.order)
        if not numbered and bus_id is None and uuid is None:
            continue
        own = _Gpu(blob, gpu, draft.gpu(index=gpu.order if numbered else None, bus_id=bus_id, uuid=uuid))
        own.state(uuid)
        own.guest(draft)
        own.fabric()
        own.memory_errors()
        if any(path.startswith("pci/") for path in gpu.fields) and (bus_id is not None or numbered):
            own.pcie(draft.pci(bus_id or unplaced(gpu.order)))


def _is_numbered(blob: Blob, report: SmiReport) -> bool:
    """Whether the order of the elements is nvidia-smi's numbering: not when `-i` picked some of the GPUs."""
    if blob.item is not None and behind(blob.item.command, "-i", "--id"):
        return False
    return not report.whole or (report.counted or 0) <= len(report.gpus)


def _of_fabric(name: str, text: str) -> object:
    """The value of a field of the fabric by nvidia-smi's words."""
    words = _NAMES["fabric-words"].get(name)
    if words is not None:
        return words.get(text.lower())
    if name == "clique_id":
        return to_int(text, low=0, high=2**32 - 1)
    return "success" if text.strip().lower() == "success" else reading(text)


class _Gpu:
    """One GPU's fields by path, and the entity that they are offered to."""

    def __init__(self, blob: Blob, gpu: SmiGpu, entity: Entity) -> None:
        self.blob, self.entity, self.fields = blob, entity, gpu.fields

    def _offer(self, entity: Entity, name: str, field: XmlField, value: object) -> None:
        origin = self.blob.origin(field.line, field.quote)
        why = "nvidia-smi gives no reading" if reading(field.text) is None else f"not understood: {field.text[:40]}"
        entity.offer(name, value, origin, why)

    def _offer_all(self, entity: Entity, table: str) -> None:
        """Offer the fields that one element says by itself."""
        met = set[str]()
        for path, name in _NAMES[table].items():
            field = self.fields.get(path)
            if field is not None and name not in met:
                met.add(name)
                self._offer(entity, name, field, nvidia.field_value(name, field.text))

    def state(self, uuid: str | None) -> None:
        self._offer_all(self.entity, "report-gpu")
        if (field := self.fields.get("uuid")) is not None and uuid is not None:
            self._offer(self.entity, "uuid", field, uuid)
        self._memory_share()
        self._throttle()
        self._recovery()
        texts = ((field, field.text.lower()) for field in self.fields.values())
        lost = ((field, words) for field, text in texts for words in _LOST if f"gpu {words}" in text)
        if (first := next(lost, None)) is not None:
            self._offer(self.entity, "lost", first[0], f"GPU {first[1]}")

    def _memory_share(self) -> None:
        used, total = (self.fields.get(f"fb_memory_usage/{name}") for name in ("used", "total"))
        screen = self.fields.get("display_active")
        if used is None or total is None or (screen is not None and screen.text.strip().lower() in ("enabled", "yes")):
            return
        has, of = to_int(used.text, low=0, high=MAX_MIB), to_int(total.text, low=1, high=MAX_MIB)
        if has is not None and of is not None:
            self._offer(self.entity, "memory_used_share", used, min(1.0, has / of))

    def guest(self, draft: NodeDraft) -> None:
        """A GPU that is passed through says that this is a guest. `None` proves no bare metal: it is not offered."""
        field = self.fields.get("gpu_virtualization_mode/virtualization_mode")
        word = _NAMES["guests"].get(field.text.strip().lower()) if field is not None else None
        if field is not None and word is not None:
            draft.single("os").offer("virtualization", word, self.blob.origin(field.line, field.quote))

    def _throttle(self) -> None:
        seen = {match[1]: field for path, field in self.fields.items() if (match := _REASON.match(path))}
        fields = {name: field for name, field in seen.items() if field.text in ("Active", "Not Active")}
        active = [name for name, field in fields.items() if field.text == "Active"]
        if fields:
            field = fields[active[0]] if active else next(iter(fields.values()))
            spelt = _NAMES["reason-spellings"]
            self._offer(self.entity, "throttle", field, tuple(spelt.get(name, name) for name in active))
        elif seen:
            self._offer(self.entity, "throttle", next(iter(seen.values())), None)

    def _recovery(self) -> None:
        if (field := self.fields.get("gpu_recovery_action")) is not None:
            action = field.text.strip().lower().replace(" ", "_").removeprefix("gpu_")
            # `None` is this field's word for health, not the absence of a reading.
            self._offer(self.entity, "recovery_action", field, None if action in ("n/a", "") else action)
            return
        answers = [(self.fields[path], action) for path, action in _NAMES["resets"].items() if path in self.fields]
        wanted = [(field, action) for field, action in answers if field.text == "Yes"]
        if not wanted and all(field.text == "No" for field, _ in answers):
            wanted = [(field, "none") for field, _ in answers]
        for field, action in wanted[:1]:
            self._offer(self.entity, "recovery_action", field, action)

    def fabric(self) -> None:
        """The fabric block, whose tags differ in case and underscores between drivers."""
        block = {
            path.lower().replace("_", ""): field for path, field in self.fields.items() if path.startswith("fabric/")
        }
        if not block:
            return
        child = self.entity.child("fabric", 0)
        for path, name in _NAMES["report-fabric"].items():
            if (field := block.get(path)) is not None:
                self._offer(child, name, field, _of_fabric(name, field.text))
        self._fabric_problems(child, block)

    def _fabric_problems(self, child: Entity, block: dict[str, XmlField]) -> None:
        answers: list[tuple[XmlField, str]] = []
        for tag, name in _NAMES["fabric-problems"].items():
            for path, stated in block.items():
                value = stated.text.strip()
                if path.startswith(f"fabric/health/{tag}") and value.upper() not in ("N/A", "NOT SUPPORTED", ""):
                    wrong = value.lower() == "true" if name else value.lower() not in ("none", "false")
                    answers.append((stated, (name or value[:60]) if wrong else ""))
        problems = [(stated, text) for stated, text in answers if text]
        for stated, _ in (problems or answers)[:1]:
            self._offer(child, "problems", stated, ", ".join(text for _, text in problems))

    def memory_errors(self) -> None:
        for span in ("volatile", "aggregate"):
            for name, parts in _NAMES["error-parts"].items():
                self._sum(f"ecc_{span}_{name}", [f"ecc_errors/{span}/{part}" for part in parts])
        for path, name in _NAMES["memory-states"].items():
            if (field := self.fields.get(path)) is not None:
                value = {"yes": 1, "no": 0}.get(field.text.lower(), to_int(field.text, low=0, high=MAX_COUNT))
                self.entity.count(name, value, self.blob.origin(field.line, field.quote))

    def _sum(self, name: str, paths: list[str]) -> None:
        """A counter that nvidia-smi splits; without a reading of every part that is there, there is no sum."""
        parts = [self.fields[path] for path in paths if path in self.fields]
        values = [to_int(field.text, low=0, high=MAX_COUNT) for field in parts]
        known = [value for value in values if value is not None]
        if known and len(known) == len(values):
            largest = max(zip(known, range(len(known)), strict=True))[1]
            field = parts[largest]
            self.entity.count(name, sum(known), self.blob.origin(field.line, field.quote))

    def pcie(self, pci: Entity) -> None:
        self._offer_all(pci, "report-pci")
        if (field := self.fields.get("pci/replay_counter")) is not None:
            value = to_int(field.text, low=0, high=MAX_COUNT)
            pci.count("replay", value, self.blob.origin(field.line, field.quote))
