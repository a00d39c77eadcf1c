"""docs/architecture.md and its drawing say what the import graph says."""

import subprocess
import sys
from itertools import pairwise

import pytest

from tests.shown import ROOT
from tools import build_architecture as tool


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


def test_the_model_imports_only_hardware_and_words_and_what_is_made_at_first_use(house: tool.House) -> None:
    assert {below for above, below in house.imports if above == "model"} <= {"hardware", "words", "lazy"}


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
