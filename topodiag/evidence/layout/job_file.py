"""What a job's own files declare of it: parallel dimensions, and what is trained.

Read are launch scripts and dumps of Megatron-LM's arguments, command lines of vLLM and SGLang, DeepSpeed's JSON,
torchtitan's TOML, the YAML of NeMo and of Hugging Face accelerate, a model's `config.json`, and topodiag's own `tp: 8`.
Every form becomes (path, value, line) and then arguments by Megatron's names; no script runs, and a variable that the
script does not set is not known.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from topodiag.evidence.interface import Blob
from topodiag.evidence.json_values import integer
from topodiag.evidence.layout import job_settings as megatron
from topodiag.evidence.marks import SIZE_NAMES
from topodiag.evidence.yaml_values import MAX_BYTES, MAX_DEPTH, load_yaml, word
from topodiag.model.errors import InputError
from topodiag.model.layout import ORDER, JobSettings, Layout, LayoutError
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.words.own_data import own_data, patterns
from topodiag.words.units import spell_bytes

_MOST = 1 << 20
_SCRIPT = 4 << 20
"""Characters of a script, or of a server's log, that are looked through: its arguments stand at its start."""
_HINT = "give a launch script, a dump of arguments, DeepSpeed's JSON, torchtitan's TOML, YAML, or write tp: 8"
_TP, _PP, _CP, _EP, _DP = megatron.SIZES
_LONG = {short: name for name, short in megatron.SIZES.items()}
_LISTED = own_data("evidence/layout/names")
_NAMES: Mapping[str, str] = {
    **{name: _LONG.get(short, short) for name, short in SIZE_NAMES.items()},
    **_LISTED["names"],
    **{name: name for name in _LISTED["megatron"]},
}
"""What the formats call a setting, by its last name or its last two."""
_OWN = frozenset({"tp", "pp", "dp", "cp", "ep", "order", "world_size", "num_processes", "tp_size", "pp_size", "pcp"})
"""Names so short that in a document they count at the top alone."""
_OF_SCRIPTS = frozenset({"order", "world"})
"""Settings of topodiag's own that an option of some script may be called like."""
_OFF = megatron.DEFAULTS | {"overlap_grad_reduce": "False", "recompute_granularity": "None"}
"""What a launch script of Megatron leaves out because it is off."""
_STAGES_FIRST = "tp-cp-ep-pp-dp"
"""The order of ranks of vLLM, and of Megatron with --use-tp-pp-dp-mapping: pipeline stages before replicas."""
_PARTS = frozenset({"world", "replicate", "shard"})
"""Numbers of ranks that are no dimension by themselves."""
_OPEN = frozenset({"", "-1", "auto", "None"})
_LIKE = patterns("evidence/layout/lines", "files")
_FEW = 400
"""Lines in which the first word that is no comment stands."""


def read_job(blob: Blob) -> JobSettings:
    """The settings that a file declares. Raises InputError where it declares none, for a size that is none, and for
    one that is said twice."""
    logs = megatron.LOOKS.search(blob.data, 0, MAX_BYTES) is not None
    if logs and (logged := megatron.read_arguments(blob.text, blob.name)) is not None:
        return logged
    if len(blob.data) > MAX_BYTES:
        raise InputError(blob.name, f"is larger than {spell_bytes(MAX_BYTES)}", hint="is it the right file?")
    text = blob.text
    serves, vllm = _LIKE["servers"].search(text) is not None, "vllm" in text.lower()
    document = not serves and _is_document(text)
    places = _places(blob, document=document)
    plain = _as_megatron({name: place.value for name, place in places.items()})
    if serves:
        plain = _served(plain, vllm=vllm)
    elif not document and "num_layers" in plain:
        plain = _OFF | plain
    elif _LIKE["toml"].search(text) and plain.get("shard") != "1":
        plain.setdefault("zero_stage", "3")  # torchtitan shards the weights unless it is told not to
    slow = plain.get("use_tp_pp_dp_mapping") == "True" or (serves and vllm)
    order = plain.get("order", _STAGES_FIRST if slow else ORDER)
    settings = megatron.settings_of(plain, blob.name, _origins(blob, places), order=order, serves=serves)
    if not (settings.sizes or settings.options):
        raise InputError(blob.name, "declares no parallel sizes, and nothing of a training", hint=_HINT)
    return settings


