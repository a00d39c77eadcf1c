"""The document of `fleet history --format json`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from topodiag.report.documents.from_model import Of
from topodiag.report.documents.types.common import Count, Finding, Input, NotNegative, NotObserved, Tool, Version


class Failure(Struct, frozen=True, kw_only=True):
    """A finding at error level, and in how many captures of the node it stands."""

    what: str
    captures: Count


class FailingNode(Struct, frozen=True, kw_only=True):
    """A node that keeps failing: how often a failure was new, how many captures have one, the first and last day."""

    node: Annotated[str, Of("host")]
    times: Count
    captures: Count
    failures: list[Failure]
    first: str
    last: str


class RisingCounter(Struct, frozen=True, kw_only=True):
    """A counter that rose by `count` in `hours` on this part, as on `parts` of `total` parts of its kind."""

    node: Annotated[str, Of("host")]
    part: str
    counter: Annotated[str, Of("key")]
    count: Count
    hours: NotNegative
    parts: Count
    total: Count


class CommonCounter(Struct, frozen=True, kw_only=True):
    """A counter that rises on many parts."""

    counter: str
    parts: Count
    total: Count


class HistoryDocument(Struct, frozen=True, kw_only=True):
    """What a store answers. Times are Unix seconds. `compared` nodes were held against an earlier capture."""

    schema_version: Version
    tool: Tool
    inputs: list[Input]
    nodes: Annotated[Count, Of("hosts")]
    captures: Count
    watched: Count
    compared: Count
    added: Count
    first_s: float | None
    last_s: float | None
    findings: list[Finding]
    failing: list[FailingNode]
    rising: list[RisingCounter]
    common: list[CommonCounter]
    not_observed: list[NotObserved]
