"""JOB014: what the steps of transfers wait for, by the trace of NCCL's example profiler plug-in."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.checks.wanted import expect
from tests.tables import examples
from topodiag.app.case.ras import with_step_waits
from topodiag.app.logs import logs
from topodiag.checks.job.slow.step_waits import OddStepWaits
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live.diagnostics import STATES, read_trace
from topodiag.model.finding import Finding, Status

HASH = 0x1F4C3D2A9B8E7F60
USUAL = {"SendGpuWait": 300.0, "SendPeerWait": 50.0, "SendWait": 200.0, "RecvWait": 900.0, "RecvGpuWait": 60.0}


def event(name: str, category: str, phase: str, ident: int, ts: float, *, args: str = "") -> str:
    more = f', "args": {{{args}}}' if args else ""
    head = (
        f'{{"name": "{name}", "cat": "{category}", "ph": "{phase}", "id": {ident}, "pid": 4711, "tid": 1, "ts": {ts:f}'
    )
    return f"{head}{more}}},"


def lines(rank: int, waits: Mapping[str, float], steps: int = 4, peer: int = 1) -> Iterator[str]:
    yield "["
    args = f'"SeqNum": 0, "CommHash": {HASH}, "Rank": {rank}, "Count": 262144, "Datatype": "ncclFloat32"'
    yield event("AllReduce", "COLL", "b", 0, 0.0, args=args)
    yield event("ProgressSend", "PROXY", "b", 0, 1.0, args=f'"Channel": 0, "Peer": {peer}, "Steps": {steps}')
    now = 1.0
    for step in range(steps):
        for name, us in waits.items():
            yield event(name, "NET", "b", step, now, args=f'"Step": {step}')
            now += us
            yield event(name, "NET", "e", step, now)
    yield event("ProgressSend", "PROXY", "e", 0, now)
    yield event("AllReduce", "COLL", "e", 0, now)


def trace(rank: int, waits: Mapping[str, float], **more: int) -> str:
    return "\n".join(lines(rank, waits, **more)) + "\n"


def found(odd: Mapping[str, float], ranks: int = 4, odd_rank: int = 2) -> list[Finding]:
    waits = [
        step_waits
        for rank in range(ranks)
        for step_waits in read_trace(
            trace(rank, odd if rank == odd_rank else USUAL, peer=(rank + 1) % ranks), f"t{rank}"
        )
    ]
    return list(OddStepWaits().judge(with_step_waits((), waits)[0]).findings)


def test_the_waits_of_a_rank_are_summed_by_state_and_peer() -> None:
    (waits,) = read_trace(trace(3, USUAL, peer=5), "trace-n0-1.txt")
    assert (waits.comm, waits.rank) == (HASH, 3)
    assert waits.us["RecvWait"] == pytest.approx(3600)
    assert waits.peers == pytest.approx({5: 200})
    assert set(waits.us) <= set(STATES)


@examples("state", "words")
def test_the_state_in_which_one_rank_alone_waits_names_the_place(state: str, words: str) -> None:
    finding = expect(found({**USUAL, state: 3000.0}), ranks=(2,))
    assert finding.message == words


@pytest.mark.parametrize("state", ["RecvWait", "SendGpuWait"])
def test_waiting_for_another_rank_blames_nobody(state: str) -> None:
    assert found({**USUAL, state: 9000.0}) == []


def test_a_state_that_is_common_and_traces_that_are_alike_are_silent() -> None:
    busy = {**USUAL, "SendWait": 3000.0}
    waits = [step_waits for rank in range(4) for step_waits in read_trace(trace(rank, busy), "t")]
    assert OddStepWaits().judge(with_step_waits((), waits)[0]).status is Status.CLEAN
    assert found(USUAL) == []


def test_two_traces_and_short_ones_are_unknown() -> None:
    short = [step_waits for rank in range(4) for step_waits in read_trace(trace(rank, {"SendWait": 9.0}), "t")]
    assert OddStepWaits().judge(with_step_waits((), short)[0]).status is Status.UNKNOWN
    two = [step_waits for rank in range(2) for step_waits in read_trace(trace(rank, USUAL), "t")]
    assert OddStepWaits().judge(with_step_waits((), two)[0]).status is Status.UNKNOWN


def test_files_of_a_job_are_known_by_their_steps_and_may_lack_their_end(tmp_path: Path) -> None:
    for rank in range(4):
        text = trace(rank, {**USUAL, "RecvGpuWait": 5000.0} if rank == 1 else USUAL)
        (tmp_path / f"trace-node{rank}-99.txt").write_text(text[:-40] if rank == 3 else text)
    result = logs([str(tmp_path)])
    assert [(finding.id, finding.where.ranks) for finding in result.findings] == [("JOB014", (1,))]
    assert Kind.TRACE not in kind_of_file(b'[{"name": "SendWait", "cat": "cpu", "ph": "b"}]').kinds
