"""Source `nccl-xml`: a topology file for NCCL, or a dump of it, as evidence of a node."""

from __future__ import annotations

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.nccl_xml.facts import fill_draft
from topodiag.evidence.nccl_xml.file import read_file
from topodiag.lazy import regex
from topodiag.model.errors import InputError
from topodiag.model.nccl_tree import NcclFile
from topodiag.model.provenance import NotObserved
from topodiag.model.topics import Topic

_SYSTEM = regex(r"<system[\s/>]")
_INSIDE = regex(r"<(?:cpu|pci)\s[^<>]{0,400}(?:numaid|affinity|busid)\s{0,9}=|<system\s[^<>]{0,400}\bversion\s{0,9}=")


class NcclXml(Source[NcclFile]):
    """Keeps the file as NCCL meets it; alone, it also tells the machine's devices. In a capture it stays a file: it
    says what NCCL was given, which need not be the machine that it was found on."""

    kind = "nccl-xml"
    speaks_of = frozenset({Topic.TOPOLOGY_FILE})
    trust = 52

    def recognises(self, head: str) -> bool:
        return head.lstrip("\ufeff \t\r\n").startswith("<") and bool(_SYSTEM.search(head) and _INSIDE.search(head))

    def parse(self, blob: Blob) -> Parsed[NcclFile]:
        parsed: Parsed[NcclFile] = Parsed(lines=blob.data.count(b"\n") + 1)
        try:
            file = read_file(blob.data, blob.name)
        except InputError as error:
            if blob.item is None:
                raise
            parsed.leave(blob, error.line, "", error.message)
            return parsed
        parsed.records.append(file)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[NcclFile], draft: NodeDraft) -> None:
        for file in parsed.records:
            if draft.nccl_file is None:
                draft.nccl_file = file
            if blob.item is None:
                fill_draft(file.tree, blob, draft)
                _say_of_others(file, draft)


def _say_of_others(file: NcclFile, draft: NodeDraft) -> None:
    """A dump of a multi-node NVLink clique is one node per host; the tree keeps them all."""
    cpus = file.tree.having("cpu")
    hosts = len({cpu.get("host_hash") for cpu in cpus})
    if hosts > 1:
        what = f"{hosts - 1} more hosts in {file.name}"
        draft.missing.append(NotObserved(what, "a dump of several hosts counts as its first one"))
