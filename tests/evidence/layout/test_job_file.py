"""Files that declare the layout of a job, and what it trains."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.layout.test_training_arguments import dump
from tests.tables import examples
from topodiag.evidence.intake.kind_of_file import kind_of_file
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import Kind
from topodiag.evidence.layout.job_file import layout_of, read_job
from topodiag.model.errors import InputError
from topodiag.model.training import JobSettings

TEXTS = {
    "yaml": "tp: 8\npp: 1\ndp: 2\norder: tp-cp-ep-dp-pp\n",
    "json": '{\n  "tp": 8,\n  "pp": 1,\n  "dp": 2\n}\n',
    "one line": '{"tp": 8, "pp": 1, "dp": 2}',
    "megatron": "# of the run\ntensor-model-parallel-size: 8\npipeline_model_parallel_size: 1\ndata_parallel_size: 2\n",
    "world": "world_size: 16\ntp: 8\npp: 1\n",
}


def read(text: str) -> JobSettings:
    return read_job(Blob("job", text.encode()))


@pytest.mark.parametrize("form", TEXTS)
def test_every_form_of_sizes_alone_is_recognised_and_read(form: str) -> None:
    assert kind_of_file(TEXTS[form].encode()).kinds == (Kind.SIZES,)
    layout = layout_of(read(TEXTS[form]))
    assert layout is not None
    assert (layout.tp, layout.pp, layout.dp) == (8, 1, 2)


TEXTS_OF_OTHERS = ["tp: 8\n", "name: x\nversion: 2\n", "tp: 8\nimage: a/b:c\n", "order: tp-pp\nworld_size: 8\n"]


@pytest.mark.parametrize("text", TEXTS_OF_OTHERS)
def test_a_file_of_other_words_is_not_taken_for_sizes_by_its_look(text: str) -> None:
    assert Kind.SIZES not in kind_of_file(text.encode()).kinds


MEGATRON = r"""#!/bin/bash
# tensor-model-parallel-size was --tensor-model-parallel-size 2 in the first run
export TP=4
PP="2"
MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --ffn-hidden-size 14336
    --seq-length 8192
    --swiglu
    --untie-embeddings-and-output-weights
)
torchrun --nproc_per_node 8 --nnodes $NNODES pretrain_gpt.py ${MODEL_ARGS[@]} \
    --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size="$PP" \
    --context-parallel-size ${CP:-1} --expert-model-parallel-size $EP \
    --micro-batch-size 1 --global-batch-size 1024 --sequence-parallel --bf16 --recompute-activations \
    --use-distributed-optimizer --vocab-size 128256
"""
DEEPSPEED = """{
  "train_batch_size": 512, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": "auto",
  "bf16": {"enabled": true}, "fp16": {"enabled": false},
  "zero_optimization": {"stage": 3, "overlap_comm": true},
  "tensor_parallel": {"autotp_size": 4}
}"""
TORCHTITAN = """# torchtitan
[model]
name = "llama3"
flavor = "8B"

[training]
local_batch_size = 2
global_batch_size = -1
seq_len = 8192

