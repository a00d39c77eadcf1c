"""A benchmark that ended with an error."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import BenchCheck
from topodiag.checks.shared.bench_text import place, title
from topodiag.checks.shared.phrases import advice_by_words, phrase_in
from topodiag.lazy import regex
from topodiag.model.bench import Benchmark, BenchRun
from topodiag.model.finding import Finding, Outcome
from topodiag.model.provenance import Origin

_QUOTED = regex(r"failure [^']{0,300}'([^']{1,300})'")
_UNWIND = regex(r"\.\. \S{1,300}.{0,60}: Test failure ")
_WARNED = "CCL WARN "
_EPILOGUE = regex(r"Primary job +terminated|returned non-zero exit code|^srun: error: .{0,80}[Ee]xited with")
"""Lines of launchers: they say that a process ended, after it had said why."""

_ECHOES = frozenset({"JOB001", "JOB005", "JOB006"})
"""Findings that say that a job failed, and when: any other says why."""


class RunFailed(BenchCheck, id="BEN006"):
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

    def observe(self, judged: Benchmark, peers: Sequence[Benchmark]) -> Outcome:
        run = judged.run
        if run.errors:
            return self.any_of(judged, [self._report(judged)])
        if run.complete or (run.rows and run.average_gbs is not None):
            return self.clean(judged, "it ended without an error")
        return self.unknown(judged, "no line ends it: the run was aborted, or this is an excerpt")

    def _report(self, judged: Benchmark) -> Finding:
        run = judged.run
        done = f"after {len(run.rows)} rows" if run.rows else "before its first row"
        cause, lines, fix = _cause(judged)
        return self.finding(
            self.where(judged.run.hosts),
            "failed",
            f"{title(run)} failed {done}: {cause}",
            observed=f"{run.errors[0][:200]} ({place(judged)})",
            fix=fix if any(fix) else self.steps("log it"),
            evidence=lines,
        )


def _cause(judged: Benchmark) -> tuple[str, tuple[Origin, ...], tuple[str, ...]]:
    """Why a run failed, the lines that say so, and what to do ("" where nothing is known). What stands first of: a
    finding on the log or on a node, NCCL's first warning, the error itself."""
    run = judged.run
    lines = _fault_lines(run)
    finding = min(
        judged.failures, key=lambda failure: (failure.id in _ECHOES, -failure.confidence, failure.id), default=None
    )
    if finding is not None:
        return f"{finding.message} ({finding.id})", (*finding.evidence[:3], *lines[:1]), tuple(finding.fix[:2])
    warned = next((origin for origin in run.warnings if _WARNED in origin.text), None)
    if warned is not None:
        words = warned.text.partition(_WARNED)[2]
        cause, fix = _meaning(words)
        return cause or f"NCCL warned `{words.strip()[:120]}`", (warned, *lines[:1]), (fix,)
    for origin in lines:
        cause, fix = _meaning(_reason(origin.text))
        if cause or fix:
            words = _reason(origin.text)[:100]
            return f"{cause} (`{words}`)" if cause else words, (origin,), (fix,)
    return _reason(lines[0].text)[:160], lines[:2], ("",)


def _meaning(text: str) -> tuple[str, str]:
    known = phrase_in("failed_run", text)
    advice = advice_by_words(text)
    return (known.says, advice or known.fix) if known is not None else ("", advice)


def _fault_lines(run: BenchRun) -> tuple[Origin, ...]:
    """The lines that say what failed, without the way back up the stack and the launcher's farewell."""
    lines = run.failures or tuple(Origin(run.source, None, error) for error in run.errors)
    origins = tuple(line for line in lines if not _UNWIND.search(line.text) and not _EPILOGUE.search(line.text))
    return origins or lines


def _reason(text: str) -> str:
    match = _QUOTED.search(text)
    return (match[1] if match else text).strip().rstrip("/ ").strip()
