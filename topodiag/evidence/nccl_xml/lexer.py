r"""NCCL's own lexer, character by character as src/graph/xml.cc has it (xmlGetNode, xmlGetToken, xmlGetValue).

It is no XML parser: a TAB is part of a name, exactly one blank stands before each attribute, there is no prolog, no
entity and no text. The words of a refusal are those of NCCL's WARN line, with control characters spelt `\n`, `\t`.

What NCCL's XML parser accepts, by version: src/graph/xml.cc, xml.h and topo.h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from topodiag.evidence.xml_tags import XmlTag
from topodiag.lazy import dataclass, regex
from topodiag.model.errors import InputError
from topodiag.model.nccl_versions import KNOWN, MAX_CHILDREN, MAX_ELEMENTS, Feature, has
from topodiag.model.provenance import MAX_QUOTE

MAX_STR_LEN = 255
"""xml.h: a name or value that has not ended at its 255th character is too long (the end itself counts for names of
elements and for values)."""
MAX_ATTR_COUNT = 16
TOPO_XML_VERSION = 1
RCCL_XML_VERSION = 2
RCCL_MINOR = 21
"""The RCCL whose rules are known: 2.21.5, which follows NCCL 2.21."""

MAX_FILE_BYTES = 8 * 2**20
"""A dump of a 72-GPU clique, the largest that NCCL writes, is under 5 MB."""
MAX_TOKENS = 50_000
"""Names of elements and attributes that the lexer reads: 1024 elements of 17 attributes are 18,000."""
MAX_TAGS = 50_000
"""Tags that the tolerant reader reads: the fused dump of 72 ranks, 256 elements each, has 37,000."""
MAX_DEPTH = 256
"""NCCL takes 255 known elements, so no deeper a tree."""

MAX_NOTES = 1000


@dataclass(frozen=True, slots=True)
class Rules:
    """One parser: the minor versions `since`..`until` that share it, and its limits."""

    since: int
    until: int
    max_elements: int
    max_children: int
    children_checked: bool
    """Else NCCL writes past the table of children without a word."""
    quotes_kept: bool
    """The quote that opens a value closes it and its length is checked; else only `"` closes."""
    allowed: Mapping[str, tuple[str, ...]]
    """The elements that are read below an element; others are passed over with all they hold."""
    version: int = TOPO_XML_VERSION
    """What `system` must say."""


_ALLOWED = {
    "": ("system",), "system": ("cpu",), "cpu": ("pci", "nic"), "pci": ("pci", "gpu", "nic"), "gpu": ("nvlink",),
    "nic": ("net",),
}  # fmt: skip
"""What the oldest versions read."""


def _limits(minor: int) -> tuple[int, int, bool, bool, Mapping[str, tuple[str, ...]]]:
    """The limits of one version, in the order of Rules."""
    links = {"gpu": ("nvlink", "c2c")} if has(minor, Feature.C2C_LINKS) else {}
    switches = {"pci": ("pci", "gpu", "nic", "pcilink")} if has(minor, Feature.PCI_LINKS) else {}
    checked, kept = has(minor, Feature.CHILDREN_CHECKED), has(minor, Feature.QUOTES_KEPT)
    return MAX_ELEMENTS[minor], MAX_CHILDREN[minor], checked, kept, {**_ALLOWED, **links, **switches}


def _parsers() -> Iterator[Rules]:
    for limits, versions in groupby(KNOWN, _limits):
        minors = list(versions)
        yield Rules(minors[0], minors[-1], *limits)


RULES = tuple(_parsers())
"""One parser for each run of versions that read alike, the oldest first."""

RCCL_RULES = Rules(
    RCCL_MINOR, RCCL_MINOR, max_elements=8192, max_children=512, children_checked=True, quotes_kept=False,
    allowed={**_ALLOWED, "gpu": ("xgmi",)}, version=RCCL_XML_VERSION,
)  # fmt: skip
"""RCCL 2.21.5: NCCL's reader of that time with limits for partitioned GPUs (src/graph/xml.h, topo.h)."""


