"""Settings of a job by the names of Megatron-LM's arguments, as the sizes and options of topodiag.

Every reader of a job's files brings what it reads to these names; here alone stands what they mean.
SOURCE: megatron/training/arguments.py of Megatron-LM.
"""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.model.dimensions import ORDER
from topodiag.model.provenance import Origin
from topodiag.model.training import JobSettings

SIZES = {
    "tensor_model_parallel_size": "tp", "pipeline_model_parallel_size": "pp", "context_parallel_size": "cp",
    "expert_model_parallel_size": "ep", "data_parallel_size": "dp",
}  # fmt: skip
"""Arguments that say how large a parallel dimension is."""
DEFAULTS = {"sequence_parallel": "False", "use_distributed_optimizer": "False"}
"""What Megatron does where an argument is not given."""
_NEEDED = ("num_layers", "hidden_size", "num_attention_heads")
_COUNTED = {
    "seq_length": "seq",
    "micro_batch_size": "micro_batch", "global_batch_size": "global_batch",
    "virtual_pipeline_model_parallel_size": "chunks",
}  # fmt: skip
_MOST = 1 << 40
Options = dict[str, int | float | str | bool]


def settings_of(
    said: Mapping[str, str], source: str, origins: Mapping[str, Origin], *, order: str = ORDER, serves: bool = False
) -> JobSettings:
    """What these arguments say. `origins` are their places, by the same names."""
    sizes = {short: size for name, short in SIZES.items() if (size := whole(said, name))}
    model = {} if serves else _model(said)
    options = {} if serves else model | _training(said)
    places = {SIZES.get(name, _OF_OPTION.get(name, name)): origin for name, origin in origins.items()}
    # Megatron-LM reduces gradients beside the backward pass only with --overlap-grad-reduce, which is off by default.
    waited = ("dp",) if said.get("overlap_grad_reduce") == "False" else ()
    known = {name: origin for name, origin in places.items() if name in sizes or name in options}
    return JobSettings(source, sizes, whole(said, "world_size") or 0, options, known, waited, order, serves)


def _model(said: Mapping[str, str]) -> Options:
    """How large the model is; nothing where the arguments leave it open."""
    needed = [whole(said, name) for name in _NEEDED]
    if not all(needed):
        return {}
    layers, hidden, heads = (number or 0 for number in needed)
    experts = whole(said, "num_experts") or 0
    if experts and said.get("moe_layer_freq", "1") not in ("1", "None"):
        return {}  # layers of two kinds, which one number does not describe
    groups = (whole(said, "num_query_groups") or heads) if _is_on(said, "group_query_attention") else heads
    width = (whole(said, "kv_channels") or hidden // heads) * heads
    attention = 2 * hidden * width + 2 * hidden * width * groups // heads
    inner = (experts and whole(said, "moe_ffn_hidden_size")) or whole(said, "ffn_hidden_size") or 4 * hidden
    expert = (3 if _is_on(said, "swiglu") else 2) * hidden * inner
    vocabulary = whole(said, "padded_vocab_size") or whole(said, "vocab_size") or 0
    tables = vocabulary * hidden * (2 if _is_on(said, "untie_embeddings_and_output_weights") else 1)
    model: Options = {
        "params": float(layers * (attention + expert * max(experts, 1)) + tables),
        "layers": layers, "hidden": hidden, "kv_share": groups / heads,
    }  # fmt: skip
    if experts:
        top = whole(said, "moe_router_topk") or 2
        model |= {
            "experts": experts,
            "top_k": top,
            "active_params": float(layers * (attention + expert * top) + tables),
        }
    return model


def _training(said: Mapping[str, str]) -> Options:
    """How it is trained, whatever its size."""
    options: Options = {option: size for name, option in _COUNTED.items() if (size := whole(said, name))}
    if "sequence_parallel" in said:
        options["sequence_parallel"] = _is_on(said, "sequence_parallel")
    if said.get("zero_stage", "") in ("0", "1", "2", "3"):
        options["zero"] = int(said["zero_stage"])
    elif "use_distributed_optimizer" in said:
        options["zero"] = int(_is_on(said, "use_distributed_optimizer"))
    if "recompute_granularity" in said:
        kind = said["recompute_granularity"]
        options["recompute"] = kind if kind in ("full", "selective") else "none"
    if said.get("precision", "") in ("bf16", "fp16", "fp8"):
        options["precision"] = said["precision"]
    return options


_OF_OPTION = _COUNTED | {
    "num_layers": "layers", "hidden_size": "hidden", "num_experts": "experts",
    "moe_router_topk": "top_k", "zero_stage": "zero", "use_distributed_optimizer": "zero",
    "recompute_granularity": "recompute",
}  # fmt: skip


def _is_on(said: Mapping[str, str], name: str) -> bool:
    return said.get(name) == "True"


def whole(said: Mapping[str, str], name: str) -> int | None:
    """The whole number above 0 that an argument has, or None."""
    text = said.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 and 0 < int(text) < _MOST else None
