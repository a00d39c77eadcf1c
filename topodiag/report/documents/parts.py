"""What every document has: the version of its schema, the program, the inputs, the findings and what was not seen."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import Struct

from topodiag.report.documents.from_model import from_model
from topodiag.report.documents.types.common import SCHEMA_VERSION, Tool
from topodiag.version import __version__

T = TypeVar("T", bound=Struct)


def document_of(shape: type[T], value: object, **given: Any) -> T:
    """A whole document of this type, read from a value of the model; `given` are keys that the value has not, or that
    hold values of the model themselves."""
    shared = {"schema_version": SCHEMA_VERSION, "tool": Tool(name="topodiag", version=__version__)}
    return from_model(shape, value, **shared | {"inputs": (), "findings": (), "not_observed": ()} | given)
