"""`nvidia-smi -q -x`: one XML report of the driver and every GPU, of any version of its DTD.

Read GPU by GPU, so that a report that ends in the middle, or one broken element, keeps all that stands before it. The
DTD is never read: the prolog is left out, and entities of it stay plain text. What the values mean is in
`smi_xml_facts`.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import MAX_GPUS, Blob, Parsed, Source
from topodiag.evidence.nvidia.nvidia_words import LOST, fill_lost
from topodiag.evidence.nvidia.smi_xml_facts import XmlDriver, XmlField, XmlGpu, XmlRecord, fill_report
from topodiag.lazy import regex

MAX_BLOCK = 4_000_000
"""Characters read of one GPU's element: the longest seen, with many processes, is about 200 KB."""
MAX_HEAD = 100_000
MAX_FIELDS = 20_000
MAX_DEPTH = 24
MAX_VALUE = 400

_GPU = regex(r"<gpu(?:\s[^<>]{0,200})?>")
_BARE_AMPERSAND = regex(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});)")
_UNFIT = regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class NvidiaSmiXml(Source[XmlRecord]):
    """The full query. Offers GPUs with their PCIe link, state, fabric and memory errors, and the driver's version."""

    def recognises(self, head: str) -> bool:
        return "<nvidia_smi_log" in head

    def parse(self, blob: Blob) -> Parsed[XmlRecord]:
        parsed: Parsed[XmlRecord] = Parsed()
        text = blob.text
        start = text.find("<nvidia_smi_log")
        if start < 0:
            if LOST.search(text) is None:
                parsed.leave(blob, 1, text[:200], "no report of nvidia-smi -q -x")
            return parsed
        starts = [match.start() for _, match in zip(range(MAX_GPUS + 1), _GPU.finditer(text, start), strict=False)]
        if len(starts) > MAX_GPUS:
            parsed.leave(blob, None, "", f"more than {MAX_GPUS} GPUs: the others are left out")
            del starts[MAX_GPUS:]
        head = text[start : min(starts[0] if starts else len(text), start + MAX_HEAD)]
        line = text.count("\n", 0, start) + 1
        whole = "</nvidia_smi_log>" in text[starts[-1] if starts else start :]
        fields, _ = _fields(head, line)
        parsed.records.append(XmlDriver(line, fields, whole))
        if not whole:
            parsed.leave(blob, None, "", "the report ends before its last element")
        at = start
        for index, begin in enumerate(starts):
            line += text.count("\n", at, begin)
            at = begin
            limit = starts[index + 1] if index + 1 < len(starts) else len(text)
            parsed.records.append(self._gpu(blob, parsed, text[begin : min(limit, begin + MAX_BLOCK)], line, index))
        return parsed

    def _gpu(self, blob: Blob, parsed: Parsed[XmlRecord], block: str, line: int, index: int) -> XmlGpu:
        end = block.find("</gpu>")
        fields, error = _fields(block if end < 0 else block[: end + 6], line)
        opening = block[: block.find(">") + 1]
        if end < 0 or error is not None:
            why = error[1] if error else "the report ends inside this GPU"
            parsed.leave(blob, error[0] if error else line, opening, f"{why}; what stands before is kept")
        bus_id = re.search(r"""\bid\s?=\s?["']([^"']{1,40})["']""", opening)
        return XmlGpu(index, bus_id[1] if bus_id else "", line, fields, end >= 0 and error is None)

    def fill(self, blob: Blob, parsed: Parsed[XmlRecord], draft: NodeDraft) -> None:
        lost = fill_lost(blob, draft)
        fill_report(blob, parsed.records, draft, ordered=not lost)


class _Leaves:
    """Collects the text of elements that have no children. Errors of depth and number end the reading."""

    def __init__(self, line: int) -> None:
        self.fields: list[XmlField] = []
        self.first_line = line
        self.parser: DefusedXMLParser | None = None
        self._path: list[str] = []
        self._text: list[str] = []
        self._leaf = False

    def start(self, tag: str, attrs: dict[str, str]) -> None:
        if len(self._path) >= MAX_DEPTH or len(self.fields) >= MAX_FIELDS:
            raise ValueError("nested or repeated beyond any real report")
        self._path.append(tag[:80])
        self._text, self._leaf = [], True

    def data(self, text: str) -> None:
        if self._leaf and len(self._text) < MAX_VALUE:
            self._text.append(text[:MAX_VALUE])

    def end(self, tag: str) -> None:
        if self._leaf:
            line = self.first_line + (self.parser.parser.CurrentLineNumber - 1 if self.parser is not None else 0)
            text = "".join(self._text).strip()[:MAX_VALUE]
            self.fields.append(XmlField("/".join(self._path[1:]), text, line))
        self._leaf = False
        if self._path:
            self._path.pop()

    def close(self) -> None:
        return None


def _fields(text: str, line: int) -> tuple[tuple[XmlField, ...], tuple[int, str] | None]:
    """Leaf elements below the outermost one of a piece of XML, and where and why the reading stopped, if it did.

    A piece that merely ends early is no error here: its caller knows where it was cut.
    """
    leaves = _Leaves(line)
    parser = DefusedXMLParser(target=leaves, forbid_dtd=True, forbid_entities=True, forbid_external=True)
    leaves.parser = parser
    why: tuple[int, str] | None = None
    try:
        parser.feed(_BARE_AMPERSAND.sub("&amp;", _UNFIT.sub("\ufffd", text)))
    except ParseError as error:
        why = line + error.position[0] - 1, "broken XML"
    except (DefusedXmlException, ValueError) as error:
        why = line, str(error)[:80] or "refused"
    # a parser and its handlers hold each other, until Python searches for cycles: the fields do not wait for that
    fields, leaves.fields = tuple(leaves.fields), []
    return fields, why
