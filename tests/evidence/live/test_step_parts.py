"""The parts of a step: in which spellings they are read, and which names beside numbers are no part."""

import pytest

from tests.tables import examples, texts
from topodiag.evidence.live.step_lines import read_line
from topodiag.evidence.live.step_times import read_steps
from topodiag.model.steps import PartOf

WHOLE = 0.44
TEXTS = texts(__file__)
SPELT = tuple(TEXTS["spelt"])


@pytest.mark.parametrize("line", SPELT)
def test_the_parts_of_a_step_are_read_in_any_spelling(line: str) -> None:
    step_line = read_line(line)
    assert step_line.values["s"] == pytest.approx(WHOLE)
    assert [(part.of, round(part.seconds, 3)) for part in step_line.parts] == [
        (PartOf.DATA, 0.13), (PartOf.FORWARD, 0.07), (PartOf.BACKWARD, 0.23),
    ]  # fmt: skip
    assert step_line.waited == pytest.approx(0.13)


def test_a_part_that_holds_communication_is_that_whatever_else_its_name_says() -> None:
    step_line = read_line("step 3 step_time 0.30 s fwd 0.05 s bwd+allreduce 0.20 s grad_sync 0.02 s optim 0.01 s")
    assert [(part.name, part.of.value) for part in step_line.parts] == [
        ("fwd", "forward"), ("bwd+allreduce", "communication"), ("grad_sync", "communication"), ("optim", "optimizer"),
    ]  # fmt: skip


def test_parts_without_the_time_of_the_step_add_up_to_it() -> None:
    step_line = read_line("[rank 2] step 12 | data: 10.0 ms | fwd: 20.0 ms | bwd: 60.0 ms")
    assert step_line.values == {"s": pytest.approx(0.09)}


@examples("line")
def test_counts_rates_shares_and_losses_are_no_parts(line: str) -> None:
    step_line = read_line(line)
    assert step_line is None or (step_line.parts, step_line.values) == ((), {})


@examples("form")
def test_the_rank_of_a_line_is_read_before_and_behind_the_step(form: str) -> None:
    lines = [form.format(rank=rank, step=step) for step in range(5) for rank in (0, 3)]
    assert [step.rank for step in read_steps("\n".join(lines), "train.log")] == [0, 3]


@pytest.mark.parametrize("words", ["slowest rank 3, ", "worst rank: 3 | ", "lora rank: 16, "])
def test_a_rank_that_a_line_only_speaks_of_is_not_its_own(words: str) -> None:
    lines = [f"step {step} | loss 2.3 | {words}step_time: 0.3 s" for step in range(5)]
    assert [step.rank for step in read_steps("\n".join(lines), "train.log")] == [-1]
