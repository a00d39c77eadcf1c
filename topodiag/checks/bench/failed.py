"""A benchmark that ended with an error, or with wrong results."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.interface import BenchCheck
from topodiag.checks.shared.bench_text import place, same_run, size_text, title
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
            confirm=same_run(run),
        )


def _cause(judged: Benchmark) -> tuple[str, tuple[Origin, ...], tuple[str, ...]]:
    """Why a run failed, the lines that say so, and what to do ("" where nothing is known). What stands first of: a
    finding on the log or on a node, NCCL's first warning, the error itself."""
    run = judged.run
    lines = _fault_lines(run)
    order = sorted(judged.failures, key=lambda failure: (failure.id in _ECHOES, -failure.confidence, failure.id))
    for finding in order[:1]:
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


class WrongResults(BenchCheck, id="BEN004"):
    """BEN004: a collective returned wrong results

    What it finds
        A `#wrong` above 0 in a row of the table, or `Out of bounds values : N FAILED` below it.

    Why it matters
        Data that arrived is not what was sent: gradients of a training are wrong without an error. Seen with bad memory
        of a GPU or NIC, PCIe reordering (relaxed ordering forced on an old NCCL), broken peer access over ACS or IOMMU,
        and firmware faults.

    Evidence it reads
        The column `#wrong` (older: `error` above its bound) and the line `Out of bounds values`.

    When it stays silent
        Validation was off (-c 0: N/A): not applicable. No row was completed: unknown. The older column `error` is a
        rounding difference; it counts only by the line below the table.

    How to confirm
        Run the same command with -c 1 -n 1 -w 0. Halve the GPUs until one pair, NIC or GPU is left, then look at it:
        nvidia-smi -q -d ECC,ROW_REMAPPER
        dmesg | grep -i xid
        NCCL_P2P_DISABLE=1 all_reduce_perf -b 1M -e 1G -f 2 -g 8      right results now: P2P is at fault
        NCCL_NET_GDR_LEVEL=LOC all_reduce_perf -b 1M -e 1G -f 2 -g 8    right results now: GPUDirect RDMA is at fault

    How to fix
        Take the GPU, NIC or node out that the halving leaves. Peer access broken: ACS or IOMMU in the way (PCI004).
        Relaxed ordering: NCCL_IB_PCI_RELAXED_ORDERING=0, the NIC's PCI_WR_ORDERING back to per_mkey.

    References
        nccl-tests src/common.cu (out of bounds values); NVIDIA GPU memory error management.
    """

    def observe(self, judged: Benchmark, peers: Sequence[Benchmark]) -> Outcome:
        run = judged.run
        if not run.rows:
            return self.unknown(judged, "no row was completed")
        checked = sum(any(timing.wrong is not None for timing in (row.out_of_place, row.in_place)) for row in run.rows)
        if run.wrong_values:
            return self.with_findings(judged, [self._wrong(judged, run.wrong_values, checked)])
        if run.parameters.get("validation") == "0" or (not checked and run.out_of_bounds is None):
            return self.not_applicable(judged, "validation was off (-c 0)")
        return self.clean(judged, f"{checked} sizes checked" if checked else "no value out of bounds")

    def _wrong(self, judged: Benchmark, total: float, checked: int) -> Finding:
        run = judged.run
        wrong = [row for row in run.rows if row.wrong_values > 0]
        sizes = ", ".join(dict.fromkeys(size_text(row.size) for row in wrong[:3]))
        where = f" at {sizes}{' and more' if len(wrong) > 3 else ''}" if wrong else ""
        return self.finding(
            self.where(judged.run.hosts),
            "wrong",
            f"{title(run)} returned {total:.0f} wrong values{where}",
            observed=f"{len(wrong)} of {checked} rows wrong, {run.out_of_bounds or 0} out of bounds ({place(judged)})",
            cost="no result of these ranks can be trusted",
            evidence=tuple(row.origin for row in wrong) or (run.origin,),
            confirm=same_run(run, "-b 1M -e 1G", [row.size for row in wrong]),
        )
