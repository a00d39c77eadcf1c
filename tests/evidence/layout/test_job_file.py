"""Files that declare the layout of a job, and what it trains."""

import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples, texts
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import Kind
from topodiag.evidence.layout.job_file import layout_of, read_job
from topodiag.model.errors import InputError
from topodiag.model.layout import JobSettings

FORMS = texts(__file__)
MEGATRON, CONFIG = FORMS["a script of Megatron-LM"], FORMS["a model's config.json"]
DEEPSPEED = FORMS["DeepSpeed"]


def read(text: str) -> JobSettings:
    return read_job(Blob("job", text.encode()))


@examples("text")
def test_every_form_of_sizes_alone_is_recognised_and_read(text: str) -> None:
    assert kind_of_file(text.encode()).kinds == (Kind.SIZES,)
    layout = layout_of(read(text))
    assert (layout.tp, layout.pp, layout.dp) == (8, 1, 2)


@examples("text")
def test_a_file_of_other_words_is_not_taken_for_sizes_by_its_look(text: str) -> None:
    assert Kind.SIZES not in kind_of_file(text.encode()).kinds


@examples("form", "sizes", "options", "params")
def test_the_layout_and_the_training_are_read_from_each_form(
    form: str, sizes: dict[str, int], options: dict[str, Any], params: float | None
) -> None:
    settings = read(FORMS[form])
    assert dict(settings.sizes) == sizes
    assert {name: value for name, value in settings.options.items() if name != "params"} == options
    assert settings.options.get("params") == (None if params is None else pytest.approx(params, rel=0.03))
    assert not settings.serves


@examples("text", "sizes", "order")
def test_a_command_line_that_serves_has_sizes_and_trains_nothing(text: str, sizes: dict[str, int], order: str) -> None:
    settings = read(text)
    assert settings.serves
    assert (dict(settings.sizes), settings.order) == (sizes, order)
    assert not settings.options


@examples("form", "name", "line", "quote")
def test_a_setting_names_its_line(form: str, name: str, line: int, quote: str) -> None:
    origin = read(FORMS[form]).origins[name]
    assert origin.line == line
    assert quote in origin.text


def test_a_variable_that_the_script_sets_twice_or_not_at_all_is_not_known() -> None:
    text = "if big; then\n  TP=8\nelse\n  TP=2\nfi\n"
    text += "run --tensor-model-parallel-size $TP --pipeline-model-parallel-size 2\n"
    assert dict(read(text).sizes) == {"pp": 2}


@examples("text", "says")
def test_a_file_that_declares_nothing_or_no_layout_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as refused:
        layout_of(read(text))
    assert "\n" not in str(refused.value)


FILES = f"{FORMS['NeMo']} {MEGATRON} {FORMS['torchtitan']}"
WORDS = [*FILES.split(), "\n", "\\\n", "{", "}", "=", "$", '"', "vllm serve"]


@given(
    st.one_of(st.text(), st.lists(st.sampled_from(WORDS)).map(" ".join), st.lists(st.sampled_from(WORDS)).map("".join))
)
def test_any_text_is_settings_or_one_error(text: str) -> None:
    with suppress(InputError):
        settings = read(text)
        assert settings.sizes or settings.options
        assert all(size >= 1 for size in settings.sizes.values())


LONG = 200_000


@pytest.mark.parametrize("part", [" ", "\t-", "--a ", "V=$V$V\n", "\\\n"])
def test_a_long_text_of_one_sign_is_refused_in_seconds(part: str) -> None:
    begin = time.monotonic()
    with pytest.raises(InputError):
        read(part * LONG)
    assert time.monotonic() - begin < 20


@examples("text", "sizes", "ranks")
def test_the_ranks_are_those_of_the_launch_where_the_sizes_divide_them(
    text: str, sizes: dict[str, int], ranks: int
) -> None:
    settings = read(text)
    assert (settings.sizes, settings.world) == (sizes, ranks)
