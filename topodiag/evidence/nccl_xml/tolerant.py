"""Reads the tree out of a file that NCCL refuses: a prolog, a DOCTYPE, tabs, line breaks in tags, text, broken ends.

Nothing is expanded and nothing is fetched: of entities only the five of XML itself and character numbers are read, and
a DOCTYPE is passed over whole. What stands in a broken tag is kept as far as it can be read.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

from topodiag.evidence.nccl_xml.limits import MAX_DEPTH, MAX_TAGS, RULES
from topodiag.model.errors import InputError
from topodiag.model.nccl_tree import Element

_ALLOWED = RULES[-1].allowed
_NEXT = re.compile(
    r"<(?:(?P<comment>!--)|(?P<cdata>!\[CDATA\[)|(?P<doctype>!)|(?P<pi>\?)|(?P<close>/)?(?P<name>[^\s<>/=\"']+))"
)
_ATTRIBUTE = re.compile(
    r"""[\s/]*(?P<key>[^\s<>/="']{1,254})(?:\s{0,99}=\s{0,99}(?:"(?P<double>[^"<]*)"|'(?P<single>[^'<]*)'|(?P<bare>(?:[^\s<>"'/]|/(?!>))*)))?"""
)
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
_TAG_END = re.compile(r"[\s/\"'=]*")
MAX_ATTRIBUTES = 64


@dataclass(slots=True)
class _Open:
    tag: str
    attributes: tuple[tuple[str, str], ...]
    line: int
    known: bool
    children: list[Element] = field(default_factory=list)

    def closed(self) -> Element:
        return Element(self.tag, self.attributes, tuple(self.children), self.line)


def read_tolerantly(data: bytes, name: str) -> Element | None:
    """The first `system` of a file and what NCCL reads below it; None where there is none. Raises InputError for a
    file that is deeper or fuller than any machine."""
    text = _decoded(data)
    stack: list[_Open] = []
    done: Element | None = None
    at, line, counted, tags = 0, 1, 0, 0
    while done is None and (match := _NEXT.search(text, at)) is not None:
        tags += 1
        if tags > MAX_TAGS:
            raise InputError(name, f"holds more than {MAX_TAGS} tags", hint="refused: is it a topology file?")
        line += text.count("\n", counted, match.start())
        counted = match.start()
        if match["name"] is None:
            at = _passed_over(text, match)
        elif match["close"]:
            at = _after_tag(text, match.end())
            done = _close(stack, match["name"])
        else:
            attributes, at, single = _attributes(text, match.end())
            element = _Open(match["name"], attributes, line, _is_known(stack, match["name"]))
            stack.append(element)
            if single:
                done = _close(stack, element.tag)
            elif len(stack) > MAX_DEPTH:
                raise InputError(name, f"nests deeper than {MAX_DEPTH} elements", line=line, hint="refused")
    while done is None and stack:
        # The file ends before its elements do: they are taken as closed.
        done = _close(stack, stack[-1].tag)
    return done


def _decoded(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace").replace("\0", "")


def _passed_over(text: str, match: re.Match[str]) -> int:
    """The end of a comment, CDATA section, processing instruction or declaration; an unclosed one runs to the end of
    its line, so that what follows is still read."""
    ends = {"comment": "-->", "cdata": "]]>", "pi": "?>"}
    kind = next(kind for kind in ("comment", "cdata", "doctype", "pi") if match[kind])
    if kind == "doctype":
        end = _declaration_end(text, match.end())
    else:
        end = text.find(ends[kind], match.end())
        end = end + len(ends[kind]) if end >= 0 else -1
    if end >= 0:
        return end
    newline = text.find("\n", match.end())
    return newline if newline >= 0 else len(text)


def _declaration_end(text: str, at: int) -> int:
    """After the `>` of a DOCTYPE, past its internal subset."""
    end, subset = text.find(">", at), text.find("[", at)
    if 0 <= subset < end:
        close = text.find("]", subset)
        end = text.find(">", close) if close >= 0 else -1
    return end + 1 if end >= 0 else -1


def _is_known(stack: list[_Open], tag: str) -> bool:
    """Whether NCCL would read this element here. `system` is looked for below foreign roots too."""
    inside = any(element.known for element in stack)
    if not inside:
        return tag == "system"
    return stack[-1].known and tag in _ALLOWED.get(stack[-1].tag, ())


def _close(stack: list[_Open], tag: str) -> Element | None:
    """Close the nearest open element of that name with all inside it; a stray end is passed over. Gives the system."""
    if all(element.tag != tag for element in stack):
        return None
    while stack:
        element = stack.pop()
        if element.known:
            if not (stack and stack[-1].known):
                return element.closed()
            stack[-1].children.append(element.closed())
        if element.tag == tag:
            return None
    return None


def _after_tag(text: str, at: int) -> int:
    end, following = text.find(">", at), text.find("<", at)
    if end < 0 or 0 <= following < end:
        return following if following >= 0 else len(text)
    return end + 1


def _attributes(text: str, at: int) -> tuple[tuple[tuple[str, str], ...], int, bool]:
    """The attributes of a tag whose name ends at `at`, the place after the tag, and whether it closes itself."""
    made: dict[str, str] = {}
    for _ in range(MAX_ATTRIBUTES):
        match = _ATTRIBUTE.match(text, at)
        if match is None:
            break
        at = match.end()
        value = next((match[kind] for kind in ("double", "single", "bare") if match[kind] is not None), "")
        made.setdefault(match["key"], _unescaped(value))
    rest = _TAG_END.match(text, at)
    end = rest.end() if rest else at
    slash = "/" in text[at:end]
    if end < len(text) and text[end] == ">":
        end += 1
    else:
        end = _after_tag(text, end)
    return tuple(made.items()), end, slash


def _unescaped(value: str) -> str:
    return _ENTITY.sub(lambda match: html.unescape(match[0]), value) if "&" in value else value
