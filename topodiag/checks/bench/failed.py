"""A benchmark that ended with an error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from topodiag.checks.bench.text import place, title
from topodiag.checks.interface import BenchCheck
from topodiag.checks.shared.error_words import advice_by_words
from topodiag.lazy import dataclass, regex
from topodiag.model.bench import Benchmark, BenchRun
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity
from topodiag.model.provenance import Origin

_QUOTED = regex(r"failure [^']{0,300}'([^']{1,300})'")
_UNWIND = regex(r"\.\. \S{1,300}.{0,60}: Test failure ")
_WARNED = regex(r"CCL WARN (.{1,300})")
_EPILOGUE = regex(r"Primary job +terminated|returned non-zero exit code|^srun: error: .{0,80}[Ee]xited with")
"""Lines of launchers: they say that a process ended, after it had said why."""

_ECHOES = frozenset({"JOB001", "JOB005", "JOB006"})
"""Findings that say that a job failed, and when: any other says why."""

MEANINGS: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (regex(pattern), words, fix)
    for pattern, words, fix in (
        (
            r"uncorrectable|ECC error",
            "a GPU reports an uncorrectable error of its memory or links",
            "nvidia-smi -q -d ECC,ROW_REMAPPER; dmesg | grep -i xid (GPU002, NVL003)",
        ),
        (r"GPU is lost|fallen off the bus", "a GPU is lost", "nvidia-smi -L; dmesg | grep -i xid (GPU001)"),
        (
            r"no CUDA-capable device|Invalid number of GPUs|invalid device ordinal",
            "the process sees fewer GPUs than it was told to use",
            "nvidia-smi -L in the job's container; CUDA_VISIBLE_DEVICES; ranks per node and -g (HST002, GPU001)",
        ),
        (
            r"unspecified launch failure|launch timed out",
            "a kernel failed on a GPU",
            "dmesg | grep -i xid on the host that the line names (GPU003)",
        ),
        (r"Incompatible NCCL versions", "ranks run different NCCL versions", "one libnccl in every image (JOB002)"),
        (
            r"signal 9\b|Killed|OUT_OF_MEMORY|oom-kill",
            "a process was killed: by the kernel for memory, or by hand",
            "dmesg | grep -i -E 'oom|killed process'; the memory limit of the job (JOB009)",
        ),
        (
            r"signal 7\b|[Bb]us error",
            "a process lost its shared memory: /dev/shm is too small",
            "df -h /dev/shm in the container; --shm-size or --ipc=host (HST001)",
        ),
        (
            r"Test timeout",
            "an operation did not end in time: a rank hangs, or the network drops what is sent",
            "run again with NCCL_DEBUG=INFO on all ranks, then topodiag logs on the output",
        ),
        (
            r"error while loading shared libraries|command not found|No such file",
            "the program did not start",
            "ldd all_reduce_perf on every node; LD_LIBRARY_PATH",
        ),
        (r"invalid option|invalid size", "the program does not know an option that it was given", "all_reduce_perf -h"),
        (
            r"remote process exited|network error",
            "a peer ended, or the network between two ranks failed: the first error is another rank's",
            "run again with NCCL_DEBUG=INFO on all ranks, then topodiag logs on the output: it tells the first error",
        ),
        (
            r"unhandled system error",
            "a call to the system or to RDMA failed, which NCCL names with NCCL_DEBUG=WARN",
            "run again with NCCL_DEBUG=INFO, then topodiag logs on the output",
        ),
        (
            r"unhandled cuda error",
            "a call to CUDA failed, which NCCL names with NCCL_DEBUG=WARN",
            "run again with NCCL_DEBUG=INFO; dmesg | grep -i xid",
        ),
        (
            r"invalid usage|invalid argument",
            "NCCL refuses how it was called, mostly two ranks on one GPU",
            "run again with NCCL_DEBUG=INFO; one rank for each GPU (JOB004)",
        ),
        (
            r"internal error",
            "NCCL met what it does not expect, which it names with NCCL_DEBUG=WARN",
            "run again with NCCL_DEBUG=INFO, then topodiag logs on the output",
        ),
    )
)
"""What the words of nccl-tests, CUDA and launchers mean, the particular first. SOURCE: NVIDIA/nccl src/init.cc
(ncclGetErrorString), nccl-tests src/common.cu, CUDA runtime cudaGetErrorString."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a run failed, as far as its text tells, the lines that say so, and what to do."""

    cause: str
    lines: tuple[Origin, ...]
    fix: tuple[str, ...]


