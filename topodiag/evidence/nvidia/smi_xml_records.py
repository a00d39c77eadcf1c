"""Records of `nvidia-smi -q`, as XML or as text: leaf elements by their path, with the line they stand on."""

from __future__ import annotations

from topodiag.lazy import dataclass


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


@dataclass(frozen=True, slots=True)
class XmlDriver:
    """What stands before the GPUs. `whole` is False for a report that ends before its last element."""

    line: int
    fields: tuple[XmlField, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class XmlGpu:
    """One GPU in the order of the report; `complete` is False where the report breaks off inside it."""

    order: int
    bus_id: str
    line: int
    fields: tuple[XmlField, ...]
    complete: bool


XmlRecord = XmlDriver | XmlGpu