def _places(blob: Blob, *, document: bool) -> dict[str, megatron.StatedSetting]:
    """The settings by Megatron's names. One that is said with two values is not known; a size then is an error."""
    places: dict[str, megatron.StatedSetting] = {}
    unsure: set[str] = set()
    for path, value, line in _document(blob) if document else megatron.command_words(blob.text[:_SCRIPT]):
        name = _name_of(path, document=document)
        if name in megatron.SIZES or name in _PARTS:
            read = _size(blob.name, path[-1], value, strict=document)
        else:
            read = _read(name, path[-1], value)
        if not read or places.setdefault(name, megatron.StatedSetting(path, read, line)).value == read:
            continue
        if name not in megatron.SIZES:
            unsure.add(name)
            continue
        why = f"says {megatron.SIZES[name]} twice, {places[name].value} and {read}"
        raise InputError(blob.name, why, line=line, hint="give the file of one run, or the sizes as options")
    return {name: place for name, place in places.items() if name not in unsure}


def _is_document(text: str) -> bool:
    """Whether a text is JSON, TOML or YAML by its first line that is no comment, and no script."""
    if _LIKE["toml"].search(text):
        return True
    lines = (line.strip() for line in text.split("\n", _FEW)[:_FEW])
    first = next((line for line in lines if line and not line.startswith("#") and line != "---"), "")
    return first[:1] in ("{", "[") or _LIKE["key"].match(first) is not None


def layout_of(settings: JobSettings) -> Layout | None:
    """The layout that the settings declare, None where they declare no size. Raises InputError for sizes that do not
    make the ranks that they name, or for an order that is none."""
    if not settings.sizes:
        return None
    try:
        layout = Layout(**settings.sizes, order=settings.order)
        layout.names()
        return layout.for_world(settings.world) if settings.world else layout
    except LayoutError as error:
        raise InputError(settings.source, error.message, hint=error.hint) from None


def _name_of(path: tuple[str, ...], *, document: bool) -> str:
    """The setting that a path names, "" for one that is of no use here."""
    last = [part.lower().replace("-", "_") for part in path[-2:]]
    name = _NAMES.get(".".join(last)) or _NAMES.get(last[-1], "")
    if document:
        return "" if last[-1] in _OWN and len(path) > 1 else name
    return "" if name in _OF_SCRIPTS else name


def _size(source: str, key: str, value: Any, *, strict: bool) -> str:
    """A size, "" where it is left open: null, -1, `auto`, or a variable. Raises InputError for one that is none where
    the reading is `strict`."""
    text = str(value).strip()
    if value is None or "$" in text or text in _OPEN:
        return ""
    size = integer(int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else value, 1, _MOST)
    if size is None and strict:
        raise InputError(source, f"{key} is {word(value)}", hint="sizes are 1 or more")
    return str(size or "")


def _read(name: str, key: str, value: Any) -> str:
    """A value in Megatron's words, "" where it is left open."""
    text = str(value).strip()
    if not name or value is None or isinstance(value, list) or "$" in text or text in _OPEN:
        return ""
    if name == "precision":
        return str(_LISTED["precisions"].get(text.lower().partition("-")[0], ""))
    if name == "zero_stage":
        return text if key.lower().endswith("stage") else _LISTED["zero"].get(text.lower(), "")
    if text.lower() in ("true", "false"):
        return text.capitalize()
    return text.lower() if name in ("order", "activation") else text


