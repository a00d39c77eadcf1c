"""`nvidia-smi -q -x`: one XML report of the driver and every GPU, of any version of its DTD.

Read tag by tag, so that a report that ends in the middle, or one broken element, keeps all else. The prolog is left
out, and its entities stay plain text. What the values mean is in `smi_xml_facts`.
"""

from __future__ import annotations

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import MAX_GPUS, Blob, Direct, Parsed
from topodiag.evidence.nvidia.nvidia_words import fill_lost
from topodiag.evidence.nvidia.smi_xml_facts import SmiReport, XmlField, XmlGpu, fill_report
from topodiag.evidence.xml_tags import XmlTag, tags
from topodiag.model.errors import InputError

MAX_TAGS = 4_000_000
"""A GPU with many processes has some thousands."""
MAX_FIELDS = 20_000
"""Of one GPU."""
MAX_DEPTH = 24
MAX_VALUE = 400
_ROOT, _GPU = "nvidia_smi_log", "gpu"


class NvidiaSmiXml(Direct):
    """The full query. Offers GPUs with their PCIe link, state, fabric and memory errors, and the driver's version."""

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        parsed: Parsed[int] = Parsed()
        text, lost = blob.text, fill_lost(blob, draft)
        start = text.find(f"<{_ROOT}")
        if start < 0:
            if not lost:
                parsed.leave(blob, 1, text[:200], "no report of nvidia-smi -q -x")
            return parsed
        report = _Report(text.count("\n", 0, start))
        try:
            for tag in tags(text[start:], blob.name, MAX_TAGS):
                report.take(tag)
        except InputError as error:
            parsed.leave(blob, error.line, "", error.message)
        whole = report.is_open is None
        if not whole:
            parsed.leave(blob, None, "", f"the report ends before its last element, inside {report.is_open}")
        if report.broken is not None:
            parsed.leave(blob, report.broken, "", "broken XML: its elements do not nest; what can be read is kept")
        if len(report.gpus) == MAX_GPUS:
            parsed.leave(blob, None, "", f"{MAX_GPUS} GPUs or more: the others are left out")
        fill_report(blob, SmiReport(report.driver, report.gpus, whole), draft, ordered=not lost)
        parsed.records = [0] * (1 + len(report.gpus))
        return parsed


class _Report:
    """Elements without children, of the driver and of each GPU, as far as the report is read."""

    def __init__(self, above: int) -> None:
        self.above = above
        """Lines above the report."""
        self.driver: list[XmlField] = []
        self.gpus: list[XmlGpu] = []
        self.is_open: str | None = _ROOT
        """The element that has not ended; None after the last."""
        self.broken: int | None = None
        """The first line with the end of an element that is not open."""
        self._fields = self.driver
        self._path: list[str] = []
        self._leaf = False

    def take(self, tag: XmlTag) -> None:
        if tag.name in (_ROOT, _GPU):
            self._path, self._leaf = [], False
            self.is_open = _ROOT if tag.closes == (tag.name == _GPU) else None if tag.closes else _GPU
            self._fields = self.driver
            if tag.name == _GPU and not tag.closes:
                gpu = XmlGpu(len(self.gpus), (tag.get("id") or "")[:40], [])
                self._fields = gpu.fields
                if len(self.gpus) < MAX_GPUS:
                    self.gpus.append(gpu)
        elif not tag.closes:
            self._path.append(tag.name)
            self._leaf = True
            if tag.alone or len(self._path) > MAX_DEPTH:
                self._close(tag)
        elif tag.name in self._path:
            self._close(tag)
        else:
            self.broken = self.broken or self.above + tag.line

    def _close(self, tag: XmlTag) -> None:
        """End an element and what is open inside of it; keep its text where it has no children."""
        path = "/".join(self._path)
        if self._path[-1] != tag.name:
            self.broken = self.broken or self.above + tag.line
        elif self._leaf and len(self._fields) < MAX_FIELDS:
            self._fields.append(XmlField(path, tag.before.strip()[:MAX_VALUE], self.above + tag.line))
        self._leaf = False
        while self._path.pop() != tag.name:
            pass
