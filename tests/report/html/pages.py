"""Pages for the tests: real results and results that are hostile, as text and as elements. Imported by name."""

import base64
import gzip
import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from functools import cache
from html.parser import HTMLParser
from typing import Any

from tests.report.verdict.test_page import LINKS, LOW
from tests.report.verdict.test_page import result as judged
from tests.verdict.judged import LOG, measured, running
from topodiag.app.logs import logs
from topodiag.app.scan import scan
from topodiag.model.finding import Cost, Finding, Input, Outcome, Severity, Status, Where
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.model.result import Clock, Moment, Result, Timeline, Trouble, UnreadLine
from topodiag.report.bench.table import draw_bench
from topodiag.report.html.page import html_of, result_sheet
from topodiag.report.job.table import draw_logs
from topodiag.report.table import draw_result
from topodiag.report.verdict.table import draw_diagnosis

VOID = frozenset({"meta", "link", "br", "hr", "img", "input", "wbr"})


@dataclass
class Element:
    """One element: its name, attributes, the elements that it stands in, and its own text."""

    name: str
    attributes: dict[str, str]
    inside: tuple[str, ...]
    text: str = ""


@dataclass
class Reader(HTMLParser):
    """The elements of a page in order. Raises AssertionError where they are not closed as they were opened."""

    elements: list[Element] = field(default_factory=list)
    open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"{tag} has an attribute twice: {names}"
        element = Element(
            tag, {name: value or "" for name, value in attrs}, tuple(element.name for element in self.open)
        )
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1].name == tag, f"</{tag}> closes <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data


@cache
def read(text: str) -> list[Element]:
    """The elements of a page."""
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert not reader.open
    return reader.elements


def named(elements: list[Element], name: str) -> list[Element]:
    return [element for element in elements if element.name == name]


def by_id(elements: list[Element], key: str) -> Element:
    """The element with this id. Raises StopIteration."""
    return next(element for element in elements if element.attributes.get("id") == key)


def data_of(elements: list[Element]) -> dict[str, Any]:
    """The JSON inside a page."""
    held = by_id(elements, "data")
    text = held.text if "data-packed" not in held.attributes else gzip.decompress(base64.b64decode(held.text)).decode()
    document: dict[str, Any] = json.loads(text)
    return document


def script_hash(text: str) -> str:
    """The hash of the page's script, as its policy must name it."""
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def slow_job() -> str:
    """A job that is slow because of a node."""
    moments = tuple(Moment(60.0 * at, f"event {at}", "n0", origin=LOG) for at in range(3))
    result = judged(LINKS, LOW, case=replace(running(), timeline=Timeline(moments, (Clock("log", "n0"),))))
    return html_of(result_sheet("diagnose", replace(result, timeline=Timeline(moments)), draw_diagnosis))


@cache
def odd_node() -> str:
    return html_of(result_sheet("scan", scan(["fixture:dgx-h100-gpu3-12of18-nvlink"]), draw_result))


@cache
def healthy_node() -> str:
    return html_of(result_sheet("scan", scan(["fixture:dgx-h100-healthy"]), draw_result))


@cache
def logged_job() -> str:
    return html_of(result_sheet("logs", logs(["fixture:socket-fallback"]), draw_logs))


@cache
def measured_run() -> str:
    return html_of(result_sheet("bench", Result(benchmarks=(measured(), measured("low", made=190.0))), draw_bench))


PAGES = {
    "slow job": slow_job,
    "odd node": odd_node,
    "healthy node": healthy_node,
    "logged job": logged_job,
    "measured run": measured_run,
}

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    '"><a href="https://evil.example/">x</a>',
    "{{7*7}} {% raw %} ${7*7}",
    "<!-- <![CDATA[ ]]> -->",
    "\x1b[31mred\x1b]8;;https://evil.example/\x07",
    "right \u202e left \u2066 isolate \u2069",
    "nul \x00 bell \x07 del \x7f c1 \x9b",
    "javascript:alert(1)",
    "' onclick='alert(1)",
    "\u2028\u2029\ufeff\u200b",
    "odd name.with [brackets] & signs",
)


def hostile_result() -> Result:
    """A result in which every foreign text is an attack."""
    base = scan(["fixture:dgx-h100-gpu3-12of18-nvlink"])
    findings = tuple(
        Finding(
            "NVL001", Severity.ERROR, text, text, text, (text,), where=Where(nodes=(text,), gpus=(text,)),
            cost=Cost(1.0, 0.5, text), evidence=(Origin(text, 3, text[:200], text),), settings=((text, text),),
        )
        for text in HOSTILE
    )  # fmt: skip
    findings = (*findings, replace(findings[0], message="a" * 1_000_000))
    return replace(
        base,
        nodes=tuple(replace(base.nodes[0], host=text) for text in HOSTILE[:3]),
        findings=findings,
        outcomes=tuple(Outcome("NVL002", Status.CLEAN, text, why=text) for text in HOSTILE),
        inputs=tuple(Input(text, text, "0" * 64) for text in HOSTILE),
        unread=tuple(UnreadLine(text, 1, text, text) for text in HOSTILE),
        unexplained=tuple(Trouble(text, text, origin=Origin(text, 1)) for text in HOSTILE),
    )


@cache
def hostile_page() -> str:
    return html_of(result_sheet("scan", hostile_result(), draw_result))


@cache
def many_nodes(count: int) -> str:
    """A scan of so many nodes: most alike, one in fifty with a fault of its own."""
    nodes = tuple(Node(f"node{number:05}") for number in range(count))
    findings = tuple(
        Finding(
            "NVL001", Severity.ERROR, f"GPU{number % 8} has 12 of 18 NVLinks active", "12 links up", "18 links",
            ("reset all GPUs of the node",), where=Where(nodes=(f"node{number:05}",), gpus=(f"GPU{number % 8}",)),
            cost=Cost(123.6, 1 / 3), evidence=(Origin("json/nvml.json", number, "state: 0"),),
        )
        for number in range(0, count, 50)
    )  # fmt: skip
    outcomes = tuple(Outcome("PCI001", Status.CLEAN, node.host, why="all links are wide") for node in nodes)
    inputs = tuple(Input(f"{node.host}/json/nvml.json", "nvml", "0" * 64, 400) for node in nodes)
    return html_of(result_sheet("scan", Result(inputs, nodes, outcomes, findings), draw_result))
