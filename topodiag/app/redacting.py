"""`--redact` on a report: names, addresses and serials replaced by the tokens that the collector gives them.

The same key gives the same token for the same thing, in bundles and in reports. Quotes of evidence and paths are
redacted as the collector redacts its files: each word that is not known to be harmless is replaced. Sentences of ours
keep their words and lose the names, addresses and serials in them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from topodiag.model.result import Result
from topodiag_probes.redact import Redactor, read_key

T = TypeVar("T")

_QUOTED = frozenset({"text", "command", "source", "path", "file", "files"})
"""Fields that hold what stood in the evidence, or where it stood; `text` of a price or a cost is a sentence of ours."""
_OURS = frozenset({"Price", "Cost", "Conflict"})
_KEPT = frozenset({"sha256", "id", "check", "kind"})
_OF_BUNDLE = re.compile(r"(?:json|trees|commands|files|text)/[a-z0-9-]{1,60}\.(?:json|tree|txt)\Z")
_NODE_SET = re.compile(r"[A-Za-z0-9._-]{1,200}\[[0-9,-]{1,2000}\][A-Za-z0-9._-]{0,200}")


def redacted(result: Result, key: bytes | None = None) -> Result:
    """The result as others may read it. `key` None: the one of TOPODIAG_REDACT_KEY, else one that is forgotten."""
    redactor = Redactor(key if key is not None else read_key(None, os.environ))
    strings = list(dict.fromkeys(_strings(result)))
    hosts = sorted(_host_names(result))
    lists = dict.fromkeys(found[0] for text in strings for found in _NODE_SET.finditer(text[:10_000]))
    redactor.learn(hosts, [each for each in lists if _stem(each, hosts)], strings)
    return _Walk(redactor).value(result, "", "")


def _stem(expression: str, hosts: list[str]) -> bool:
    """Whether a node set is of hosts that are known."""
    head = expression.partition("[")[0]
    return any(host.startswith(head) for host in hosts)


def _host_names(result: Result) -> set[str]:
    names = {node.host for node in result.nodes}
    names |= {name for host in result.identity.hosts for name in (host.name, *host.aliases)}
    names |= {host for job in result.jobs for host in job.hosts}
    names |= {host for each in result.benchmarks for host in each.run.hosts}
    names |= {host for finding in result.findings for host in finding.where.nodes}
    return {name for name in names if name}


def _strings(value: Any) -> Iterator[str]:
    """Every text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Enum):
        return
    elif is_dataclass(value):
        for field in fields(value):
            yield from _strings(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _strings(name)
            yield from _strings(each)
    elif isinstance(value, (tuple, list, frozenset, set)):
        for each in value:
            yield from _strings(each)


class _Walk:
    """Makes a copy of a value with its texts replaced; what has none stays the very object."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._known: dict[tuple[bool, str], str] = {}

    def value(self, value: T, owner: str, name: str) -> T:
        """`owner` and `name` say in which field of which class the value stands."""
        made: Any = value
        if isinstance(value, str) and not isinstance(value, Enum):
            made = self._text(value, owner, name)
        elif is_dataclass(value) and not isinstance(value, type):
            made = self._fields(value)
        elif isinstance(value, Mapping):
            made = {self.value(key, owner, "key"): self.value(each, owner, name) for key, each in value.items()}
        elif isinstance(value, (tuple, list, frozenset)):
            made = type(value)(self.value(each, owner, name) for each in value)
        return made  # type: ignore[no-any-return]

    def _fields(self, value: Any) -> Any:
        kind = type(value).__name__
        changed = {}
        for field in fields(value):
            if field.name in _KEPT and kind != "Host":
                continue
            old = getattr(value, field.name)
            new = self.value(old, kind, field.name)
            if new is not old and new != old:
                changed[field.name] = new
        return replace(value, **changed) if changed else value

    def _text(self, text: str, owner: str, name: str) -> str:
        if not text:
            return text
        quoted = name in _QUOTED and owner not in _OURS
        known = self._known.get((quoted, text))
        if known is None:
            known = self._quoted(text) if quoted else self._redactor.prose(text)
            self._known[quoted, text] = known
        return known

    def _quoted(self, text: str) -> str:
        # The collector named the files of a bundle, and redacted those names itself where they hold one.
        return self._redactor.prose(text) if _OF_BUNDLE.match(text) else self._redactor.text(text)


__all__ = ["redacted"]
