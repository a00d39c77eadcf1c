"""Lines of steps with their times, in the forms of frameworks."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples, texts
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live import step_forms, step_times
from topodiag.evidence.live.step_forms import MOST_LEARNT, Forms
from topodiag.evidence.live.step_lines import read_line
from topodiag.evidence.live.step_times import holds_steps, read_steps
from topodiag.model.provenance import MAX_QUOTE
from topodiag.model.steps import PartOf

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
    assert step_line.number == number
    assert step_line.values[unit] == pytest.approx(value)


@pytest.mark.parametrize("name", NO_STEPS)
def test_what_is_counted_in_other_things_than_training_is_no_step(name: str) -> None:
    step_line = read_line(NO_STEPS[name])
    assert step_line is None or not step_line.values


def megatron(steps: range) -> str:
    return "\n".join(MEGATRON.format(at=n % 60, n=n) for n in steps) + "\n"


def test_a_line_keeps_its_time_its_place_and_the_size_of_its_batch() -> None:
    (series,) = read_steps(megatron(range(1, 6)), "train.log")
    last = series.steps[-1]
    assert (series.unit, last.number, last.work) == ("s", 5, 128)
    assert last.time == datetime(2025, 8, 1, 7, 19, 5, tzinfo=UTC).timestamp()
    assert (last.origin.source, last.origin.line) == ("train.log", 5)


def part(told: str | list[Any]) -> str:
    """A part of a log: a text, or a line for each of some steps, `n` in it, from the first to the last or of a list;
    the line of Megatron has a name."""
    if isinstance(told, str):
        return told
    form, numbers = told
    form = MEGATRON + "\n" if form == "megatron" else form
    every = range(numbers[0], numbers[1] + 1) if len(numbers) == 2 else numbers
    return "".join(form.format(n=n, at=n % 60) for n in every)


@examples("log", "kind", "series")
def test_series_of_steps_of_a_log(log: list[Any], kind: Kind | None, series: list[dict[str, Any]] | None) -> None:
    """What its text is, and of each series the numbers of its steps, all or the first and the last, and more."""
    text = "".join(map(part, log))
    assert kind is None or kind_of_file(text.encode()).kinds == (kind,)
    shown = [
        {
            "numbers": [step.number for step in each.steps],
            "ends": [each.steps[0].number, each.steps[-1].number],
            "values": sorted({step.value for step in each.steps}),
            "unit": each.unit, "rank": each.rank, "host": each.host, "smoothed": each.smoothed, "bar": each.bar,
        }
        for each in read_steps(text, "run.log")
    ]  # fmt: skip
    if series is not None:
        assert len(shown) == len(series)
        assert [{name: each[name] for name in own} for each, own in zip(shown, series, strict=True)] == series


def test_each_of_many_steps_has_its_own_line_and_values() -> None:
    text = megatron(range(1, 1301))
    (series,) = read_steps(text, "train.log")
    lines = [line.strip()[:MAX_QUOTE] for line in text.splitlines()]
    assert [step.number for step in series.steps] == list(range(1, 1301))
    assert [(step.origin.line, step.origin.text) for step in series.steps if step.origin] == list(enumerate(lines, 1))
    assert series.steps[-1] == series.steps[1299] == series.steps[1200:][-1]
    assert list(series.column("value")) == [step.value for step in series.steps]


def test_steps_between_lines_of_nccl_are_read_and_the_log_stays_one() -> None:
    record = "n1:12:34 [0] NCCL INFO Channel 00/08 : 0 1 step 3\n"
    text = record + megatron(range(1, 9)).replace("\n", f"\n{record}")
    for quick in (True, False):
        assert kind_of_file(text.encode(), quick=quick).kinds == (Kind.NCCL_LOG, Kind.STEPS)
    assert kind_of_file(record.encode(), quick=True).kinds == (Kind.NCCL_LOG,)
    assert len(read_steps(text, "x")[0].steps) == 8


def test_a_bar_that_begins_anew_in_a_resumed_run_measures_its_own_time() -> None:
    runs = [(step, 2 * step) for step in range(60)] + [(60 + step, 3 * step) for step in range(60)]
    bars = "".join(f"train:  9%|█ | {n}/200 [{s // 60:02}:{s % 60:02}<01:20,  1.00s/it]\n" for n, s in runs)
    (series,) = read_steps(bars, "x")
    assert set(series.column("value")[20:60]) == {2.0}
    assert set(series.column("value")[80:]) == {3.0}


@pytest.mark.parametrize(("longest", "found"), [(3000, 1), (150, 0)], ids=["a training among them", "data sets alone"])
def test_bars_of_many_lengths_count_data_sets(longest: int, found: int) -> None:
    lengths = [*range(100, 120, 2), longest]
    bars = "".join(f" {n}%|█ | {n}/{of} [00:10<01:20,  {n}.20s/it]\n" for of in lengths for n in range(1, 9))
    assert len(read_steps(f"the weights should be trained\n{bars}", "x")) == found


def test_a_last_line_that_was_cut_costs_itself() -> None:
    text = megatron(range(1, 9))
    (series,) = read_steps(text[: text.rindex("elapsed") + 12], "x")
    assert series.steps[-1].number == 7


@examples("line", "values")
def test_units_of_a_line(line: str, values: dict[str, float]) -> None:
    """Values by their units, all of them where there are none."""
    step_line = read_line(line)
    assert step_line is not None
    assert {unit: step_line.values.get(unit) for unit in values or step_line.values} == values


@examples("line", "waited")
def test_what_a_step_waits_for_data_is_read_where_the_line_says_it(line: str, waited: float | None) -> None:
    step_line = read_line(line)
    assert step_line.waited == waited


@examples("line")
def test_the_time_of_a_simulation_is_no_duration_of_a_step(line: str) -> None:
    step_line = read_line(line)
    assert not step_line.values


# --- the parts of a step: in which spellings they are read, and which names beside numbers are no part --------

WHOLE = 0.44
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


# --- a line that is read by its form says what it says when it is read in full


LINES = tuple(TEXTS["lines"])
NUMBERS = st.tuples(
    st.integers(0, 59), st.integers(0, 10**9 - 1), st.integers(0, 10**7), st.floats(0, 1e6), st.floats(0, 20)
)


def _line(form: str, numbers: tuple[int, int, int, float, float]) -> str:
    a, n, k, x, y = numbers
    return form.format(a=a, n=n, k=k, x=x, y=y)


@given(st.lists(st.tuples(st.sampled_from(LINES), NUMBERS), min_size=2, max_size=40))
def test_a_form_says_what_the_whole_reader_says(lines: list[tuple[str, tuple[int, int, int, float, float]]]) -> None:
    forms = Forms()
    for line in (_line(*line) for line in lines):
        assert forms.read(line) == read_line(line)


@given(st.lists(st.text(alphabet="step iter 0123456789.,:=|/%()[]'ms\n", max_size=60), max_size=20))
def test_any_text_is_read_as_by_the_whole_reader(lines: list[str]) -> None:
    forms = Forms()
    for line in (*lines, *lines):
        assert forms.read(line) == read_line(line)


def test_lines_of_one_form_are_read_in_full_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    dice, read = random.Random(3), []
    monkeypatch.setattr(step_forms, "read_line", lambda line: read.append(line) or read_line(line))
    forms = Forms()
    for number in range(1000, 2000):
        forms.read(_line(LINES[0], (30, number, 1, 1000 + dice.random(), 2 + dice.random())))
    assert len(read) < 40


STAMPS = ("", "[rank3]: ", "2026-03-01 11:{a:02d}:07 ", "2026-03-01 11:{a:02d}:07,123 ", "11:{a:02d}:07 ", "\u00e9 ")


@given(
    st.lists(
        st.tuples(st.sampled_from(LINES), st.sampled_from(STAMPS), st.integers(1, 60), st.integers(-3, 20)), max_size=6
    ),
    st.floats(0, 3),
)
def test_lines_in_a_row_say_by_column_what_each_says(parts: list[tuple[str, str, int, int]], value: float) -> None:
    n, lines = 100, []
    for form, stamp, size, ahead in parts:
        n += ahead
        numbers = [(n + at, at % 60) for at in range(size)]
        lines += [stamp.format(a=a) + _line(form, (a, n, 7, value + a, 2 * a)) for n, a in numbers]
        n += size
    text = "\n".join(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_times, "_TOGETHER", 1 << 10)
        by_column = [(series, list(series.steps)) for series in read_steps(text, "x")]
        patch.setattr(step_forms, "_LEAST_ALIKE", len(lines) + 1)
        by_line = [(series, list(series.steps)) for series in read_steps(text, "x")]
    assert [(series.unit, series.rank, steps) for series, steps in by_column] == [
        (series.unit, series.rank, steps) for series, steps in by_line
    ]


def test_steps_in_a_row_show_that_a_text_has_some() -> None:
    forms = Forms()
    parts = [megatron(range(1, 3)), megatron(range(900, 930))]
    assert [holds_steps(part.encode(), forms) for part in parts] == [False, True]


def test_steps_in_a_row_are_read_by_column(monkeypatch: pytest.MonkeyPatch) -> None:
    text, by_line = megatron(range(1, 2000)), []
    monkeypatch.setattr(Forms, "read", lambda forms, line, read=Forms.read: by_line.append(line) or read(forms, line))
    (series,) = read_steps(text, "train.log")
    assert [step.number for step in series.steps] == list(range(1, 2000))
    assert series.steps[1500].origin.line == 1501
    assert len(by_line) < 300


def test_a_text_of_ever_new_forms_is_read_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    learnt = []
    whole = step_forms._learnt
    monkeypatch.setattr(step_forms, "_learnt", lambda line: learnt.append(line) or whole(line))
    forms = Forms()
    for number in range(2 * MOST_LEARNT):
        forms.read("step " + "x" * number + " 5 loss: 3.5")
    assert len(learnt) == MOST_LEARNT


@pytest.mark.parametrize("blanks", [2, 13, 24, 250, 3000])
def test_a_bar_with_many_blanks_is_read_at_once(blanks: int) -> None:
    forms = Forms()
    for step in range(1, 9):
        line = f"Loading: {step:2}%|{'#' * step}{' ' * blanks}| {step}/90 [00:0{step}<01:20,  1.0{step}it/s]"
        assert forms.read(line) == read_line(line)
