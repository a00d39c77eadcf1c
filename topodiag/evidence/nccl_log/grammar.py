"""What one message of NCCL says, as rows of the tables of facts.py."""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar_kinds import KINDS

__all__ = ["KINDS"]
