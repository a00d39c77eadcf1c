"""JOB013: what NCCL's own diagnostics say, what it costs, and which of their lines are no fault."""

from dataclasses import replace
from pathlib import Path

from tests.checks import jobs
from tests.checks.wanted import expect
from tests.tables import examples, texts
from topodiag.app.case.ras import with_diagnostics
from topodiag.app.logs import logs
from topodiag.checks.job.settings.diagnostics import NcclReports
from topodiag.evidence.live.diagnostics import read_diagnostics
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.job import Job

TEXTS = texts(__file__)
OK = TEXTS["ok"]
HEAD = "node042:12345 NCCL DIAG [INFO] "


def job(*lines: str, text: str = "") -> Job:
    diagnosis = read_diagnostics("\n".join(HEAD + line for line in lines) + text, "out.txt")
    return with_diagnostics((), diagnosis)[0] if diagnosis else Job("none", 8, (), (), (), jobs.job(1).connections, ())


def found(*lines: str) -> list[Finding]:
    return list(NcclReports().judge(job(*lines)).findings)


def env(name: str, *values: tuple[str, str]) -> list[str]:
    """What NCCL prints of a setting that differs."""
    head = f"NCCL environment: mismatch across 8 ranks in comm 0x1234 for {name}"
    return [head, *(f"NCCL environment: {name}={value} on rank(s) {{{ranks}}}" for value, ranks in values)]


def test_a_report_of_ok_lines_is_clean_and_no_proof_of_health() -> None:
    judged = job(text=OK)
    assert NcclReports().judge(judged).status is Status.CLEAN
    assert [(diagnostic.subject, diagnostic.comm, diagnostic.size) for diagnostic in judged.diagnostics][:1] == [
        ("GPU inventory", 0x1234, 8)
    ]


@examples("line", "severity", "words")
def test_each_difference_is_told_with_its_ranks_and_what_it_costs(line: str, severity: Severity, words: str) -> None:
    finding = expect(found(line), severity=severity.name, ranks=(3,))
    assert words in finding.message
    assert finding.cost.text


@examples("line", "severity", "nodes")
def test_errors_of_the_kernel_log_are_told_with_their_host(
    line: str, severity: Severity, nodes: tuple[str, ...]
) -> None:
    expect(found(line), severity=severity.name, nodes=nodes, message="*n.7*")


@examples("line")
def test_what_2_32_only_tells_is_no_fault(line: str) -> None:
    assert NcclReports().judge(job(line)).status is Status.CLEAN


@examples("line")
def test_what_2_32_could_not_test_or_read_is_unknown(line: str) -> None:
    assert NcclReports().judge(job(line)).status is Status.UNKNOWN


def test_a_setting_that_must_agree_is_a_warning_and_another_one_a_note() -> None:
    (must,) = found(*env("NCCL_BUFFSIZE", ("(unset)", "0,1,2,3,4,5"), ("8388608", "6,7")))
    assert must.message == "NCCL_BUFFSIZE differs between ranks: (unset) on ranks 0-5, 8388608 on ranks 6-7"
    assert (must.severity, must.where.ranks) == (Severity.WARNING, (6, 7))
    (may,) = found(*env("NCCL_IB_TIMEOUT", ("20", "0,1,2,3"), ("22", "4,5,6,7")))
    assert may.severity is Severity.INFO


@examples("lines")
def test_what_is_meant_to_differ_is_silent(lines: list[str]) -> None:
    assert NcclReports().judge(job(*lines)).status is Status.CLEAN


def test_a_setting_that_the_logs_show_as_well_is_told_once() -> None:
    given = jobs.job(2)
    processes = tuple(
        replace(process, settings={"NCCL_ALGO": jobs.given("NCCL_ALGO", value)})
        for process, value in zip(given.processes, ("Ring", "Tree"), strict=False)
    )
    diagnosis = read_diagnostics("\n".join(HEAD + line for line in env("NCCL_ALGO", ("Ring", "0"), ("Tree", "1"))), "x")
    judged = replace(given, processes=(*processes, *given.processes[2:]), diagnostics=diagnosis)
    assert NcclReports().judge(judged).status is Status.CLEAN


def test_the_lines_are_found_in_the_output_of_a_job_behind_a_launcher(tmp_path: Path) -> None:
    place = tmp_path / "slurm.out"
    line = HEAD + "NVLink: inactive link(s) on rank(s) {3} across 8 ranks in comm 0x1234"
    place.write_text(f"loading\n0: {line}\n" + "".join(f"0: {line}\n" for line in OK.splitlines()))
    result = logs([str(place)])
    assert [(finding.id, finding.evidence[0].line) for finding in result.findings] == [("JOB013", 2)]
