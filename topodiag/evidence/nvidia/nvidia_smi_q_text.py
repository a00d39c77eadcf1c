r"""`nvidia-smi -q` in its text form, the one that people paste: whole, or the sections that `-d` picked.

    Attached GPUs                             : 8
    GPU 00000000:1B:00.0
        PCI
            GPU Link Info
                PCIe Generation
                    Current                   : 5

Sections are told by their indentation. Labels become the elements' paths of `nvidia-smi -q -x`, and the same code
judges what they mean. Several reports of one machine in one text complete each other: the first word on a field counts.
Format: nvidia-smi(1), and the output of drivers R450 to R610.
"""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.evidence.interface import MAX_GPUS
from topodiag.evidence.nvidia.nvidia_smi_xml import SmiGpu, SmiReport, XmlField, fill_report
from topodiag.evidence.nvidia.nvidia_words import EVENT_REASONS, as_tag, fill_lost
from topodiag.evidence.page import OfPage, Page
from topodiag.model.busid import normalise_bus_id
from topodiag.model.provenance import Topic
from topodiag.words.own_data import own_data

MAX_DEPTH = 12
MAX_VALUE = 400

_MARGIN = ">|#\t "
_SECTIONS = frozenset({"fabric", "clocks_event_reasons", "clocks_throttle_reasons", "remapped_rows", "ecc_errors",
                       "gpu_link_info"})  # fmt: skip
"""Sections that stand once in each GPU: without heads of GPUs the next one of a name is the next GPU's."""

_DRIVER = frozenset({"driver_version", "kmd_version", "cuda_version", "cuda_umd_version", "attached_gpus"})

_PATHS: Mapping[str, str] = own_data("evidence/nvidia/names")["q-text"]
"""Labels of the text, from the GPU down, to elements of the XML."""

_OWNERS = {
    path.rpartition("/")[2]: tuple(path.split("/")[:-1])
    for path in _PATHS
    if path.partition("/")[0] in _SECTIONS and path.rpartition("/")[2].count("_") > 1
}
"""Labels of three words and more, which stand in one section alone: they are known where its head was cut off."""
_REASONS = {*EVENT_REASONS.values(), "idle", "display_clock_setting"}


class NvidiaSmiQText(OfPage):
    """The full query as text. Offers what the XML form offers."""

    def read_page(self, page: Page) -> None:
        reader = _Reader()
        for line in page.cut_lines():
            if line.text.strip() and not reader.take(line.number, line.text.expandtabs(8)):
                line.leave(f"more than {MAX_GPUS} GPUs: the others are left out")
        report = reader.report
        page.parsed.records = [0] * (bool(report.driver or report.gpus) + len(report.gpus))
        if report.counted is None:
            page.parsed.topics = frozenset({Topic.DRIVER})  # a part of a report shows some of the GPUs
        # A fragment that does not say how many GPUs there are may begin with any of them.
        lost = fill_lost(page.blob, page.draft)
        headless = not any(gpu.bus_id for gpu in report.gpus.values())
        fill_report(page, report, ordered=(report.counted is not None or headless) and not lost)


class _Reader:
    """The report as read so far, and the sections that are open."""

    def __init__(self) -> None:
        self.report = SmiReport()
        self._gpu: SmiGpu | None = None
        self._open: list[tuple[int, str]] = []
        self._nameless: list[set[str]] = []
        """The sections so far of each GPU whose head is not in the text."""

    def take(self, number: int, line: str) -> bool:
        """Read one line; False where a GPU must be left out."""
        text = line.lstrip(_MARGIN).rstrip()
        indent = len(line.rstrip()) - len(text)
        key, colon, value = text.partition(":")
        if text.startswith("GPU ") and normalise_bus_id(text[4:]) is not None:
            self._nameless = []
            return self._begin(text[4:])
        while self._open and self._open[-1][0] >= indent:
            self._open.pop()
        label = as_tag(key)[:80]
        if colon and label in _OWNERS and self._is_without_head(label):
            self._nameless.append({_OWNERS[label][0]})
            self._begin("")
            self._open = [(indent - 1, name) for name in _OWNERS[label]]
        if colon:
            self._field(label, value.strip()[:MAX_VALUE], number, text)
        elif self._nameless and label in _SECTIONS and label not in self._nameless[-1]:
            self._nameless[-1].add(label)
        elif label in _SECTIONS and (self._gpu is None or self._nameless):
            self._nameless.append({label})
            self._begin("")
        # `HW Slowdown : Active` holds the two reasons below it, so a field may be a section too.
        if len(self._open) < MAX_DEPTH:
            self._open.append((indent, label))
        return True

    def _is_without_head(self, label: str) -> bool:
        """Whether a line that names its section is of a GPU of which nothing stands before it."""
        path = _path(list(_OWNERS[label]), label)
        known = self._gpu is not None and path not in self._gpu.fields
        return not known and (self._gpu is None or bool(self._nameless))

    def _begin(self, written: str) -> bool:
        bus_id = normalise_bus_id(written) or written.lower() or f"#{len(self._nameless)}"
        self._open = []
        self._gpu = self.report.gpu(bus_id, written)
        return self._gpu is not None

    def _field(self, label: str, value: str, number: int, quote: str) -> None:
        if self._gpu is not None:
            path = _path([name for _, name in self._open], label)
        else:
            path = label if label in _DRIVER else None
        if path is not None:
            self.report.add(self._gpu, XmlField(path, value, number, quote))


def _path(sections: list[str], label: str) -> str | None:
    """The element that a label stands for, or None for one that nothing here needs."""
    if sections[:1] in (["clocks_event_reasons"], ["clocks_throttle_reasons"]):
        reason = "gpu_idle" if label == "idle" else label
        return f"{sections[0]}/{sections[0][:-1]}_{reason}" if label in _REASONS else None
    if sections[:1] == ["fabric"]:
        return "/".join((*sections, label))
    # `-d PCIE`, and who cuts a report, leave the section of the link without that of the PCI device around it.
    around = ("pci",) if sections[:1] == ["gpu_link_info"] else ()
    return _PATHS.get("/".join((*around, *sections, label)))
