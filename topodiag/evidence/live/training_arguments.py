"""The arguments that Megatron-LM and its kin print at their start: `  tensor_model_parallel_size ...... 8`.

SOURCE: megatron/training/arguments.py, _print_args; the names are the same in Megatron-DeepSpeed and GPT-NeoX.
"""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.lazy import regex
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.model.training import LoggedTraining

LOOKS = regex(rb"\b(?:tensor_model_parallel_size|num_layers|hidden_size) \.{3,60} ?\d")
_ARGUMENT = regex(r"(?:^|[\s:\]])([a-z][a-z0-9_]{1,60}) \.{2,60} ?([A-Za-z0-9._+-]{1,40})")
_SIZES = {
    "tensor_model_parallel_size": "tp", "model_parallel_size": "tp", "pipeline_model_parallel_size": "pp",
    "pipe_parallel_size": "pp", "context_parallel_size": "cp", "expert_model_parallel_size": "ep",
}  # fmt: skip
_NEEDED = ("num_layers", "hidden_size", "seq_length", "num_attention_heads")
_MOST = 1 << 40
_MOST_LINES = 4000


def read_arguments(text: str, source: str) -> LoggedTraining | None:
    """What the first dump of arguments in a text says; None where there is none. An argument that is printed with two
    values is not known."""
    if " .." not in text:
        return None
    found: dict[str, str] = {}
    unsure: set[str] = set()
    origin: Origin | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        if " .." not in line[:200]:
            if len(found) > _MOST_LINES:
                break
            continue
        match = _ARGUMENT.search(line[:400])
        if match is None:
            continue
        name, value = match[1], match[2]
        if found.setdefault(name, value) != value:
            unsure.add(name)
        if name in _SIZES and origin is None:
            origin = Origin(source, number, line.strip()[:MAX_QUOTE])
    said = {name: value for name, value in found.items() if name not in unsure}
    sizes: dict[str, int] = {}
    for name, short in _SIZES.items():
        size = _whole(said, name)
        if size:
            sizes.setdefault(short, size)
    options = _options(said)
    if not sizes and not options:
        return None
    # Megatron-LM reduces gradients beside the backward pass only with --overlap-grad-reduce, which is off by default.
    waited = ("dp",) if said.get("overlap_grad_reduce") == "False" else ()
    return LoggedTraining(source, sizes, _whole(said, "world_size") or 0, options, origin, waited)


def _options(said: Mapping[str, str]) -> dict[str, int | float | str | bool]:
    """What is trained; nothing where the log leaves open how large the model is."""
    needed = [_whole(said, name) for name in _NEEDED]
    if not all(needed):
        return {}
    layers, hidden, seq, heads = (each or 0 for each in needed)
    experts = _whole(said, "num_experts") or 0
    if experts and said.get("moe_layer_freq", "1") not in ("1", "None"):
        return {}  # layers of two kinds, which one number does not describe
    groups = (_whole(said, "num_query_groups") or heads) if _is_on(said, "group_query_attention") else heads
    width = (_whole(said, "kv_channels") or hidden // heads) * heads
    attention = 2 * hidden * width + 2 * hidden * width * groups // heads
    inner = (experts and _whole(said, "moe_ffn_hidden_size")) or _whole(said, "ffn_hidden_size") or 4 * hidden
    expert = (3 if _is_on(said, "swiglu") else 2) * hidden * inner
    vocabulary = _whole(said, "padded_vocab_size") or _whole(said, "vocab_size") or 0
    tables = vocabulary * hidden * (2 if _is_on(said, "untie_embeddings_and_output_weights") else 1)
    made: dict[str, int | float | str | bool] = {
        "params": float(layers * (attention + expert * max(experts, 1)) + tables),
        "layers": layers, "hidden": hidden, "seq": seq, "kv_share": groups / heads,
    }  # fmt: skip
    if experts:
        top = _whole(said, "moe_router_topk") or 2
        made |= {"experts": experts, "top_k": top, "active_params": float(layers * (attention + expert * top) + tables)}
    return made | _trained(said)


def _trained(said: Mapping[str, str]) -> dict[str, int | float | str | bool]:
    """How it is trained, whatever its size."""
    made: dict[str, int | float | str | bool] = {
        "sequence_parallel": _is_on(said, "sequence_parallel"),
        "zero": int(_is_on(said, "use_distributed_optimizer")),
    }
    for name, option in (
        ("micro_batch_size", "micro_batch"),
        ("global_batch_size", "global_batch"),
        ("virtual_pipeline_model_parallel_size", "chunks"),
    ):
        if size := _whole(said, name):
            made[option] = size
    if "recompute_granularity" in said:
        kind = said["recompute_granularity"]
        made["recompute"] = kind if kind in ("full", "selective") else "none"
    return made


def _is_on(said: Mapping[str, str], name: str) -> bool:
    return said.get(name) == "True"


def _whole(said: Mapping[str, str], name: str) -> int | None:
    text = said.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 and 0 < int(text) < _MOST else None
