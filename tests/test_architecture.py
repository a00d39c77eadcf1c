"""docs/architecture.md and its drawing say what the import graph says."""

import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType

import pytest

from tests.shown import ROOT
from tests.tables import examples
from tools import build_architecture as tool
from topodiag.app.logs import logs
from topodiag.app.scan import scan
from topodiag.model.result import Result


@pytest.fixture(scope="module")
def house() -> tool.House:
    return tool.read_house()


def test_the_drawing_and_the_table_are_what_the_code_says(house: tool.House) -> None:
    assert tool.differences(house) == [], "run python tools/build_architecture.py"


def test_the_drawing_holds_each_import_between_rooms(house: tool.House) -> None:
    drawn = tool.drawn_imports(tool.draw(house))
    assert {(above, below) for above, names in drawn.items() for below in names} == house.imports
    assert set(drawn) == set(house.rooms)


def test_an_import_that_the_drawing_lacks_is_named(house: tool.House) -> None:
    more = tool.House(house.rooms, house.floors, house.imports | {("words", "cli")})
    assert "the drawing lacks the import words -> cli" in tool.differences(more)


def test_an_arrow_that_a_longer_way_implies_is_left_out() -> None:
    imports = frozenset({("cli", "app"), ("app", "model"), ("cli", "model")})
    assert tool.reduced(imports) == [("app", "model"), ("cli", "app")]


def test_the_model_imports_only_words_and_what_is_made_at_first_use(house: tool.House) -> None:
    assert {below for above, below in house.imports if above == "model"} <= {"words", "lazy"}


def test_only_the_use_cases_join_evidence_checks_and_verdict(house: tool.House) -> None:
    stages = {"evidence", "checks", "verdict"}
    assert [room for room in house.rooms if {(room, stage) for stage in stages} <= house.imports] == ["app"]


def test_what_relates_findings_or_draws_opens_no_file() -> None:
    modules = [path for room in ("verdict", "draw") for path in (ROOT / "topodiag" / room).rglob("*.py")]
    calls = re.compile(r"\b(?:open|read_text|read_bytes|write_text)\(")
    assert [path.name for path in modules if calls.search(path.read_text(encoding="utf-8"))] == []


STATION = re.compile(r"^\| `([\w/.]+\.py)` \| `(\w+)` \| .*\|$", re.MULTILINE)
QUERY = """==============NVSMI LOG==============
Attached GPUs                             : 1
GPU 00000000:1B:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    Remapped Rows
        Remapping Failure Occurred        : Yes
"""


def walk(use_case: str) -> tuple[str, list[tuple[str, str]]]:
    """The line of a walk on the page, and its stations as (module, function)."""
    page = tool.PAGE.read_text(encoding="utf-8")
    line, rest = re.findall(rf"^`([^`]+)` in [^\n]*\(`{use_case}`\):\n(.*?)(?=^`|^## )", page, re.M | re.S)[0]
    return line, STATION.findall(rest)


def called(run: Callable[[], Result], stations: list[tuple[str, str]]) -> tuple[Result, list[tuple[str, str]]]:
    """What a run gives, and which of the stations it called, in the order of their first calls."""
    places = {(str(ROOT / "topodiag" / module), function): (module, function) for module, function in stations}
    order: dict[tuple[str, str], None] = {}

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and (station := places.get((code.co_filename, code.co_name))) is not None:
            order.setdefault(station)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        return run(), list(order)
    finally:
        sys.setprofile(before)


@examples("use_case", "found")
def test_a_line_walks_through_the_modules_that_the_page_lists(use_case: str, found: str, tmp_path: Path) -> None:
    line, stations = walk(use_case)
    assert 2 < len(stations) <= 8
    text = tmp_path / "nvidia-smi-q.txt"
    text.write_text(QUERY, encoding="utf-8")
    runs = {"app/scan.py": lambda: scan([str(text)]), "app/logs.py": lambda: logs(["fixture:gdr-off"])}
    result, order = called(runs[use_case], stations)
    assert order == stations
    (finding,) = (finding for finding in result.findings if finding.id == found)
    assert any(line in " ".join((origin.text or "").split()) for origin in finding.evidence), finding.evidence


def test_boxes_of_a_floor_do_not_overlap(house: tool.House) -> None:
    floors, _ = tool.lay_out(house, tool.reduced(house.imports))
    for floor in floors:
        row = sorted(floor, key=lambda item: item.x)
        for left, right in pairwise(row):
            assert left.x + left.width / 2 < right.x - right.width / 2


def test_the_tool_writes_the_same_bytes_each_time(house: tool.House) -> None:
    argv = [sys.executable, "-c", "from tools import build_architecture as b; print(b.draw(b.read_house()), end='')"]
    again = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, timeout=60, check=True).stdout
    assert again == tool.draw(house)
