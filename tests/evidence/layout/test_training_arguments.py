"""The arguments that Megatron-LM prints at its start: the layout, and how large the model is."""

import pytest

from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.kinds import Kind
from topodiag.evidence.layout.job_settings import read_arguments
from topodiag.model.layout import JobSettings

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
