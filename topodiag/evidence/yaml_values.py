"""YAML (and with it JSON) as plain values, in bounds: the safe loader's types only, and an error is one line."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from topodiag.evidence.cluster.node_sets import short
from topodiag.evidence.interface import Blob
from topodiag.model.errors import InputError

MAX_BYTES = 64 << 20
MAX_DEPTH = 40
"""Lists in lists: no file of ours nests so deeply, and the parser's own stack is not endless."""


def load_yaml(blob: Blob) -> Any:
    """The first document. Raises InputError for what is no YAML."""
    import yaml  # noqa: PLC0415 - only for the files that are YAML

    if len(blob.data) > MAX_BYTES:
        raise InputError(blob.name, f"is larger than {MAX_BYTES >> 20} MiB", hint="is it the right file?")
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = blob.text
    try:
        if text.lstrip()[:1] in ("{", "["):
            with suppress(ValueError):  # flow YAML, or nothing at all: the other parser says which
                return json.loads(text)
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise InputError(blob.name, "is nested too deeply")
        return next(iter(yaml.load_all(text, Loader=loader)), None)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        problem = getattr(error, "problem", None) or "cannot be parsed"
        raise InputError(blob.name, f"is no YAML: {short(str(problem))}", line=line) from None
    except RecursionError:
        raise InputError(blob.name, "is nested too deeply") from None
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        raise InputError(blob.name, f"is no YAML: {short(str(error))}") from None


def word(value: object) -> str:
    """A value for an error message. What is no scalar is not written out: aliases can make it endless."""
    return short(str(value)) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
