"""Lines above and below the table: parameters, versions, averages, failures."""

from __future__ import annotations

from topodiag.evidence.nccl_tests.words import version_of_code
from topodiag.lazy import regex

PARAMETERS = regex(r"nThreads?:? *(\d{1,9}) +nGpus:? *(\d{1,9})(.*)")
_PAIR = regex(r"(?<![A-Za-z_])([A-Za-z_]{1,20}(?: (?:iters|value))?):? ?(-?\d[\w().]{0,30}|\w{1,30})(?=\s|$)")
TESTS_VERSION = regex(r"(nccl|rccl)-tests version (\d[\w.:+-]{0,60})(?:.*?\1-library=(\d{1,8}))?")
RCCL_VERSION = regex(r"rcc+l-tests: Version (\S{1,60})")
COMPILED_WITH = regex(r"NCCL Tests compiled with NCCL (\d+\.\d+(?:\.\d+)?)")
NCCL_VERSION = regex(r"N?R?CCL version ?:? ?(\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)")
STARTING = regex(r"Collective test (starting|concluded): (\S{1,100})")
BOUNDS = regex(r"Out of bounds values *: *(\d{1,18})(?: +(OK|FAILED))?")
AVERAGE = regex(r"Avg bus bandwidth *: *(\S{1,30})(?: +(OK|FAILED))?")
ENVIRONMENT = regex(r"\b((?:NCCL|RCCL)_[A-Z0-9_]{1,80}) set (?:by environment )?to (\S.{0,300})")
"""Transports write `NCCL_IB_HCA set to mlx5_0`, the reader of settings `set by environment to`."""
FAILURE = regex(
    r"Test (?:CUDA|NCCL|HIP) failure|: Test failure |Incompatible NCCL versions|Test timeout \(|Invalid number of GPUs:"
    r"|invalid size specified for"
    r"|^\s*# error: \S|invalid option '|: error while loading shared libraries|returned non-zero exit code"
    r"|^srun: error: |Primary job +terminated|exited on signal \d|command not found$"
    r"|^(?!(?:cat|ls|e?grep|head|tail|stat|cp|mv|rm|find|readlink): ).{0,400}No such file or directory$"
)
"""What ends a run. A tool that looked for a file beside it ended nothing."""
KNOWN = regex(
    r"Using devices|out-of-place|in-place|\(elements\)|Blocking Enabled|Parallel Init Enabled|Reducing maxBytes"
    r"|Per-Iteration Report|GPU memory usage|Writing JSON output|skipping json output|# +rank=\d+ send_bytes="
    r"|Please check the number of processes and GPUs|asterisks indicate errors"
    r"|^(?:HIP version|ROCm version|Hostname|Librccl path) {1,4}: \S"
)
"""Lines of nccl-tests, and of RCCL's own version, that say nothing which is kept."""


def parameters_of(text: str) -> dict[str, str] | None:
    """`nThread 1 nGpus 8 minBytes 8 ... graph: 0` by name; None for any other line."""
    found = PARAMETERS.search(text)
    if found is None:
        return None
    made = {"nThread": found[1], "nGpus": found[2]}
    for name, value in _PAIR.findall(found[3][:2000]):
        made.setdefault(name, value)
    return made


def library_of(code: str | None) -> str:
    return version_of_code(int(code)) if code else ""
