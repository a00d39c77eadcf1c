"""Sizes of a job from configurations and arguments, and rankfiles by affinity."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples, texts
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import Kind
from topodiag.evidence.layout.affinity import parse_pairs, read_affinity, read_pairs_file
from topodiag.evidence.layout.job_file import layout_of, read_job
from topodiag.evidence.layout.job_settings import read_arguments
from topodiag.model.errors import InputError
from topodiag.model.layout import JobSettings
from topodiag.model.links import Affinity

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


# --- The arguments that Megatron-LM prints at its start: the layout, and how large the model is


LLAMA_8B = {
    "ffn_hidden_size": "14336", "global_batch_size": "128", "group_query_attention": "True", "hidden_size": "4096",
    "kv_channels": "128", "micro_batch_size": "1", "num_attention_heads": "32", "num_experts": "None",
    "num_layers": "32", "num_query_groups": "8", "padded_vocab_size": "128256", "pipeline_model_parallel_size": "1",
    "recompute_granularity": "None", "seq_length": "8192", "sequence_parallel": "True", "swiglu": "True",
    "tensor_model_parallel_size": "8", "context_parallel_size": "1", "untie_embeddings_and_output_weights": "True",
    "use_distributed_optimizer": "True", "virtual_pipeline_model_parallel_size": "None", "world_size": "16",
}  # fmt: skip


def dump(**others: str) -> str:
    rows = "".join(f"  {name} {'.' * (48 - len(name))} {value}\n" for name, value in (LLAMA_8B | others).items())
    return f"------------------------ arguments ------------------------\n{rows}-------- end of arguments ---------\n"


def test_the_layout_is_what_the_arguments_say() -> None:
    settings = read_arguments(dump(pipeline_model_parallel_size="2"), "train.log")
    assert (dict(settings.sizes), settings.world) == ({"tp": 8, "pp": 2, "cp": 1}, 16)
    assert "tensor_model_parallel_size" in settings.origins["tp"].text


def test_the_size_of_the_model_is_that_of_its_matrices() -> None:
    settings = read_arguments(dump(), "train.log")
    # Llama 3 8B has 8.03e9 parameters (its model card); norms are not counted.
    assert settings.options["params"] == pytest.approx(8.03e9, rel=0.001)
    assert dict(settings.options) | {"params": 0} == {
        "params": 0, "layers": 32, "hidden": 4096, "seq": 8192, "kv_share": 0.25, "sequence_parallel": True, "zero": 1,
        "micro_batch": 1, "global_batch": 128, "recompute": "none",
    }  # fmt: skip


def test_of_experts_all_have_weights_and_a_few_work() -> None:
    settings = read_arguments(dump(num_experts="8", moe_router_topk="2", moe_layer_freq="1"), "x")
    assert float(settings.options["params"]) > 5 * 8e9
    assert float(settings.options["active_params"]) == pytest.approx(13.7e9, rel=0.01)
    mixed = read_arguments(dump(num_experts="8", moe_layer_freq="[0]+[1]*31"), "x")
    assert not mixed.options


def test_what_leaves_open_how_large_the_model_is_gives_none() -> None:
    settings = read_arguments(dump(hidden_size="None"), "x")
    assert (settings.sizes["tp"], settings.options) == (8, {})


def test_two_dumps_that_differ_leave_the_argument_unknown() -> None:
    settings = read_arguments(dump() + dump(tensor_model_parallel_size="4"), "x")
    assert "tp" not in settings.sizes


def test_a_text_without_a_dump_has_none() -> None:
    assert read_arguments("collecting torch ....... 2.4\nnum_layers = 32\n", "x") is None
    assert kind_of_file(b"collecting torch ....... 2.4\n").kinds == (Kind.TEXT,)
    assert kind_of_file(dump().encode()).kinds == (Kind.STEPS,)


def test_the_label_of_a_launcher_may_stand_before_each_line() -> None:
    settings = read_arguments("\n".join(f"15: {line}" for line in dump().split("\n")), "x")
    assert settings.sizes["tp"] == 8


def test_gradients_are_waited_for_where_the_arguments_say_that_nothing_hides_them() -> None:
    def waited(value: str) -> tuple[str, ...]:
        settings = read_arguments(dump(overlap_grad_reduce=value), "train.log")
        return settings.waited_for

    assert waited("False") == ("dp",)
    assert waited("True") == ()
    assert JobSettings("x", waited_for=("dp",)).trained["overlap"]["dp"] == 0.0
    assert JobSettings("x").trained["overlap"]["dp"] == 1.0


# --- a CSV matrix of what was measured between GPUs and NICs


GOOD = "GB/s,mlx5_0,mlx5_1\nGPU0,48.1,19\nGPU1,19.5,47.9\n"


def test_the_first_line_names_the_nics_and_the_unit() -> None:
    assert read_affinity(GOOD.encode(), "m.csv") == Affinity(
        ("GPU0", "GPU1"), ("mlx5_0", "mlx5_1"), ((48.1, 19.0), (19.5, 47.9)), "GB/s"
    )


@examples("head", "unit")
def test_without_a_unit_it_is_gb_per_second(head: str, unit: str) -> None:
    assert read_affinity(GOOD.replace("GB/s", head).encode(), "m.csv").unit == unit


@examples("text")
def test_what_spreadsheets_write_is_read(text: str) -> None:
    assert read_affinity(text.encode(), "m.csv").values == ((48.1, 19.0), (19.5, 47.9))


@examples("text", "message")
def test_what_is_wrong_is_told_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_affinity(text.encode(), "m.csv")


def test_the_example_of_the_guide_is_read() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "emit.md").read_text()
    block = guide.partition("```text\n")[2].partition("```")[0]
    affinity = read_affinity("\n".join(line.strip() for line in block.splitlines()).encode(), "guide")
    assert (len(affinity.gpus), len(affinity.nics), affinity.unit) == (4, 4, "GB/s")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_matrix_or_refused(data: bytes) -> None:
    try:
        affinity = read_affinity(data, "m.csv")
    except InputError:
        return
    assert all(len(row) == len(affinity.nics) for row in affinity.values)
    assert all(value > 0 for row in affinity.values for value in row)


# --- which device of a guest is which of its host, as users write it ------------------------------------------

PAIRS = {"0000:05:00.0": "0000:1b:00.0", "mlx5_0": "mlx5_3"}


def test_pairs_on_the_command_line() -> None:
    assert parse_pairs("0000:05:00.0=0000:1b:00.0, mlx5_0=mlx5_3,") == PAIRS


@examples("text")
def test_a_file_of_pairs_is_csv_or_json(text: str) -> None:
    assert read_pairs_file(text.encode(), "map") == PAIRS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no pair"),
        ("{}", "holds no pair"),
        ("GPU0", "'GPU0' is no pair"),
        ("a,b,c", "'a=b=c' is no pair"),
        ("GPU0,", "'GPU0=' is no pair"),
        ("GPU0,a\nGPU0,b", "GPU0 has two pairs"),
        ("{", "is no JSON"),
        ("[" * 5000, "is no JSON"),
        ("[1]", "'1' is no pair"),
    ],
)
def test_what_is_no_pair_is_told(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_pairs_file(text.encode(), "map")


def test_a_file_that_is_too_large_is_not_read() -> None:
    with pytest.raises(InputError, match="larger than any map"):
        read_pairs_file(b"a,b\n" * 300_000, "map")


@given(st.binary(max_size=200))
def test_any_bytes_are_pairs_or_refused(data: bytes) -> None:
    try:
        table = read_pairs_file(data, "map")
    except InputError:
        return
    assert all(guest and host for guest, host in table.items())
