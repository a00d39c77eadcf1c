"""The arguments that Megatron-LM and its kin print at their start: `  tensor_model_parallel_size ...... 8`.

SOURCE: megatron/training/arguments.py, _print_args; the names are the same in Megatron-DeepSpeed and GPT-NeoX.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from topodiag.evidence.layout.job_settings import DEFAULTS, settings_of
from topodiag.evidence.signatures.literals import Finder, finder, lines_with
from topodiag.lazy import regex
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.model.training import JobSettings

LOOKS = regex(rb"\b(?:tensor_model_parallel_size|num_layers|hidden_size) \.{3,60} ?\d")
_ARGUMENT = regex(r"(?:^|[\s:\]])([a-z][a-z0-9_]{1,60}) \.{2,60} ?([A-Za-z0-9._+-]{1,40})")
_FORMER = {"model_parallel_size": "tensor_model_parallel_size", "pipe_parallel_size": "pipeline_model_parallel_size"}
"""What GPT-NeoX calls the same."""
_MOST_NAMES, _MOST_LINE = 4000, 4000


@cache
def _dots() -> Finder:
    return finder([b" .."])


def read_arguments(text: str | bytes, source: str) -> JobSettings | None:
    """What the first dump of arguments in a text says; None where there is none. An argument that is printed with two
    values is not known. Nothing is said of what is trained where the dump leaves open how large the model is."""
    found: dict[str, str] = {}
    unsure: set[str] = set()
    origins: dict[str, Origin] = {}
    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    for number, begin, end, _ in lines_with(_dots(), data):
        line = data[begin : min(end, begin + _MOST_LINE)].decode("utf-8", "replace")
        match = _ARGUMENT.search(line[:400]) if " .." in line[:200] else None
        if match is None:
            continue
        if len(found) > _MOST_NAMES:
            break
        name, value = match[1], match[2]
        if found.setdefault(name, value) != value:
            unsure.add(name)
        origins.setdefault(name, Origin(source, number, line.strip()[:MAX_QUOTE]))
    said = {name: value for name, value in found.items() if name not in unsure}
    for former, name in _FORMER.items():
        if former in said:
            said.setdefault(name, said[former])
            origins.setdefault(name, origins[former])
    said.pop("data_parallel_size", None)  # what the others leave: an elastic job changes it
    read = settings_of(DEFAULTS | said, source, origins)
    if not read.is_sized or "seq" not in read.options:
        read = replace(read, options={})
    return read if read.sizes or read.options else None
