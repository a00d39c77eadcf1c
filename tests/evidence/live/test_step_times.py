"""The steps of a training in its log: which forms are read, which lines are no steps, and what a text of them is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples, texts
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live.step_lines import read_line
from topodiag.evidence.live.step_times import read_steps
from topodiag.model.provenance import MAX_QUOTE

MEGATRON = (
    " [2025-08-01 07:19:{at:02d}] iteration {n:8d}/    5000 | consumed samples:          128 |"
    " elapsed time per iteration (ms): 12936.1 | throughput per GPU (TFLOP/s/GPU): 118.7 | learning rate: 6.9E-08 |"
    " global batch size:   128 | lm loss: 1.044022E+01 | number of skipped iterations:   0 |"
)

TEXTS = texts(__file__)
NO_STEPS = TEXTS["no_steps"]


@examples("line", "number", "unit", "value")
def test_a_line_with_a_step_and_a_duration_or_a_rate_is_read(line: str, number: int, unit: str, value: float) -> None:
    step_line = read_line(line)
    assert step_line is not None
    assert step_line.number == number
    assert step_line.values[unit] == pytest.approx(value)


@pytest.mark.parametrize("name", NO_STEPS)
def test_what_is_counted_in_other_things_than_training_is_no_step(name: str) -> None:
    step_line = read_line(NO_STEPS[name])
    assert step_line is None or not step_line.values


def test_the_learning_rate_of_a_line_without_a_duration_is_no_time() -> None:
    step_line = read_line(
        "[INFO] [logging.py:68:log_dist] [Rank 0] step=20, skipped=17, lr=[5e-05], mom=[(0.9, 0.999)]"
    )
    assert step_line is not None
    assert not step_line.values


def megatron(steps: range) -> str:
    return "\n".join(MEGATRON.format(at=n % 60, n=n) for n in steps) + "\n"


def test_a_line_keeps_its_time_its_place_and_the_size_of_its_batch() -> None:
    (series,) = read_steps(megatron(range(1, 6)), "train.log")
    last = series.steps[-1]
    assert (series.unit, last.number, last.work) == ("s", 5, 128)
    assert last.time == datetime(2025, 8, 1, 7, 19, 5, tzinfo=UTC).timestamp()
    assert last.origin is not None
    assert (last.origin.source, last.origin.line) == ("train.log", 5)


def test_each_of_many_steps_has_its_own_line_and_values() -> None:
    text = megatron(range(1, 1301))
    (series,) = read_steps(text, "train.log")
    lines = [line.strip()[:MAX_QUOTE] for line in text.splitlines()]
    assert [step.number for step in series.steps] == list(range(1, 1301))
    assert [(step.origin.line, step.origin.text) for step in series.steps if step.origin] == list(enumerate(lines, 1))
    assert series.steps[-1] == series.steps[1299] == series.steps[1200:][-1]
    assert list(series.column("value")) == [step.value for step in series.steps]


def test_a_unit_that_some_lines_lack_has_the_steps_that_say_it() -> None:
    rate = "step {n} | loss 2.1 | tokens/s 5000"
    lines = [f"{rate.format(n=n)}{' | step time: 1.5 s' if n % 4 else ''}" for n in range(1, 21)]
    (series,) = read_steps("\n".join(lines), "x")
    assert series.unit == "s"
    assert [step.number for step in series.steps] == [n for n in range(1, 21) if n % 4]
    assert [step.origin.text for step in series.steps if step.origin] == [line for line in lines if "time" in line]


def test_a_log_is_known_by_its_steps_and_one_step_is_nothing() -> None:
    assert kind_of_file(megatron(range(1, 9)).encode()).kinds == (Kind.STEPS,)
    assert kind_of_file(megatron(range(1, 2)).encode()).kinds == (Kind.TEXT,)
    assert kind_of_file(b"step 1 of the install took 3 s\nstep 2 is skipped\n").kinds == (Kind.TEXT,)
    assert read_steps(megatron(range(1, 3)), "x") == ()


def test_steps_between_lines_of_nccl_are_read_and_the_log_stays_one() -> None:
    record = "n1:12:34 [0] NCCL INFO Channel 00/08 : 0 1 step 3\n"
    text = record + megatron(range(1, 9)).replace("\n", f"\n{record}")
    for quick in (True, False):
        assert kind_of_file(text.encode(), quick=quick).kinds == (Kind.NCCL_LOG, Kind.STEPS)
    assert kind_of_file(record.encode(), quick=True).kinds == (Kind.NCCL_LOG,)
    assert len(read_steps(text, "x")[0].steps) == 8


def test_a_number_that_goes_back_is_another_start() -> None:
    starts = read_steps(megatron(range(1, 21)) + megatron(range(11, 31)), "x")
    assert [(start.steps[0].number, start.steps[-1].number) for start in starts] == [(1, 20), (11, 30)]


def test_two_jobs_of_one_file_are_two_starts() -> None:
    other = megatron(range(30, 40)).replace("/    5000", "/     900")
    assert len(read_steps(megatron(range(1, 21)) + other, "x")) == 2


def test_ranks_are_told_apart_by_the_prefix_of_their_launcher() -> None:
    lines = [line for n in range(1, 6) for line in (f"{rank}: step {n} took 1.{rank} s" for rank in (0, 1, 2))]
    assert [step.rank for step in read_steps("\n".join(lines), "x")] == [0, 1, 2]
    lines = [f"n{host}: step {n} took 1.2 s" for n in range(1, 6) for host in (7, 8)]
    assert [step.host for step in read_steps("\n".join(lines), "x")] == ["n7", "n8"]
    assert read_steps(megatron(range(1, 6)), "out/rank3.log")[0].rank == 3


def test_ranks_that_nothing_tells_apart_are_one_series() -> None:
    lines = [f"step {n} took 1.2 s" for n in (1, 1, 2, 1, 2, 3, 2, 3, 3, 4, 4, 5)]
    (series,) = read_steps("\n".join(lines), "x")
    assert [step.number for step in series.steps] == [1, 2, 3, 4, 5]


def test_a_bar_that_is_written_anew_counts_each_step_once() -> None:
    bar = "".join(f"\r {n}%|█ | {n}/100 [00:10<01:20,  1.20s/it]" * 2 for n in range(1, 9))
    text = "{'loss': 0.5, 'epoch': 0.1}\n" + bar.replace("\r", "\n")
    (series,) = read_steps(text, "x")
    assert (series.smoothed, [step.number for step in series.steps]) == (True, list(range(1, 9)))


def test_a_bar_without_a_word_of_training_counts_anything() -> None:
    bar = "\n".join(f" {n}%|█ | {n}/100 [00:10<01:20,  1.20s/it]" for n in range(1, 9))
    assert read_steps(bar, "x") == ()
    assert kind_of_file(bar.encode()).kinds == (Kind.TEXT,)


def test_shorter_bars_between_are_evaluations() -> None:
    train = "\n".join(f"loss 1.0\n {n}%|█ | {n}/100 [00:10<01:20,  1.20s/it]" for n in range(1, 30))
    evaluated = "\n".join(f" {n}%|█ | {n}/8 [00:10<01:20,  9.20s/it]" for n in range(1, 9))
    (series,) = read_steps(f"{train}\n{evaluated}\n", "x")
    assert series.steps[-1].number == 29


@pytest.mark.parametrize(("longest", "found"), [(3000, 1), (150, 0)], ids=["a training among them", "data sets alone"])
def test_bars_of_many_lengths_count_data_sets(longest: int, found: int) -> None:
    lengths = [*range(100, 120, 2), longest]
    bars = "".join(f" {n}%|█ | {n}/{of} [00:10<01:20,  {n}.20s/it]\n" for of in lengths for n in range(1, 9))
    assert len(read_steps(f"the weights should be trained\n{bars}", "x")) == found


def test_figures_below_the_head_of_a_step_are_of_that_step() -> None:
    text = "".join(
        f"[epoch=1][batch={n}/100]:\n\t Train time/batch: {n}\n\t Train throughput/batches_per_sec: 0.5\n"
        "\t Train throughput/device/batches_per_sec: 0.0625\n"
        for n in range(1, 6)
    )
    (series,) = read_steps(text, "x")
    assert [(step.number, step.value) for step in series.steps] == [(n, 2.0) for n in range(1, 6)]


def test_a_last_line_that_was_cut_costs_itself() -> None:
    text = megatron(range(1, 9))
    (series,) = read_steps(text[: text.rindex("elapsed") + 12], "x")
    assert series.steps[-1].number == 7


def test_of_two_lines_about_one_step_the_duration_counts() -> None:
    deepspeed = "[INFO] [timer.py:215:stop] epoch=0/micro_step={n}/global_step={n}, CurrSamplesPerSec=222.8"
    text = "\n".join(f"{deepspeed.format(n=n)}\n{MEGATRON.format(at=n, n=n)}" for n in range(1, 6))
    (series,) = read_steps(text, "x")
    assert (series.unit, len(series.steps)) == ("s", 5)


@given(st.text(), st.binary())
def test_any_text_is_read_without_an_exception(text: str, data: bytes) -> None:
    read_steps(megatron(range(1, 5)) + text, "any")
    read_line(data.decode("utf-8", "replace"))


@examples("line", "waited")
def test_what_a_step_waits_for_data_is_read_where_the_line_says_it(line: str, waited: float | None) -> None:
    step_line = read_line(line)
    assert step_line is not None
    assert step_line.waited == waited


def test_a_unit_that_names_the_number_behind_it_is_none_of_the_number_before() -> None:
    named, step_line = (
        read_line("step 12 loss 8.990 tokens/s 81230"),
        read_line("step 12 loss 8.990 0.912 s/it 64 it/s"),
    )
    assert named is not None
    assert step_line is not None
    assert (named.values, step_line.values["s"]) == ({}, 0.912)


@examples("line")
def test_the_time_of_a_simulation_is_no_duration_of_a_step(line: str) -> None:
    step_line = read_line(line)
    assert step_line is not None
    assert not step_line.values


@pytest.mark.parametrize(("line", "seconds"), [
    ("step 5 | time: 3.2 | dt: 512ms", 0.512), ("Time step 5 took 1.2 s", 1.2), ("step 5 | dt: 0.5 | loss 3.1", 0.5),
])  # fmt: skip
def test_a_time_with_a_unit_or_without_a_time_step_is_the_duration(line: str, seconds: float) -> None:
    step_line = read_line(line)
    assert step_line is not None
    assert step_line.values["s"] == pytest.approx(seconds)


def test_what_grows_from_each_step_to_the_next_is_a_clock() -> None:
    text = "".join(f"iteration {n}, time = {n * 12.5}\n" for n in range(1, 12))
    assert read_steps(text, "run.log") == ()
    (series,) = read_steps(text.replace("time = 62.5", "time = 12.5"), "run.log")
    assert series.unit == "s"


@pytest.mark.parametrize(("text", "found"), [
    ("ops with constraint is deprecated, see tf.train.Saver in /lib/training/x.py\n", 0), ("Training begins\n", 1),
    ("{'loss': 2.1}\n", 1),
])  # fmt: skip
def test_a_bar_alone_counts_where_a_word_says_that_something_is_trained(text: str, found: int) -> None:
    bars = "".join(f" {n}%|█ | {n}/92 [00:10<01:20,  1.2{n}s/it]\n" for n in (1, 2, 3))
    assert len(read_steps(text + bars, "run.log")) == found
