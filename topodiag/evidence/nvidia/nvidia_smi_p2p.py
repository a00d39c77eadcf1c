"""`nvidia-smi topo -p2p CAP`: whether the driver allows peer-to-peer between two GPUs, and why not."""

from __future__ import annotations

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.nvidia.nvidia_smi_topo import fill_matrices
from topodiag.evidence.nvidia.smi_matrix import Matrix, MatrixRecord, Vocabulary, read_matrices
from topodiag.lazy import regex
from topodiag.model.topics import Topic

_SELF = regex(r"(?<![A-Za-z0-9])X(?![A-Za-z0-9])")
"""The cell of a device with itself, cheap to look for."""


class NvidiaSmiP2p(Source[MatrixRecord]):
    """The peer-to-peer tables. Offers pairs in `p2p:read`, `p2p:nvlink`, ..., or `p2p:unknown` without a command."""

    kind = "nvidia-smi-p2p"
    speaks_of = frozenset({Topic.GPUS, Topic.GPU_PAIRS})
    trust = 70

    def recognises(self, head: str) -> bool:
        if "GPU" not in head or _SELF.search(head) is None:
            return False
        return any(
            isinstance(record, Matrix)
            and record.vocabulary is Vocabulary.P2P
            and any(row.has_self and row.label.startswith("GPU") for row in record.rows)
            for record in self.parse(Blob("", head.encode(errors="replace"))).records
        )

    def parse(self, blob: Blob) -> Parsed[MatrixRecord]:
        parsed: Parsed[MatrixRecord] = Parsed()
        read_matrices(blob, parsed)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[MatrixRecord], draft: NodeDraft) -> None:
        """A text may hold `topo -m` beside the peer-to-peer tables; what it says is offered as well."""
        fill_matrices(blob, parsed, draft)
