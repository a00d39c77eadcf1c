"""Output of nccl-tests: from bytes, text or JSON of any version, to runs (`read_runs`)."""

from topodiag.evidence.nccl_tests.read import Read, read_file, read_runs

__all__ = ["Read", "read_file", "read_runs"]