_LAST = MAX_STR_LEN - 1
_NAME = regex(rb"[^= >/\n\r]{0,255}")
_BETWEEN = regex(rb"[ \n\r]*")
EXTRA_ATTRIBUTES = f"XML Parse : Ignoring extra attributes (max {MAX_ATTR_COUNT})"


class Remark(NamedTuple):
    """What NCCL's parser says, or passes over without a word: the rule, the words and the byte at which it stands."""

    rule: str
    words: str
    offset: int


class RefusedError(Exception):
    """NCCL's parser stops here."""

    def __init__(self, rule: str, words: str, offset: int) -> None:
        super().__init__(words)
        self.remark = Remark(rule, words, offset)


class Places:
    """Bytes into lines and columns, both from 1, and the text of a line. Asked in rising order it counts once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._counted, self._line = 0, 1

    def line(self, offset: int) -> int:
        if offset < self._counted:
            self._counted, self._line = 0, 1
        self._line += self._data.count(b"\n", self._counted, offset)
        self._counted = offset
        return self._line

    def of(self, offset: int) -> tuple[int, int, str]:
        """Line, column and text."""
        start = self._data.rfind(b"\n", 0, offset) + 1
        text = self._data[start : start + 4 * MAX_QUOTE].partition(b"\n")[0]
        return self.line(offset), offset - start + 1, shown(text.strip()[:MAX_QUOTE])


def shown(raw: bytes) -> str:
    """Bytes as a person reads the C string that they are, in one line."""
    return printable(text_of(raw))


def printable(text: str) -> str:
    """A text with its control characters spelt out."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def text_of(raw: bytes) -> str:
    """Bytes as the C string that NCCL sees, as text."""
    return raw.partition(b"\0")[0].decode("utf-8", errors="backslashreplace")


