"""The page of a verdict: the answer in the first lines and again in the last, proof that can be opened, nothing by
colour alone."""

import io
from dataclasses import replace

import pytest

from tests.checks import jobs
from tests.verdict.judged import LOG, measured, running, seen
from tests.verdict.test_order import W
from topodiag.model.case import Case
from topodiag.model.finding import Cost, Finding, Outcome, Status, Where
from topodiag.model.identity import Conflict, Identity
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.model.result import Result
from topodiag.model.timeline import Clock, Moment, Timeline
from topodiag.report.interface import Style
from topodiag.report.page import print_drawn
from topodiag.report.verdict.table import draw_diagnosis
from topodiag.verdict.judge import judge
from topodiag.verdict.order import arranged

LINKS = replace(
    seen("NVL001", message="GPU3 has 12 of 18 NVLinks active", cost=Cost(123.6, 1 / 3)),
    fix=("reset all GPUs of the node", "exchange the GPU"),
)
LOW = seen("BEN001", W, nodes=("n0", "n1"))


def result(*findings: Finding, case: Case | None = None, **parts: object) -> Result:
    case = case or running()
    answer = Result(
        nodes=case.nodes, jobs=case.jobs, findings=arranged(findings, case), identity=case.identity,
        outcomes=(Outcome("NET001", Status.CLEAN, ""),), **parts,
    )  # type: ignore[arg-type]  # fmt: skip
    return replace(answer, verdict=judge(answer, case))


def page(answer: Result, **style: object) -> list[str]:
    stream = io.StringIO()
    print_drawn(draw_diagnosis, answer, stream, Style(**style))  # type: ignore[arg-type]
    return stream.getvalue().splitlines()


def slow(**style: object) -> list[str]:
    return page(result(LINKS, LOW, benchmarks=(measured("low", made=282.0),)), **style)


def test_the_answer_stands_in_the_first_ten_lines_and_in_the_last() -> None:
    lines = slow()
    top = "\n".join(lines[:10])
    assert lines[0].startswith("▲ SLOW  n0: GPU3 has 12 of 18 NVLinks active; all_reduce reaches 282 of 470")
    assert "do         1. reset all GPUs of the node" in top
    assert "cost       " in top
    assert "verdict    established\n" in top
    assert lines[0].startswith(lines[-2].rstrip("…"))
    assert lines[-1] == "  do         reset all GPUs of the node"


@pytest.mark.parametrize("width", [60, 80, 160])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, slow(width=width))) <= width


def test_a_command_has_the_gpu_or_the_process_of_its_finding() -> None:
    one, several = (
        "\n".join(page(result(replace(LINKS, where=Where(("n0",), gpus=gpus)), LOW)))
        for gpus in (("GPU3",), ("GPU3", "GPU4"))
    )
    assert "check with nvidia-smi nvlink -s -i 3\n" in one
    assert "check with nvidia-smi nvlink -s -i N\n" in several


def test_a_place_of_proof_is_never_wrapped_and_is_relative_to_what_was_given() -> None:
    source = "/data/incident/logs/rank0.log"
    proven = replace(LINKS, evidence=(Origin(source, 7, "x" * 200), Origin("/data/incident/n0/smi.txt", 3, "text")))
    lines = page(replace(result(proven, LOW), given=(source, "/data/incident/n0")))
    assert any(line.startswith("             logs/rank0.log:7  xxx") and line.endswith("…") for line in lines)
    assert any(line.startswith("             n0/smi.txt:3") for line in lines)


def test_a_file_of_a_capture_has_its_node_before_it_where_there_are_several() -> None:
    case = replace(running(), nodes=(Node("n0"), Node("n1")))
    assert any("n0/trees/sys.tree:7" in line for line in page(result(LINKS, LOW, case=case)))


def test_what_speaks_against_a_cause_stands_below_its_proof() -> None:
    sockets = seen("NET001", line=LOG, cost=Cost(1.0, 0.9))
    assert any(line.startswith("  against ") for line in page(result(sockets)))


def test_alike_consequences_are_folded_with_their_count_and_unfolded_by_v() -> None:
    finding = seen("JOB006", message="rank 5 called all_gather")
    findings = [seen("JOB006", W, message=f"rank {rank} did not enter", line=LOG) for rank in range(4)]
    answer = result(finding, *findings)
    assert any("rank 0 did not enter ×4" in line for line in page(answer))
    assert sum("did not enter" in line for line in page(answer, verbose=1)) >= 4


