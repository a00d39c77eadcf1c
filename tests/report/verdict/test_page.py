"""The page of a verdict: the answer in the first lines and again in the last, proof that can be opened, nothing by
colour alone."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks import jobs
from tests.printed import drawn
from tests.verdict.judged import LOG, measured, running, seen
from tests.verdict.test_order import W
from topodiag.model.finding import Cost, Finding, Outcome, Status, Where
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.model.result import Case, Clock, Conflict, Identity, Moment, Result, Timeline
from topodiag.model.verdict import RuledOut
from topodiag.report.verdict.table import draw_diagnosis, source_of
from topodiag.verdict.causes import arranged
from topodiag.verdict.judge import judge

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
    return drawn(draw_diagnosis, answer, **style).splitlines()


def failed(*moments: Moment) -> Result:
    case = Case(jobs=(jobs.job(2, events=[jobs.event("cuda", "CUDA error")]),), timeline=Timeline(moments))
    return replace(result(seen("JOB009", line=LOG), case=case), timeline=Timeline(moments))


def moment(seconds: float, what: str, line: int = 99, **more: object) -> Moment:
    return Moment(1_700_000_000.0 + seconds, what, "n0", origin=Origin("job.log", line), **more)  # type: ignore[arg-type]


def proven(*files: tuple[str, int, str]) -> Result:
    """Of a cause with these lines of evidence, in files of a folder that was given."""
    evidence = tuple(Origin(f"/data/incident/{file}", line, text) for file, line, text in files)
    given = ("/data/incident/logs/rank0.log", "/data/incident/n0")
    return replace(result(replace(LINKS, evidence=evidence), LOW), given=given)


def of_gpus(*gpus: str) -> Result:
    return result(replace(LINKS, where=Where(("n0",), gpus=gpus)), LOW)


def behind() -> Result:
    """Of a rank that is behind, and four that therefore are missed."""
    missed = [seen("JOB006", W, message=f"rank {rank} did not enter", line=LOG) for rank in range(4)]
    return result(seen("JOB006", message="rank 5 called all_gather"), *missed)


def of_two_jobs() -> Result:
    case = Case(jobs=(jobs.job(1, name="one"), jobs.job(2, name="two")))
    return result(seen("NIC005", nodes=("n1",), jobs=("two",), cost=Cost(50.0, 0.125)), case=case)


def contradicted() -> Result:
    clash = Conflict("n0", "its capture shows 8 NICs that are up, its log none")
    return result(case=replace(running(), identity=Identity(conflicts=(clash,))))


def of_three_causes() -> Result:
    ports = (replace(seen("NIC001", message=nic), where=Where(("n0",), nics=(nic,))) for nic in ("mlx5_91", "mlx5_92"))
    return result(replace(LINKS, cost=Cost(300.0, 0.9)), *ports)


def of_a_clock_that_is_off() -> Result:
    answer = failed(moment(-700, "too early"), moment(0, "process died", line=3))
    clock = Clock("NCCL log", "n0", skew_s=-600.0, within_s=2.0, how="Init COMPLETE of 2 hosts")
    return replace(answer, timeline=replace(answer.timeline, clocks=(clock,)))


ANSWERS: dict[str, Callable[[], Result]] = {
    "slow job": lambda: result(LINKS, LOW, benchmarks=(measured("low", made=282.0),)),
    "fault of one GPU": lambda: of_gpus("GPU3"),
    "fault of two GPUs": lambda: of_gpus("GPU3", "GPU4"),
    "proof in two files": lambda: proven(("logs/rank0.log", 7, "x" * 200), ("n0/smi.txt", 3, "text")),
    "job and two captures": lambda: result(
        LINKS, LOW, case=replace(running(), nodes=(Node("n0"), Node("n1")))
    ),
    "sockets": lambda: result(seen("NET001", line=LOG, cost=Cost(1.0, 0.9))),
    "rank behind": behind,
    "two jobs": of_two_jobs,
    "contradiction": contradicted,
    "NICs missing on a node without a capture": lambda: result(
        seen("NIC005", W, nodes=("n1",), line=LOG, cost=Cost(50.0, 0.125)), case=replace(running(), nodes=(Node("n0"),))
    ),
    "foreign message": lambda: result(replace(LINKS, message="\x1b[31mred\x07")),
    "failed job": lambda: failed(
        moment(-700, "too early"), moment(-60, "link down"), moment(-30, "the node boots"),
        moment(0, "process died", line=3), moment(5, "peer closed", rank=4, count=8), moment(400, "too late"),
    ),
    "failed job without a time": lambda: failed(moment(0, "process died", line=77)),
    "clock that is off": of_a_clock_that_is_off,
    "three causes": of_three_causes,
}  # fmt: skip


def test_the_answer_stands_in_the_first_ten_lines_and_in_the_last() -> None:
    lines = page(ANSWERS["slow job"]())
    top = "\n".join(lines[:10])
    assert lines[0].startswith("▲ SLOW  n0: GPU3 has 12 of 18 NVLinks active; all_reduce reaches 282 of 470")
    assert "do         1. reset all GPUs of the node" in top
    assert "cost       " in top
    assert "verdict    established\n" in top
    assert lines[0].startswith(lines[-2].rstrip("…"))
    assert lines[-1] == "  do         reset all GPUs of the node"


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


@pytest.mark.parametrize(
    ("source", "text", "named"),
    [
        ("node.log", "n0:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB", "NCCL log"),
        ("nvidia-bug-report.log", "Link 0: 56.248 GB/s", "NVL001, NVL002"),
        ("n0/nvidia-smi.txt", "Link 0: 56.248 GB/s", "nvidia-smi"),
    ],
)
def test_a_part_is_ruled_out_by_the_tool_whose_lines_these_are_and_not_by_the_name_of_a_file(source, text, named):
    assert source_of(RuledOut("NVLink", "all active on n0 (NVL001, NVL002)", (Origin(source, 1, text),))) == named
