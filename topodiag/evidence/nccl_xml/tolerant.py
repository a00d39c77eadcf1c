"""Reads the tree out of a file that NCCL refuses: a prolog, a DOCTYPE, tabs, line breaks in tags, text, broken ends."""

from __future__ import annotations

from dataclasses import field

from topodiag.evidence.nccl_xml.limits import MAX_DEPTH, MAX_TAGS, RULES
from topodiag.evidence.xml_tags import XmlTag, decoded, tags
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.nccl_tree import Element

_ALLOWED = {**RULES[-1].allowed, "gpu": (*RULES[-1].allowed["gpu"], "xgmi")}


@dataclass(slots=True)
class _Open:
    tag: XmlTag
    known: bool
    children: list[Element] = field(default_factory=list)

    def closed(self) -> Element:
        return Element(self.tag.name, self.tag.attributes, tuple(self.children), self.tag.line)


def read_tolerantly(data: bytes, name: str) -> Element | None:
    """The first `system` of a file and what NCCL reads below it; None where there is none. Raises InputError for a
    file that is deeper or fuller than any machine."""
    stack: list[_Open] = []
    for tag in tags(decoded(data), name, MAX_TAGS):
        done = None
        if tag.closes:
            done = _close(stack, tag.name)
        else:
            stack.append(_Open(tag, _is_known(stack, tag.name)))
            if tag.alone:
                done = _close(stack, tag.name)
            elif len(stack) > MAX_DEPTH:
                raise InputError(name, f"nests deeper than {MAX_DEPTH} elements", line=tag.line, hint="refused")
        if done is not None:
            return done
    # The file ends before its elements do: they are taken as closed.
    while stack:
        done = _close(stack, stack[-1].tag.name)
        if done is not None:
            return done
    return None


def _is_known(stack: list[_Open], tag: str) -> bool:
    """Whether NCCL would read this element here. `system` is looked for below foreign roots too."""
    if not any(element.known for element in stack):
        return tag == "system"
    return stack[-1].known and tag in _ALLOWED.get(stack[-1].tag.name, ())


def _close(stack: list[_Open], tag: str) -> Element | None:
    """Close the nearest open element of that name with all inside it; a stray end is passed over. Gives the system."""
    if all(element.tag.name != tag for element in stack):
        return None
    while stack:
        element = stack.pop()
        if element.known:
            if not (stack and stack[-1].known):
                return element.closed()
            stack[-1].children.append(element.closed())
        if element.tag.name == tag:
            return None
    return None