def test_several_jobs_have_a_state_each() -> None:
    case = Case(jobs=(jobs.job(1, name="one"), jobs.job(2, name="two")))
    answer = result(seen("NIC005", nodes=("n1",), jobs=("two",), cost=Cost(50.0, 0.125)), case=case)
    lines = page(answer)
    assert "  jobs       ✔ healthy  one  n0" in lines
    assert any(line.startswith("             ▲ slow  two") for line in lines)


def test_sources_that_contradict_each_other_are_told() -> None:
    clash = Conflict("n0", "its capture shows 8 NICs that are up, its log none")
    case = replace(running(), identity=Identity(conflicts=(clash,)))
    assert "  conflict   n0: its capture shows 8 NICs that are up, its log none" in page(result(case=case))


def test_what_comes_next_is_a_command_for_a_named_host() -> None:
    case = replace(running(), nodes=(Node("n0"),))
    finding = seen("NIC005", W, nodes=("n1",), line=LOG, cost=Cost(50.0, 0.125))
    assert any("topodiag scan --save n1.tar.gz on n1: " in line for line in page(result(finding, case=case)))


def test_a_page_fits_the_screen_however_much_there_is_to_say():
    notes = tuple(Conflict(f"n{number}", "one thing, and another") for number in range(9))
    case = replace(running(), nodes=(Node("n0"), Node("n1")), identity=Identity(conflicts=notes))
    many = replace(LINKS, fix=tuple(f"step {number} " + "of many words " * 12 for number in range(9)))
    answer = result(many, LOW, benchmarks=(measured("low", made=282.0),), case=case)
    assert len(page(answer, exit_code=1)) <= 23
    assert page(answer, exit_code=1)[-1].split()[-4:] == ["many", "…", "exit", "1"]  # cut at the end of a word
    steps = " ".join(" ".join(page(answer)).split())
    assert all(step.strip() in steps for step in many.fix[:3])
    assert len(page(answer, verbose=1)) > 40


def test_nothing_foreign_reaches_the_terminal() -> None:
    lines = page(result(replace(LINKS, message="\x1b[31mred\x07")))
    assert not any("\x1b" in line or "\x07" in line for line in lines)


def failed(*moments: Moment) -> Result:
    case = Case(jobs=(jobs.job(2, events=[jobs.event("cuda", "CUDA error")]),), timeline=Timeline(moments))
    return replace(result(seen("JOB009", line=LOG), case=case), timeline=Timeline(moments))


def moment(seconds: float, what: str, line: int = 99, **more: object) -> Moment:
    return Moment(1_700_000_000.0 + seconds, what, "n0", origin=Origin("job.log", line), **more)  # type: ignore[arg-type]


def test_events_round_the_cause_stand_in_order_without_those_that_frame_the_job() -> None:
    answer = failed(
        moment(-700, "too early"), moment(-60, "link down"), moment(-30, "the node boots"),
        moment(0, "process died", line=3), moment(5, "peer closed", rank=4, count=8), moment(400, "too late"),
    )  # fmt: skip
    lines = page(answer)
    at = next(number for number, line in enumerate(lines) if line.startswith("  when"))
    assert lines[at : at + 2] == ["  when       22:12:20  n0  link down", "             22:13:20  n0  process died"]
    assert "22:13" not in lines[at + 2]  # -v has all


def test_a_cause_without_a_time_shows_no_events_and_a_slow_job_none() -> None:
    assert not any(line.startswith("  when") for line in page(failed(moment(0, "process died", line=77))))
    assert not any(line.startswith("  when") for line in slow())


def test_v_prints_all_events_and_how_far_each_clock_is_trusted() -> None:
    answer = failed(moment(-700, "too early"), moment(0, "process died", line=3))
    clock = Clock("NCCL log", "n0", skew_s=-600.0, within_s=2.0, how="Init COMPLETE of 2 hosts")
    lines = page(replace(answer, timeline=replace(answer.timeline, clocks=(clock,))), verbose=1)
    assert any("too early" in line for line in lines)
    assert any("clock of NCCL log on n0: -10 min within 2 s" in line for line in lines)


def test_other_causes_have_a_line_each_and_v_unfolds_them() -> None:
    ports = [
        replace(seen("NIC001", message=name), where=Where(("n0",), nics=(name,))) for name in ("mlx5_91", "mlx5_92")
    ]
    answer = result(replace(LINKS, cost=Cost(300.0, 0.9)), *ports)
    lines = page(answer)
    others = [line for line in lines if "NIC001" in line]
    assert others[0].startswith("  also       NIC001  n0 · mlx5_91: mlx5_91")
    assert len(others) == 2
    assert any(line.startswith("  cause 2 of 3  ") for line in page(answer, verbose=1))
