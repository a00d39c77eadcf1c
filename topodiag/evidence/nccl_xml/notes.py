"""What NCCL takes without a word and not as it was meant: values outside its dictionaries, doubled names and bus ids.

Dictionaries: kvDictPciGen, kvDictPciClass, kvDictCpuArch of src/graph/topo.cc, the same in all known versions but for
class 0x080100 (CX8_CLASS). A text is looked up by prefix (kvConvertToInt in src/graph/xml.h).
"""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.evidence.nccl_xml.load import c_int
from topodiag.model.nccl_features import Feature
from topodiag.model.nccl_tree import Element, Refusal
from topodiag.model.nccl_versions import NEWEST

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