class Lexer:
    """Gives the tags of a file in turn, as NCCL holds them: at most 16 attributes, those without a name left out.
    `note` hears what NCCL passes over."""

    def __init__(self, data: bytes, name: str, rules: Rules, note: Callable[[Remark], None]) -> None:
        self._data = data
        self._file = name
        self._rules = rules
        self._note = note
        self._at = 0
        self._tokens = 0
        self._places = Places(data)

    @property
    def offset(self) -> int:
        """The byte where the next tag starts, or the file ends."""
        return _BETWEEN.match(self._data, self._at).end()  # type: ignore[union-attr]

    def tag(self) -> XmlTag | None:
        """The next tag that is no comment; None at the end of the file. Raises RefusedError, and InputError for a
        file beyond any real size."""
        while True:
            start = self.offset
            if start == len(self._data):
                self._at = start
                return None
            if self._data[start] != ord("<"):
                raise RefusedError(_why_text(self._data, start), self._expected("error : expecting '<'", start), start)
            self._at = start + 1
            name, _, last = self._token(with_value=False)
            if not name.startswith(b"!--"):
                return self._closing_tag(start, name, last)
            self._skip_comment(start)

    def _closing_tag(self, start: int, raw: bytes, last: int) -> XmlTag:
        line = self._places.line(start)
        if not text_of(raw) and last == ord("/"):
            raw, _, last = self._token(with_value=False)
            name = text_of(raw)
            if last != ord(">"):
                words = f"XML Parse error : unexpected trailing {_char(last)} in closing tag {shown(raw)}"
                raise RefusedError(_why_char(last, "closing-tag"), words, self._at - 1)
            return XmlTag(name, (), line, closes=True, start=start)
        attributes: list[tuple[str, str]] = []
        count = 0
        while last == ord(" "):
            at = self._at
            key, value, last = self._token(with_value=True)
            count += 1
            if count == MAX_ATTR_COUNT + 1:
                self._note(Remark("extra-attributes", EXTRA_ATTRIBUTES, at))
            if count > MAX_ATTR_COUNT:
                continue
            if text_of(key):
                attributes.append((text_of(key), text_of(value)))
            else:
                why = "an attribute without a name: more than one blank stands here"
                self._note(Remark("blank-attribute", why, at))
        is_alone = last == ord("/")
        if is_alone:
            _, _, last = self._token(with_value=False)
        if last != ord(">"):
            where = self._at - 1
            raise RefusedError(_why_char(last, "tag-end"), self._expected(": expected >", where), where)
        return XmlTag(text_of(raw), tuple(attributes), line, self_closing=is_alone, start=start)

    def _token(self, *, with_value: bool) -> tuple[bytes, bytes, int]:
        """A name, its value, and the character that follows."""
        self._tokens += 1
        if self._tokens > MAX_TOKENS:
            raise InputError(self._file, f"holds more than {MAX_TOKENS} names", hint="refused: is it a topology file?")
        begin = self._at
        end = _NAME.match(self._data, begin).end()  # type: ignore[union-attr]
        length = end - begin
        if end >= len(self._data) and length <= _LAST:
            raise self._ended()
        raw = self._data[begin:end]
        equals = length <= _LAST and self._data[end] == ord("=")
        if length > _LAST or (length == _LAST and not equals):
            words = f"Error : name {shown(raw[:_LAST])} too long (max {MAX_STR_LEN})"
            raise RefusedError("too-long", words, begin)
        self._at = end + 1
        if not equals:
            return raw, b"", self._data[end]
        if not with_value:
            words = f"XML Parse : Unexpected value with name {shown(raw)}"
            raise RefusedError("tab" if b"\t" in raw else "value-without-name", words, end)
        value = self._value()
        if self._at >= len(self._data):
            raise self._ended()
        last = self._data[self._at]
        self._at += 1
        return raw, value, last

    def _value(self) -> bytes:
        begin = self._at + 1
        if begin > len(self._data):
            raise self._ended()
        quote = self._data[self._at : begin]
        if quote not in (b'"', b"'"):
            raise RefusedError("quote", "XML Parse : Expected (double) quote.", self._at)
        if self._rules.quotes_kept:
            end = self._data.find(quote, begin, begin + _LAST)
            if end < 0 and len(self._data) - begin > _LAST:
                words = f"Error : value {shown(self._data[begin : begin + _LAST])} too long (max {MAX_STR_LEN})"
                raise RefusedError("too-long", words, begin)
        else:
            end = self._data.find(b'"', begin)
            if end - begin > MAX_STR_LEN:
                # Unchecked: the value runs into the memory of the next attribute, which ends it.
                why = f"a value of {end - begin} characters runs into the next attribute"
                self._note(Remark("long-value", why, begin))
        if end < 0:
            raise self._ended()
        self._at = end + 1
        return self._data[begin:end]

    def _skip_comment(self, start: int) -> None:
        # The tail of the name that was read counts as part of the end: `<!---->` is whole.
        end = self._data.find(b"-->", max(start + 4, self._at - 3))
        if end < 0:
            raise RefusedError("comment", "XML Parse error : unterminated comment", start)
        self._at = end + 3

    def _ended(self) -> RefusedError:
        return RefusedError("end", "XML Parse : Unexpected EOF", len(self._data))

    def _expected(self, words: str, offset: int) -> str:
        return f"XML Parse {words}, got '{_char(self._data[offset])}'"


def _char(byte: int) -> str:
    return shown(bytes((byte,)))


def _why_char(byte: int, otherwise: str) -> str:
    if byte in b"\r\n":
        return "newline-in-tag"
    return {ord("\t"): "tab", ord("?"): "prolog"}.get(byte, otherwise)


def _why_text(data: bytes, at: int) -> str:
    if data.startswith(b"\xef\xbb\xbf", at):
        return "byte-order-mark"
    return "tab" if data[at] == ord("\t") else "text"
