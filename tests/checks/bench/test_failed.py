"""BEN006: a benchmark that ended with an error is one, with the cause that its text names."""

from dataclasses import replace

from tests.checks.benches import benchmark, judge, sweep
from tests.checks.wanted import expect
from tests.tables import examples
from topodiag.checks.shared.phrases import phrases
from topodiag.evidence.nccl_tests import read_runs
from topodiag.model.bench import BenchRun
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.provenance import Origin

NCCL = "n0: Test NCCL failure common.cu:959 'remote process exited or there was a network error / '"
UNWIND = " .. n0 pid 100: Test failure common.cu:1208"


def failed(*lines: str) -> BenchRun:
    (run,), _ = read_runs("\n".join(lines).encode(), "out.log")
    return run


def test_a_crashed_run_is_an_error_that_names_its_cause_and_cites_the_line() -> None:
    outcome = judge("BEN006", benchmark(failed(NCCL, UNWIND), "unknown"))
    finding = expect(outcome, severity="ERROR", message="*the first error is another rank's*")
    assert [origin.text for origin in finding.evidence] == [NCCL]
    assert finding.evidence[0].line == 1


def test_rows_above_the_error_are_counted() -> None:
    run = replace(sweep(), errors=(NCCL,), failures=(Origin("out.log", 9, NCCL),), complete=False)
    assert "failed after 9 rows" in judge("BEN006", benchmark(run)).findings[0].message


def test_what_nccl_warned_of_comes_before_the_word_of_nccl_tests() -> None:
    warned = "n0:1:1 [0] NCCL WARN Cuda failure 'system not yet initialized'"
    outcome = judge("BEN006", benchmark(failed(warned, NCCL), "unknown"))
    expect(outcome, message="*system not yet initialized*", fix="*Fabric Manager*")


def test_a_finding_on_the_log_comes_before_any_line() -> None:
    report = Finding("NET008", Severity.ERROR, "retries exceeded on mlx5_0", "", "", ("look at its cable",))
    echo = Finding("JOB005", Severity.ERROR, "first error: n0", "", "", ())
    made = benchmark(failed(NCCL), "unknown", failures=(echo, report))
    finding = expect(judge("BEN006", made), message="*retries exceeded on mlx5_0 (NET008)*")
    assert finding.fix == ("look at its cable",)


@examples("text", "cause")
def test_the_words_of_cuda_nccl_and_launchers_are_read(text: str, cause: str) -> None:
    assert cause in judge("BEN006", benchmark(failed(text), "unknown")).findings[0].message


def test_the_launchers_farewell_is_not_the_cause() -> None:
    run = failed("srun: error: n0: task 3: Exited with exit code 3", NCCL)
    assert "another rank's" in judge("BEN006", benchmark(run, "unknown")).findings[0].message


def test_a_run_that_ends_is_clean_and_an_excerpt_is_unknown() -> None:
    assert judge("BEN006", benchmark()).status is Status.CLEAN
    assert judge("BEN006", benchmark(replace(sweep(), complete=False))).status is Status.UNKNOWN


def test_each_meaning_says_what_to_do() -> None:
    assert all(phrase.says and phrase.fix for phrase in phrases("failed_run"))