def _as_megatron(arguments: Mapping[str, str]) -> dict[str, str]:
    """The settings with what follows from them by Megatron's names. The number of ranks is as said, or of a launch
    whose ranks the sizes divide. What shards weights and has no size shares them among all ranks."""
    completed = dict(arguments)
    ranks = (megatron.whole(completed, "per_node") or 0) * (megatron.whole(completed, "hosts") or 0)
    if ranks and not ranks % prod(megatron.whole(completed, name) or 1 for name in (_TP, _PP, _CP, _DP)):
        completed.setdefault("world", str(ranks))  # else the launch overrides what stands here
    if "world" in completed:
        completed["world_size"] = completed["world"]
        if "zero_stage" in completed and completed.keys().isdisjoint(megatron.SIZES):
            completed[_DP] = completed["world"]
    parts = [size for name in ("replicate", "shard") if (size := megatron.whole(completed, name))]
    if len(parts) == 2:
        completed.setdefault(_DP, str(prod(parts)))
    _name_model(completed)
    return completed


def _name_model(arguments: dict[str, str]) -> None:
    """Adds what follows for the model: precision, attention, activation, embeddings, stages."""
    for precision in ("bf16", "fp16"):
        if arguments.get(precision) == "True":
            arguments.setdefault("precision", precision)
    if "num_query_groups" in arguments:
        arguments["group_query_attention"] = "True"
    if arguments.get("activation", "") in ("fast-swiglu", "swiglu", "silu"):
        arguments["swiglu"] = "True"
    if "tied" in arguments:
        arguments["untie_embeddings_and_output_weights"] = "False" if arguments["tied"] == "True" else "True"
    if arguments.get("recompute_activations") == "True":
        arguments.setdefault("recompute_granularity", "selective")
    per_stage = megatron.whole(arguments, "num_layers_per_virtual_pipeline_stage")
    if per_stage and (layers := megatron.whole(arguments, "num_layers")):
        chunks = layers // (megatron.whole(arguments, _PP) or 1) // per_stage
        arguments.setdefault("virtual_pipeline_model_parallel_size", str(chunks))


def _served(arguments: Mapping[str, str], *, vllm: bool) -> dict[str, str]:
    """The sizes of an engine. Data-parallel engines are jobs of their own, or share the ranks of the tensor dimension
    (SGLang's --enable-dp-attention); vLLM's make one job where the experts are over all of them."""
    sizes = {name: size for name, size in arguments.items() if name in (_TP, _PP, _CP)}
    if vllm and arguments.get("all_experts") == "True" and megatron.whole(arguments, _DP):
        sizes[_DP] = arguments[_DP]
        if sizes.get(_TP, "1") == "1":
            sizes[_EP] = arguments[_DP]
    return sizes


def _document(blob: Blob) -> Iterator[megatron.StatedSetting]:
    """The values of JSON, TOML or YAML by their paths. Raises InputError for what is none."""
    text = blob.text
    if _LIKE["toml"].search(text) and not text.lstrip().startswith("{"):
        try:
            document: Any = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(blob.name, f"is no TOML: {str(error)[:120]}") from None
    else:
        document = load_yaml(blob)
    yield from _leaves(document, ())


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[megatron.StatedSetting]:
    if isinstance(value, Mapping) and len(path) < MAX_DEPTH:
        for key, below in value.items():
            yield from _leaves(below, (*path, str(key)))
    elif path:
        yield megatron.StatedSetting(path, value, None)


def _origins(blob: Blob, places: Mapping[str, megatron.StatedSetting]) -> dict[str, Origin]:
    """Where each setting stands: the line of its word, or the first that holds the last name of its path."""
    lines = blob.text.split("\n")
    by_name: dict[str, int] = {}
    for number, line in enumerate(lines if any(place.line is None for place in places.values()) else (), start=1):
        for match in re.findall(r"[\w-]{2,60}", line[:400]):
            if (name := _NAMES.get(match.lower().replace("-", "_"), "")) in places:
                by_name.setdefault(name, number)
    origins: dict[str, Origin] = {}
    for name, place in places.items():
        number = place.line or by_name.get(name, 0)
        quote = lines[number - 1].strip()[:MAX_QUOTE] if number else ""
        origins[name] = Origin(blob.name, number or None, quote)
    return origins