class RunFailed(BenchCheck[Failed]):
    """BEN006: the benchmark ended with an error

    What it finds
        An error of nccl-tests (`Test NCCL failure`, `Test CUDA failure`, `Test timeout`, `# error:`), or of what
        started it, with the cause as far as the text names it: what the checks find in NCCL's log in the same file,
        else NCCL's first warning, else the words of the error itself.

    Why it matters
        A node that fails a benchmark fails a job. Rows above the error may look healthy, and say nothing of the fault.

    Evidence it reads
        The lines of nccl-tests and of the launcher, `NCCL WARN` lines beside them, and what the checks find in the
        log and on the nodes.

    When it stays silent
        No error is printed: clean. A table that merely stops is an excerpt or an aborted run: unknown.

    How to confirm
        NCCL_DEBUG=INFO all_reduce_perf -b 8 -e 8G -f 2 -g 8 2>&1 | tee out.log      then: topodiag bench out.log
        dmesg | grep -i -E 'xid|oom'      on the host that the error names

    How to fix
        What the finding says of the cause. `remote process exited` is an echo: the first error is another rank's, and
        its output must be in the file, too.

    References
        nccl-tests src/common.h (CUDACHECK, NCCLCHECK, TESTCHECK); NCCL user guide, ncclResult_t.
    """

    id = "BEN006"
    title = "the benchmark ended with an error"

    def observe(self, judged: Benchmark, peers: Sequence[Benchmark]) -> Failed | Outcome:
        run = judged.run
        if run.errors:
            return _failed(judged)
        if run.complete or (run.rows and run.average_gbs is not None):
            return self.clean(judged, "it ended without an error")
        return self.unknown(judged, "no line ends it: the run was aborted, or this is an excerpt")

    def tell(self, judged: Benchmark, observed: Failed) -> Iterator[Finding]:
        run = judged.run
        done = f"after {len(run.rows)} rows" if run.rows else "before its first row"
        yield self.finding(
            judged,
            Severity.ERROR,
            f"{title(run)} failed {done}: {observed.cause}",
            observed=f"{run.errors[0][:200]} ({place(judged)})",
            expected="a table that ends with its averages",
            fix=observed.fix,
            cost=Cost(text="the run has no result: what its rows measured is not a verdict on the machine"),
            evidence=observed.lines,
            confidence=Confidence.HIGH,
        )


def _failed(judged: Benchmark) -> Failed:
    """What stands first of: a finding on the log or on a node, NCCL's first warning, the error itself."""
    run = judged.run
    lines = _telling(run)
    found = min(judged.found, key=lambda each: (each.id in _ECHOES, -each.confidence, each.id), default=None)
    if found is not None:
        return Failed(f"{found.message} ({found.id})", (*found.evidence[:3], *lines[:1]), tuple(found.fix[:2]))
    warned = next(((origin, hit[1]) for origin in run.warnings if (hit := _WARNED.search(origin.text))), None)
    if warned is not None:
        cause, fix = _meaning(warned[1])
        return Failed(cause or f"NCCL warned `{warned[1].strip()[:120]}`", (warned[0], *lines[:1]), _steps(fix))
    for origin in lines:
        cause, fix = _meaning(_said(origin.text))
        if cause or fix:
            said = _said(origin.text)[:100]
            return Failed(f"{cause} (`{said}`)" if cause else said, (origin,), _steps(fix))
    return Failed(_said(lines[0].text)[:160], lines[:2], _steps(""))


def _meaning(text: str) -> tuple[str, str]:
    known = next(((words, fix) for pattern, words, fix in MEANINGS if pattern.search(text)), ("", ""))
    return known[0], advice_by_words(text) or known[1]


def _steps(fix: str) -> tuple[str, ...]:
    return (fix or "run again with NCCL_DEBUG=INFO on all ranks, then topodiag logs on the output",)


def _telling(run: BenchRun) -> tuple[Origin, ...]:
    """The lines that say what failed, without the way back up the stack and the launcher's farewell."""
    lines = run.failures or tuple(Origin(run.source, None, each) for each in run.errors)
    told = tuple(each for each in lines if not _UNWIND.search(each.text) and not _EPILOGUE.search(each.text))
    return told or lines


def _said(text: str) -> str:
    found = _QUOTED.search(text)
    return (found[1] if found else text).strip().rstrip("/ ").strip()
