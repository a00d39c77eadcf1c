"""hwloc's own XML (`lstopo --of xml`), versions 1 to 3: the object tree from the machine to the devices' names.

Format: hwloc/topology-xml.c and doc/hwloc.doxy of hwloc 2.9 and 3.0. What the objects mean is in `hwloc_facts`.
"""

from __future__ import annotations

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.hwloc.objects import HwlocObject
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.xml_tags import XmlTag, decoded, tags
from topodiag.model.errors import InputError
from topodiag.model.topics import Topic
from topodiag.words.units import spell_bytes

MAX_BYTES = 32 * 2**20
MAX_TAGS = 500_000
"""A machine of 1,024 threads, with all caches and all page sizes, has 60,000."""
MAX_DEPTH = 256


class HwlocXml(Source[HwlocObject]):
    """Offers processors, NUMA nodes, the PCI tree, GPUs as NVML numbers them, NICs and interfaces."""

    def parse(self, blob: Blob) -> Parsed[HwlocObject]:
        parsed: Parsed[HwlocObject] = Parsed()
        if len(blob.data) > MAX_BYTES:
            raise InputError(
                blob.name, f"is larger than {spell_bytes(MAX_BYTES)}", hint="refused: no topology is so large"
            )
        try:
            _read(blob, parsed)
        except InputError as error:
            if blob.item is None:
                raise
            parsed.leave(blob, error.line, "", error.message)
        if any("NVIDIAUUID" in record.infos or "XGMIHiveID" in record.infos for record in parsed.records):
            parsed.topics = self.speaks_of | {Topic.GPUS}
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[HwlocObject], draft: NodeDraft) -> None:
        from topodiag.evidence.hwloc.hwloc_facts import fill_draft  # noqa: PLC0415 - only where there is such a file

        fill_draft(parsed.records, blob, draft)


def _read(blob: Blob, parsed: Parsed[HwlocObject]) -> None:
    stack: list[HwlocObject] = []
    version, whole = 1, False
    for tag in tags(decoded(blob.data), blob.name, MAX_TAGS):
        if tag.name == "topology":
            whole |= tag.closes
            version = _major(tag)
        elif tag.name == "object" and tag.closes:
            if stack:
                stack.pop()
        elif tag.name == "object":
            hwloc_object = HwlocObject(
                tag.get("type") or "", tag.attributes, tag.line, stack[-1] if stack else None, {}, version
            )
            parsed.records.append(hwloc_object)
            if not tag.alone:
                stack.append(hwloc_object)
                if len(stack) > MAX_DEPTH:
                    raise InputError(blob.name, f"nests deeper than {MAX_DEPTH} objects", line=tag.line, hint="refused")
        elif tag.name == "info" and parsed.records:
            # From hwloc 3 on what holds for the machine stands behind all objects.
            above = stack[-1] if stack else parsed.records[0]
            above.infos.setdefault(tag.get("name") or "", tag.get("value") or "")
    if parsed.records and not whole:
        parsed.leave(blob, None, "", "the file ends before its topology does; what stands before is kept")


def _major(tag: XmlTag) -> int:
    first = (tag.get("version") or "1").partition(".")[0]
    return int(first) if first.isascii() and first.isdigit() and len(first) < 4 else 1
