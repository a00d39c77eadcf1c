"""Output of nccl-tests: from bytes, text or JSON of any version, to runs (`read_file`); tests of perftest are, too."""

from topodiag.evidence.nccl_tests.read import read_file
from topodiag.evidence.nccl_tests.text import Read
from topodiag.evidence.network.perftest import pair_runs

__all__ = ["Read", "pair_runs", "read_file"]
