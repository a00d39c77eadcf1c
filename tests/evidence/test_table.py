"""Tables of any script: how their rows are found, and what their columns are called."""

from tests.tables import examples
from topodiag.evidence.interface import Blob
from topodiag.evidence.registry import recognise
from topodiag.evidence.table import columns_of, tables_of


def cells(text: str) -> list[dict[str, str]]:
    return [dict(row.cells) for table in tables_of(Blob("out.txt", text.encode())) for row in table.rows]


@examples("text", "rows")
def test_a_row_has_the_columns_that_checks_ask_for(text: str, rows: list[dict[str, str]]) -> None:
    assert cells(text) == rows


@examples("text")
def test_what_no_check_asks_for_is_no_table(text: str) -> None:
    assert cells(text) == []
    assert not {"rows", "table"} & set(recognise(text))


def test_names_are_read_in_any_spelling() -> None:
    assert columns_of(["GPU", "smClock", "gpu_util"]) == {0: "gpu", 1: "clock", 2: "load"}
    assert columns_of(["gpu", "clocks.max.sm", "memory.util"]) == {}  # what it could do, and the load of its memory