[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 8
tensor_parallel_degree = 4
pipeline_parallel_degree = 1
context_parallel_degree = 1

[activation_checkpoint]
mode = "full"
"""
NEMO = """name: megatron_gpt
trainer:
  devices: 8
  num_nodes: 4
  precision: bf16-mixed
model:
  micro_batch_size: 1
  global_batch_size: 256
  tensor_model_parallel_size: 8
  pipeline_model_parallel_size: 4
  virtual_pipeline_model_parallel_size: null
  encoder_seq_length: 4096
  num_layers: 80
  hidden_size: 8192
  ffn_hidden_size: 28672
  num_attention_heads: 64
  num_query_groups: 8
  activation: fast-swiglu
  share_embeddings_and_output_weights: false
  activations_checkpoint_granularity: selective
  sequence_parallel: True
  tokenizer:
    model: ${oc.env:TOKENIZER}
"""
ACCELERATE = """compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
fsdp_config:
  fsdp_sharding_strategy: SHARD_GRAD_OP
parallelism_config:
  parallelism_config_dp_replicate_size: 1
  parallelism_config_dp_shard_size: 8
  parallelism_config_tp_size: 2
"""
ACCELERATE_MEGATRON = """distributed_type: MEGATRON_LM
megatron_lm_config:
  megatron_lm_tp_degree: 4
  megatron_lm_pp_degree: 2
  megatron_lm_sequence_parallelism: true
  megatron_lm_use_distributed_optimizer: true
  megatron_lm_recompute_activations: true
"""
CONFIG = """{"architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "hidden_size": 4096,
 "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
 "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 128256, "max_position_embeddings": 131072}"""
MODEL_8B = {"layers": 32, "hidden": 4096, "kv_share": 0.25}
FORMS = {
    "a script of Megatron-LM": (
        MEGATRON,
        {"tp": 4, "pp": 2, "cp": 1},
        MODEL_8B | {"seq": 8192, "micro_batch": 1, "global_batch": 1024, "sequence_parallel": True, "zero": 1,
                    "recompute": "selective", "precision": "bf16"},
        8.03e9,
    ),
    "a dump of Megatron-LM": (
        dump(),
        {"tp": 8, "pp": 1, "cp": 1},
        MODEL_8B | {"seq": 8192, "micro_batch": 1, "global_batch": 128, "sequence_parallel": True, "zero": 1,
                    "recompute": "none"},
        8.03e9,
    ),
    "DeepSpeed": (
        DEEPSPEED, {"tp": 4}, {"micro_batch": 4, "global_batch": 512, "zero": 3, "precision": "bf16"}, None,
    ),
    "torchtitan": (
        TORCHTITAN, {"tp": 4, "pp": 1, "cp": 1, "dp": 16},
        {"seq": 8192, "micro_batch": 2, "zero": 3, "recompute": "full"}, None,
    ),
    "NeMo": (
        NEMO,
        {"tp": 8, "pp": 4},
        {"layers": 80, "hidden": 8192, "kv_share": 0.125, "seq": 4096, "micro_batch": 1, "global_batch": 256,
         "sequence_parallel": True, "recompute": "selective", "precision": "bf16"},
        68e9,
    ),
    "accelerate": (ACCELERATE, {"tp": 2, "dp": 8}, {"zero": 2, "precision": "bf16"}, None),
    "accelerate with Megatron": (
        ACCELERATE_MEGATRON, {"tp": 4, "pp": 2}, {"sequence_parallel": True, "zero": 1, "recompute": "selective"}, None,
    ),
    "a model's config.json": (CONFIG, {}, MODEL_8B, 8.03e9),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_the_layout_and_the_training_are_read_from_each_form(form: str) -> None:
    text, sizes, options, params = FORMS[form]
    settings = read(text)
    assert dict(settings.sizes) == sizes
    assert {name: value for name, value in settings.options.items() if name != "params"} == options
    assert settings.options.get("params") == (None if params is None else pytest.approx(params, rel=0.03))
    assert not settings.serves


ENGINES = {
    "vllm serve m -tp 8 -pp 2 --max-model-len 32768\n": ({"tp": 8, "pp": 2}, "tp-cp-ep-pp-dp"),
    "vllm serve m --data-parallel-size=8 --enable-expert-parallel\n": ({"dp": 8, "ep": 8}, "tp-cp-ep-pp-dp"),
    "vllm serve m --tensor-parallel-size 2 --data-parallel-size 4\n": ({"tp": 2}, "tp-cp-ep-pp-dp"),
    "TP=8\npython -m vllm.entrypoints.openai.api_server \\\n  --model m \\\n  --tensor-parallel-size $TP\n": (
        {"tp": 8}, "tp-cp-ep-pp-dp",
    ),
    "INFO vLLM API server version 0.10\nINFO non-default args: {'model': 'm', 'tensor_parallel_size': 4}\n": (
        {"tp": 4}, "tp-cp-ep-pp-dp",
    ),
    "python3 -m sglang.launch_server --model-path m --tp 16 --dp 2 --enable-dp-attention --nnodes 2\n": (
        {"tp": 16}, "tp-cp-ep-dp-pp",
    ),
    "server_args=ServerArgs(model_path='m', tp_size=8, pp_size=2, dp_size=1)\n": (
        {"tp": 8, "pp": 2}, "tp-cp-ep-dp-pp",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", ENGINES)
def test_a_command_line_that_serves_has_sizes_and_trains_nothing(text: str) -> None:
    settings = read(text)
    assert settings.serves
    assert (dict(settings.sizes), settings.order) == ENGINES[text]
    assert not settings.options


@examples("form", "name", "line", "quote")
def test_a_setting_names_its_line(form: str, name: str, line: int, quote: str) -> None:
    origin = read(FORMS[form][0]).origins[name]
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


WORDS = [
    *FORMS["NeMo"][0].split(),
    *MEGATRON.split(),
    *TORCHTITAN.split(),
    "\n",
    "\\\n",
    "{",
    "}",
    "=",
    "$",
    '"',
    "vllm serve",
]


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


RANKS_OF_FORMS = {
    "trainer:\n  devices: 8\n  num_nodes: 4\nmodel:\n  tensor_model_parallel_size: 4\n": ({"tp": 4}, 32),
    "trainer:\n  devices: 8\n  num_nodes: 1\nmodel:\n  tensor_model_parallel_size: 16\n": ({"tp": 16}, 0),
    "trainer:\n  devices: auto\n  num_nodes: 4\nmodel:\n  tensor_model_parallel_size: 4\n": ({"tp": 4}, 0),
    "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\nnum_machines: 2\nnum_processes: 16\n": (
        {"dp": 16},
        16,
    ),
    "N=4\ntorchrun --nnodes $N --nproc-per-node 8 pretrain.py --tensor-model-parallel-size 8\n": ({"tp": 8}, 32),
    "torchrun --nnodes $N --nproc-per-node 8 pretrain.py --tensor-model-parallel-size 8\n": ({"tp": 8}, 0),
}
"""Sizes and ranks; 0 where nothing says them, or where the launch must say otherwise."""


@pytest.mark.parametrize("text", RANKS_OF_FORMS)
def test_the_ranks_are_those_of_the_launch_where_the_sizes_divide_them(text: str) -> None:
    settings = read_job(Blob("job", text.encode()))
    assert (settings.sizes, settings.world) == RANKS_OF_FORMS[text]
