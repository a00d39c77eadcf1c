"""Tags of an XML text, one by one, without a parser that could be made to expand, fetch or grow.

Prolog, DOCTYPE, comments and CDATA are passed over; of entities only the five of XML itself and character numbers
are read, and a file that declares its own is refused. What stands in a broken tag is kept as far as it can be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from topodiag.lazy import dataclass, regex
from topodiag.model.errors import InputError

MAX_ATTRIBUTES = 64
MAX_VALUE = 65_536
"""Characters of a value: the longest real one, the affinity mask of 8,192 processors, has 2,303."""

_NEXT = regex(
    r"<(?:(?P<comment>!--)|(?P<cdata>!\[CDATA\[)|(?P<doctype>!)|(?P<pi>\?)|(?P<close>/)?(?P<name>[^\s<>/=\"']+))"
)
_ENDS = {"comment": "-->", "cdata": "]]>", "pi": "?>", "doctype": ">"}
_ATTRIBUTE = regex(
    r"[\s/]*(?P<key>[^\s<>/=\"']{1,254})"
    r"(?:\s{0,99}=\s{0,99}(?:\"(?P<double>[^\"<]*)\"|'(?P<single>[^'<]*)'|(?P<bare>(?:[^\s<>\"'/]|/(?!>))*)))?"
)
_ENTITY = regex(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
_TAG_END = regex(r"[\s/\"'=]*")


@dataclass(frozen=True, slots=True)
class XmlTag:
    """`<name attributes>`, `</name>` (`closes`), or `<name attributes/>` (`self_closing`); `line` from 1."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    line: int
    closes: bool = False
    self_closing: bool = False
    before: str = ""
    """Of a tag that closes, the text between it and the tag above."""
    start: int = 0
    """The byte of its `<`, where NCCL reads it."""

    def get(self, name: str) -> str | None:
        return next((value for key, value in self.attributes if key == name), None)


def decoded(data: bytes) -> str:
    """The text of a file: UTF-8, or UTF-16 by its mark."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace").replace("\0", "")


def tags(text: str, name: str, limit: int) -> Iterator[XmlTag]:
    """The tags in their order. Raises InputError for file `name` after `limit` tags, and where it declares entities or
    holds a value beyond any real one."""
    # What is not ahead is not looked for, or time would grow as a square.
    last = {what: text.rfind(what) for what in (*_ENDS.values(), "\n")}
    at, line, counted = 0, 1, 0
    for _ in range(limit):
        match = _NEXT.search(text, at)
        if match is None:
            return
        line += text.count("\n", counted, match.start())
        counted = match.start()
        if match["name"] is None:
            at = _passed_over(text, match, last)
            if match["doctype"] and "<!ENTITY" in text[match.start() : at]:
                raise InputError(name, "declares entities", line=line, hint="refused: no tool writes such a file")
        elif match["close"]:
            before, at = text[at : match.start()], _after_tag(text, match.end())
            yield XmlTag(match["name"], (), line, closes=True, before=_unescaped(before))
        else:
            attributes, at, self_closing = _attributes(text, match.end())
            if any(len(value) > MAX_VALUE for _, value in attributes):
                raise InputError(name, f"holds a value of more than {MAX_VALUE} characters", line=line, hint="refused")
            yield XmlTag(match["name"], attributes, line, self_closing=self_closing)
    raise InputError(name, f"holds more than {limit} tags", hint="refused: no machine has so many parts")


def _passed_over(text: str, match: re.Match[str], last: Mapping[str, int]) -> int:
    """The end of a comment, CDATA section, processing instruction or declaration; an unclosed one runs to the end of
    its line, so that what follows is still read."""

    def after(what: str, at: int) -> int:
        return text.find(what, at) + len(what) if at <= last[what] else -1

    kind = next(kind for kind in _ENDS if match[kind])
    end = after(_ENDS[kind], match.end())
    if end < 0:
        end = after("\n", match.end())
    return end if end >= 0 else len(text)


def _after_tag(text: str, at: int) -> int:
    following = text.find("<", at)
    following = following if following >= 0 else len(text)
    end = text.find(">", at, following)
    return end + 1 if end >= 0 else following


def _attributes(text: str, at: int) -> tuple[tuple[tuple[str, str], ...], int, bool]:
    """The attributes of a tag whose name ends at `at`, the place after the tag, and whether it closes itself."""
    attributes: dict[str, str] = {}
    for _ in range(MAX_ATTRIBUTES):
        match = _ATTRIBUTE.match(text, at)
        if match is None:
            break
        at = match.end()
        value = next((match[kind] for kind in ("double", "single", "bare") if match[kind] is not None), "")
        attributes.setdefault(match["key"], _unescaped(value))
    rest = _TAG_END.match(text, at)
    end = rest.end() if rest else at
    closed_tag = "/" in text[at:end]
    if end < len(text) and text[end] == ">":
        end += 1
    else:
        end = _after_tag(text, end)
    return tuple(attributes.items()), end, closed_tag


def _unescaped(value: str) -> str:
    if "&" not in value:
        return value
    import html  # noqa: PLC0415 - two thousand names of signs, of which few texts use one

    return _ENTITY.sub(lambda match: html.unescape(match[0]), value)
