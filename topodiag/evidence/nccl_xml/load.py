"""NCCL's loader (xmlLoadSub and the handlers of src/graph/xml.cc): tags into the tree, under one version's rules."""

from __future__ import annotations

from dataclasses import field

from topodiag.evidence.nccl_xml.lexer import MAX_DEPTH, MAX_NOTES, Lexer, RefusedError, Remark, Rules, printable
from topodiag.evidence.xml_tags import XmlTag
from topodiag.lazy import dataclass, regex
from topodiag.model.errors import InputError
from topodiag.model.nccl_tree import Element

_STRTOL = regex(r"[ \t\n\v\f\r]*([+-]?)(?:0[xX]([0-9a-fA-F]{1,64})|0([0-7]{0,64})|([1-9][0-9]{0,64}))")


@dataclass(slots=True)
class VersionReading:
    """One version's reading: the first `system`, what was passed over, and the refusal if there was one."""

    tree: Element | None = None
    notes: list[Remark] = field(default_factory=list)
    refused: Remark | None = None

    def note(self, remark: Remark) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes.append(remark)


@dataclass(slots=True)
class OpenElement:
    """An element that is open. Of one that is passed over only the nesting is kept: NCCL reads all it holds into the
    same place, name included, so that any closing tag closes it."""

    tag: XmlTag
    known: bool
    allowed: tuple[str, ...] = ()
    children: list[Element] = field(default_factory=list)

    def closed(self) -> Element:
        return Element(self.tag.name, self.tag.attributes, tuple(self.children), self.tag.line)


def c_int(text: str) -> int:
    """What `(int) strtol(text, NULL, 0)` makes of a text; 0 where it holds no number."""
    match = _STRTOL.match(text)
    if match is None:
        return 0
    sign, hexadecimal, octal, decimal = match.groups()
    value = int(hexadecimal, 16) if hexadecimal else int(decimal) if decimal else int(octal or "0", 8)
    value = max(-(2**63), min(2**63 - 1, -value if sign == "-" else value)) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def load(data: bytes, name: str, rules: Rules) -> VersionReading:
    """Read a file as the parser of `rules` does. Raises InputError for a file beyond any real size."""
    loaded = VersionReading()
    lexer = Lexer(data, name, rules, loaded.note)
    try:
        _load(lexer, name, rules, loaded)
    except RefusedError as refused:
        loaded.refused = refused.remark
    return loaded


def _load(lexer: Lexer, name: str, rules: Rules, loaded: VersionReading) -> None:
    stack: list[OpenElement] = []
    elements = 0
    while True:
        if elements == rules.max_elements:
            # Asked before every tag, closing ones too: the last element that fits is never closed.
            words = f"Error : XML parser is limited to {rules.max_elements} nodes"
            raise RefusedError("too-many-elements", words, lexer.offset)
        tag = lexer.tag()
        head = stack[-1] if stack else None
        if tag is None:
            if head is None:
                return
            words = f"XML Parse : unterminated {printable(head.tag.name) if head.known else ''}".rstrip()
            # `<!DOCTYPE system>` opens an element that nothing closes.
            rule = "prolog" if head.tag.name.startswith("!") else "unterminated"
            raise RefusedError(rule, words, head.tag.start)
        if head is not None and tag.closes:
            if head.known and tag.name != head.tag.name:
                words = f"XML Mismatch : {printable(head.tag.name)} / {printable(tag.name)}"
                raise RefusedError("mismatch", words, tag.start)
            _close(stack, loaded)
            continue
        allowed = head.allowed if head is not None else rules.allowed[""]
        known = tag.name in allowed
        if known:
            if head is not None:
                _check_children(head, tag, rules)
            elements += 1
            if tag.name == "system":
                _check_version(tag, rules.version)
        elif allowed:
            loaded.note(Remark("ignored-element", f"Ignoring element {printable(tag.name)}", tag.start))
        below = rules.allowed.get(tag.name, ()) if known else ()
        stack.append(OpenElement(tag, known, below))
        if tag.self_closing:
            _close(stack, loaded)
        elif len(stack) > MAX_DEPTH:
            raise InputError(name, f"nests deeper than {MAX_DEPTH} elements", line=tag.line, hint="refused")


def _close(stack: list[OpenElement], loaded: VersionReading) -> None:
    element = stack.pop()
    if not element.known:
        return
    if stack:
        stack[-1].children.append(element.closed())
    elif loaded.tree is None:
        loaded.tree = element.closed()
    else:
        loaded.note(Remark("second-system", "only the first system is used", element.tag.start))


def _check_children(head: OpenElement, tag: XmlTag, rules: Rules) -> None:
    if len(head.children) < rules.max_children:
        return
    if rules.children_checked:
        words = f"Error : XML parser is limited to {rules.max_children} subnodes"
    else:
        words = f"(no message: it writes past its table of {rules.max_children} children and crashes)"
    raise RefusedError("too-many-children", words, tag.start)


def _check_version(tag: XmlTag, needed: int) -> None:
    text = tag.get("version")
    if text is None:
        raise RefusedError("version", "Attribute version of node system not found", tag.start)
    if c_int(text) != needed:
        words = f"XML Topology has wrong version {c_int(text)}, {needed} needed"
        raise RefusedError("version", words, tag.start)
