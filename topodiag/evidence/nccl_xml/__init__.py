"""NCCL topology files (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE): as each version's parser reads them, and tolerantly."""

from __future__ import annotations

from topodiag.evidence.nccl_xml.file import read_file

__all__ = ["read_file"]
