"""The tree of elements that NCCL works on between a topology file and its graph: changed in place, as NCCL does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from topodiag.lazy import dataclass
from topodiag.model.nccl_tree import Element
from topodiag.nccl.graph.graph import RejectedError
from topodiag.nccl.numbers import c_int


@dataclass(slots=True, eq=False)
class Branch:
    """An element of the joined tree: attributes by name (the first of a name counts), children, line in the file."""

    tag: str
    attributes: dict[str, str]
    children: list[Branch] = field(default_factory=list)
    line: int = 0
    nics: bool = False
    """Whether a net is below."""

    def required(self, name: str) -> str:
        """An attribute that NCCL cannot do without, or RejectedError in its words (xmlGetAttrStr, src/graph/xml.h)."""
        value = self.attributes.get(name)
        if value is None:
            raise RejectedError(f"Attribute {name} of node {self.tag} not found", self.line)
        return value

    def number(self, name: str) -> int:
        return c_int(self.required(name))

    def number_or(self, name: str, default: int) -> int:
        value = self.attributes.get(name)
        return default if value is None else c_int(value)

    def first(self, tag: str) -> Branch | None:
        return next((child for child in self.children if child.tag == tag), None)

    def closed(self) -> Element:
        """The element as it is by now."""
        return Element(self.tag, tuple(self.attributes.items()), tuple(child.closed() for child in self.children))

    def walk(self) -> Iterator[Branch]:
        """The element and all below it, in the order of the file."""
        stack = [self]
        while stack:
            branch = stack.pop()
            yield branch
            stack.extend(reversed(branch.children))
