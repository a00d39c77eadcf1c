"""YAML (and with it JSON) as plain values, in bounds: safe_load's types only, and an error is one line."""

from __future__ import annotations

import re
from typing import Any

from topodiag.evidence.interface import Blob
from topodiag.evidence.node_sets import short
from topodiag.model.errors import InputError

MAX_BYTES = 64 << 20
MAX_DEPTH = 40
"""Levels of brackets on one line, and columns of indentation over 8: no file of ours nests so deeply."""


def load_yaml(blob: Blob) -> Any:
    """The first document. Raises InputError for what is no YAML."""
    import yaml  # noqa: PLC0415 - only for the files that are YAML

    if len(blob.data) > MAX_BYTES:
        raise InputError(blob.name, f"is larger than {MAX_BYTES >> 20} MiB", hint="is it the right file?")
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        if _depth(blob.text) > MAX_DEPTH:
            raise InputError(blob.name, "is nested too deeply")
        made = loader(blob.text)
        try:
            return made.get_single_data()
        finally:
            made.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        problem = getattr(error, "problem", None) or "cannot be parsed"
        raise InputError(blob.name, f"is no YAML: {short(str(problem))}", line=line) from None
    except (ValueError, TypeError, OverflowError, RecursionError, AttributeError) as error:
        raise InputError(blob.name, f"is no YAML: {short(str(error))}") from None


def _depth(text: str) -> int:
    """How deep brackets nest, without looking at quotes: more than the truth, and enough to refuse a bomb."""
    depth = most = 0
    for mark in re.findall(r"[\[\]{}]|(?:- ){20,}|(?:\? ){20,}", text):
        if mark in "[{":
            depth += 1
            most = max(most, depth)
        elif mark in "]}":
            depth = max(depth - 1, 0)
        else:
            most = max(most, len(mark) // 2)
    indent = max((len(line) - len(line.lstrip(" ")) for line in text.split("\n")), default=0)
    return max(most, indent // 8)
