"""Settings of a job by the names of Megatron-LM's arguments, as the sizes and options of topodiag.

Every reader of a job's files brings what it reads to these names; here alone stands what they mean.
SOURCE: megatron/training/arguments.py of Megatron-LM.

The options of the command lines in a launch script: `--name value`, `--name=value`, `a.b=c`, and flags.

Nothing runs. A variable stands for its value where the script sets it once to a plain word; any other is left as it is.

The arguments that Megatron-LM and its kin print at their start: `  tensor_model_parallel_size ...... 8`.

SOURCE: megatron/training/arguments.py, _print_args; the names are the same in Megatron-DeepSpeed and GPT-NeoX.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from topodiag.evidence.signatures.literals import Finder, lines_with
from topodiag.lazy import regex
from topodiag.model.layout import ORDER, JobSettings
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.words.own_data import own_data, patterns

_LIKE = patterns("evidence/layout/lines", "settings")
_DEEP = 5
"""Variables of variables."""
_NAMES = own_data("evidence/layout/names")
_FLAGS = frozenset(_NAMES["flags"])
"""Options without a value: the word behind one is something else."""


class StatedSetting(NamedTuple):
    """A setting by the names on the way to it, its value, and its line (from 1)."""

    path: tuple[str, ...]
    value: Any
    line: int | None


def command_words(text: str) -> Iterator[StatedSetting]:
    """Every option of a script with its value, `True` for a flag."""
    text = _LIKE["comment"].sub("", text).replace("\\\r\n", "\v").replace("\\\n", "\v")
    variables = _variables(text)
    line, at = 1, 0
    for match in _LIKE["option"].finditer(text):
        line += sum(text.count(sign, at, match.start()) for sign in "\n\v")
        at = match.start()
        name = match[1] or match[2]
        flag = name.replace("_", "-") in _FLAGS and match[2] is None
        bare = match[3] if match[3] is None or "{" in match[3] else match[3].rstrip("}]")
        value = "True" if flag or not bare else _filled(bare, variables)
        yield StatedSetting(tuple(name.split(".")), value, line)


def _variables(text: str) -> dict[str, str]:
    """The plain variables that the script sets; one that is set to two values is none."""
    variables: dict[str, str] = {}
    for match in _LIKE["set"].finditer(text):
        name, value = match[1], next((part for part in match.groups()[1:] if part is not None), "")
        variables[name] = value if variables.get(name, value) == value else f"${name}"
    return variables


def _filled(value: str, variables: dict[str, str]) -> str:
    for _ in range(_DEEP):
        if "$" not in value or len(value) > 400:
            break
        value = _LIKE["variable"].sub(lambda match: variables.get(match[1] or match[2], match[3] or match[0]), value)
    return value


SIZES: dict[str, str] = _NAMES["sizes"]
"""Arguments that say how large a parallel dimension is."""
DEFAULTS = {"sequence_parallel": "False", "use_distributed_optimizer": "False"}
"""What Megatron does where an argument is not given."""
_NEEDED = ("num_layers", "hidden_size", "num_attention_heads")
_COUNTED: dict[str, str] = _NAMES["counted"]
_OF_OPTION = SIZES | _COUNTED | _NAMES["options"]
_MOST = 1 << 40
Options = dict[str, int | float | str | bool]


def settings_of(
    arguments: Mapping[str, str],
    source: str,
    origins: Mapping[str, Origin],
    *,
    order: str = ORDER,
    serves: bool = False,
) -> JobSettings:
    """What these arguments say. `origins` are their places, by the same names."""
    sizes = {short: size for name, short in SIZES.items() if (size := whole(arguments, name))}
    model = {} if serves else _model(arguments)
    options = {} if serves else model | _training(arguments)
    places = {_OF_OPTION.get(name, name): origin for name, origin in origins.items()}
    # Megatron-LM reduces gradients beside the backward pass only with --overlap-grad-reduce, which is off by default.
    waited = ("dp",) if arguments.get("overlap_grad_reduce") == "False" else ()
    known = {name: origin for name, origin in places.items() if name in sizes or name in options}
    return JobSettings(source, sizes, whole(arguments, "world_size") or 0, options, known, waited, order, serves)


def _model(arguments: Mapping[str, str]) -> Options:
    """How large the model is; nothing where the arguments leave it open."""
    needed = [whole(arguments, name) for name in _NEEDED]
    if not all(needed):
        return {}
    layers, hidden, heads = (number or 0 for number in needed)
    experts = whole(arguments, "num_experts") or 0
    if experts and arguments.get("moe_layer_freq", "1") not in ("1", "None"):
        return {}  # layers of two kinds, which one number does not describe
    groups = (whole(arguments, "num_query_groups") or heads) if _is_on(arguments, "group_query_attention") else heads
    width = (whole(arguments, "kv_channels") or hidden // heads) * heads
    attention = 2 * hidden * width + 2 * hidden * width * groups // heads
    inner = (experts and whole(arguments, "moe_ffn_hidden_size")) or whole(arguments, "ffn_hidden_size") or 4 * hidden
    expert = (3 if _is_on(arguments, "swiglu") else 2) * hidden * inner
    vocabulary = whole(arguments, "padded_vocab_size") or whole(arguments, "vocab_size") or 0
    tables = vocabulary * hidden * (2 if _is_on(arguments, "untie_embeddings_and_output_weights") else 1)
    model: Options = {
        "params": float(layers * (attention + expert * max(experts, 1)) + tables),
        "layers": layers, "hidden": hidden, "kv_share": groups / heads,
    }  # fmt: skip
    if experts:
        top = whole(arguments, "moe_router_topk") or 2
        model |= {
            "experts": experts,
            "top_k": top,
            "active_params": float(layers * (attention + expert * top) + tables),
        }
    return model


def _training(arguments: Mapping[str, str]) -> Options:
    """How it is trained, whatever its size."""
    options: Options = {option: size for name, option in _COUNTED.items() if (size := whole(arguments, name))}
    if "sequence_parallel" in arguments:
        options["sequence_parallel"] = _is_on(arguments, "sequence_parallel")
    if arguments.get("zero_stage", "") in ("0", "1", "2", "3"):
        options["zero"] = int(arguments["zero_stage"])
    elif "use_distributed_optimizer" in arguments:
        options["zero"] = int(_is_on(arguments, "use_distributed_optimizer"))
    if "recompute_granularity" in arguments:
        kind = arguments["recompute_granularity"]
        options["recompute"] = kind if kind in ("full", "selective") else "none"
    if arguments.get("precision", "") in ("bf16", "fp16", "fp8"):
        options["precision"] = arguments["precision"]
    return options


def _is_on(arguments: Mapping[str, str], name: str) -> bool:
    return arguments.get(name) == "True"


def whole(arguments: Mapping[str, str], name: str) -> int | None:
    """The whole number above 0 that an argument has, or None."""
    text = arguments.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 and 0 < int(text) < _MOST else None


LOOKS = regex(rb"\b(?:tensor_model_parallel_size|num_layers|hidden_size) \.{3,60} ?\d")
_FORMER = {"model_parallel_size": "tensor_model_parallel_size", "pipe_parallel_size": "pipeline_model_parallel_size"}
"""What GPT-NeoX calls the same."""
_MOST_NAMES, _MOST_LINE = 4000, 4000
_DOTS = Finder([b" .."])


def read_arguments(text: str | bytes, source: str) -> JobSettings | None:
    """What the first dump of arguments in a text says; None where there is none. An argument that is printed with two
    values is not known. Nothing is said of what is trained where the dump leaves open how large the model is."""
    arguments: dict[str, str] = {}
    unsure: set[str] = set()
    origins: dict[str, Origin] = {}
    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    for number, begin, end, _ in lines_with(_DOTS, data):
        line = data[begin : min(end, begin + _MOST_LINE)].decode("utf-8", "replace")
        match = _LIKE["argument"].search(line[:400]) if " .." in line[:200] else None
        if match is None:
            continue
        if len(arguments) > _MOST_NAMES:
            break
        name, value = match[1], match[2]
        if arguments.setdefault(name, value) != value:
            unsure.add(name)
        origins.setdefault(name, Origin(source, number, line.strip()[:MAX_QUOTE]))
    certain = {name: value for name, value in arguments.items() if name not in unsure}
    for former, name in _FORMER.items():
        if former in certain:
            certain.setdefault(name, certain[former])
            origins.setdefault(name, origins[former])
    certain.pop("data_parallel_size", None)  # what the others leave: an elastic job changes it
    read = settings_of(DEFAULTS | certain, source, origins)
    if not read.is_sized or "seq" not in read.options:
        read = replace(read, options={})
    return read if read.sizes or read.options else None
