"""The page of a command: the sheet of what it shows, and the sheet as a document. Every text passes through
`words.text.clean` and is then escaped.

Nothing is loaded: the policy in the head forbids every request, and allows the one script by its hash. The same sheet
gives the same bytes. The page is also the data: what `--format json` prints stands in it, packed. Of very many nodes it
keeps what was found and leaves out what repeats: facts, then outcomes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from topodiag.draw.svg import PAGE_STYLE
from topodiag.lazy import dataclass, regex
from topodiag.model.result import Result
from topodiag.report.documents.from_model import Document, plain
from topodiag.report.findings import cost_words, draw_findings
from topodiag.report.formats.json import document
from topodiag.report.gaps import draw_gaps, gaps_of
from topodiag.report.html.interface import Extras, Section, Sheet, markup, quotes
from topodiag.report.html.sections.terminal import hued
from topodiag.report.html.sections.verdict import title_of
from topodiag.report.interface import Style
from topodiag.report.page import Draw
from topodiag.report.places import Places
from topodiag.report.text import Page
from topodiag.report.words import KINDS, SIGNS
from topodiag.version import __version__
from topodiag.words.own_data import own_data, own_text
from topodiag.words.text import clean

LONGEST = 4000
"""Characters of one text that are shown: quotes of evidence are cut shorter where they are read."""
_PERCENT = regex(r"(?<=[0-9]) %")
_DIGEST = regex(r"\b([0-9a-f]{32})([0-9a-f]{32})\b")
NAME = 24
"""Characters of a name that stays on one line of a table."""
PLAIN_BYTES = 16_384
"""A document up to this size stands in the page as it is; a greater one is packed."""
OUTCOMES_KEPT = 20_000
FINDINGS_KEPT = 5_000
INPUTS_KEPT = 5_000
_MARKS = {"error": "error", "warning": "warning", "doubtful": "warning", "ok": "ok"}
"""How a page marks the cells of a hue."""
_UNSAFE = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}

WIDE = 110
"""Columns of the terminal's text on the page."""
NODES_WITH_FACTS = 64
"""More nodes than these have no facts in the page: each has some 100 kB of them, and the page shows kinds of nodes."""


def result_sheet(command: str, result: Result, draw: Draw, extras: Extras | None = None) -> Sheet:
    """The sheet of a command whose answer is a result."""
    page = Page(Style(width=WIDE, names=Places(result).sent), on_screen=False)
    if len(result.nodes) <= NODES_WITH_FACTS:
        draw(page, result)
        return Sheet(command, result, page, document(result), extras or Extras())
    light = replace(result, nodes=(), not_observed=tuple(gaps_of(result)))
    draw_findings(page, result.findings, several_nodes=True)
    draw_gaps(page, light)
    return Sheet(command, result, page, document(light), extras or Extras(), lacks="the facts of the nodes")


def drawn_sheet(
    command: str, draw: Callable[[Page], None], dumped: Document | None, result: Result, extras: Extras | None = None
) -> Sheet:
    """The sheet of a command that draws its answer; `result` holds its findings, nodes and inputs."""
    page = Page(Style(width=WIDE), on_screen=False)
    draw(page)
    page.repeat_answers()
    return Sheet(command, result, page, dumped, extras or Extras(), leading=True)


def html_of(sheet: Sheet) -> str:
    """The whole document as text."""
    style, script = _template("page.css"), _template("page.js")
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    sent = Places(sheet.result).sent
    return sent(
        environment()
        .get_template("page.html")
        .render(
            title=title_of(sheet),
            command=sheet.command,
            version=__version__,
            policy=markup(policy),
            style=markup(f"{style}\n{PAGE_STYLE}"),
            script=markup(script),
            sections=list(sections_of(sheet)),
            data=_data_block(sheet, sent),
        )
    )


@dataclass(frozen=True, slots=True)
class Data:
    """`text` as it stands in the page, `packed` whether it is gzip in base64, `bytes` the size of the JSON, `lacks`
    what was left out in words."""

    text: Markup
    packed: bool
    bytes: int
    lacks: str


def _data_block(sheet: Sheet, shown: Callable[[str], str] = str) -> Data | None:
    """The document of a sheet as it is embedded, `shown` of its text; None where its command prints no JSON."""
    if sheet.document is None:
        return None
    document, lacks = _lighter(plain(sheet.document), sheet.lacks)
    text = shown(json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":")))
    if len(text) <= PLAIN_BYTES:
        return Data(markup(text.translate(_UNSAFE)), packed=False, bytes=len(text), lacks=lacks)
    packed = b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
    return Data(markup(packed), packed=True, bytes=len(text), lacks=lacks)


def _lighter(document: dict[str, Any], lacking: str) -> tuple[dict[str, Any], str]:
    """The document without what would make the page too heavy to send, and what that is."""
    lacks = [lacking] if lacking else []
    for key, most in (("outcomes", OUTCOMES_KEPT), ("findings", FINDINGS_KEPT), ("inputs", INPUTS_KEPT)):
        listed = document.get(key)
        if isinstance(listed, list) and len(listed) > most:
            document = {**document, key: listed[:most]}
            lacks.append(f"{len(listed) - most} of {len(listed)} {key}")
    return document, ", ".join(lacks)


ORDER: Mapping[str, str] = own_data("report/html/sections")["labels"]
"""Sections with their words in the navigation."""


def sections_of(sheet: Sheet) -> Iterator[Section]:
    """The sections that have something to say."""
    for name, label in ORDER.items():
        section: Section | None = import_module(f"topodiag.report.html.sections.{name}").section(sheet)
        if section is not None:
            yield replace(section, label=label)


@cache
def _template(name: str) -> str:
    return own_text(f"report/html/templates/{name}")


@cache
def environment() -> Environment:
    """The templates: escaping is on, a value that is missing is an error, foreign text is made visible."""
    built = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    built.filters.update(anchor=_anchor, names=_names, own=markup, pieces=pieces, typed=_typed)
    built.filters.update(word=KINDS.get, mark=_MARKS.get, sign=SIGNS.get, cost=cost_words, quotes=quotes, hued=hued)
    built.tests.update(command=_is_command, name=_is_name)
    return built


def visible(value: Any) -> Any:
    """A text with what would steer or hide as a visible mark; numbers and our own markup as they are."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _PERCENT.sub("\u00a0%", clean(value, limit=LONGEST))


def _anchor(text: str) -> str:
    """A text as part of an id."""
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in text)


def _names(text: str) -> Markup:
    """Text with sets of nodes in it, which may break a line behind a comma and not inside a name; a checksum breaks in
    its middle."""
    return markup(_DIGEST.sub(r"\1<wbr>\2", str(escape(visible(text))).replace(",", ",<wbr>")))


def _typed(text: str) -> Markup:
    """Words to be typed, which may break a line between them and not at the hyphens of a name or an option."""
    words = str(escape(visible(text))).split(" ")
    return markup(" ".join(f'<span class="word">{word}</span>' if _is_name(word) else word for word in words))


def _is_command(text: str) -> bool:
    """Whether words between back quotes are a command with its arguments, and not the words of a log."""
    return " " in text and text[0].islower() and not text.startswith("via ")


def pieces(text: str) -> list[tuple[str, bool]]:
    """The prose of a step and the words between back quotes in it: (text, whether code)."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a back quote without its other one
        return [(text, False)]
    return [(part, at % 2 == 1) for at, part in enumerate(parts) if part]


def _is_name(text: str) -> bool:
    """Whether a text is one short name that a line should not break at its hyphen."""
    return "-" in text and len(text) <= NAME and not any(char in text for char in " ,[")
