"""What a table of any script shows: the row that is not as its siblings, or not as the table says it should be."""

from tests.tables import examples
from topodiag.checks.shared.tables import reported_by_tables
from topodiag.evidence.interface import Blob
from topodiag.evidence.table import tables_of
from topodiag.model.node import Node


def faults(text: str) -> list[str]:
    node = Node("a node", tables=tuple(tables_of(Blob("out.txt", text.encode()))))
    return [event.kind for event in reported_by_tables(node)]


@examples("text", "bad", "well", "fault")
def test_the_row_that_stands_apart_is_told(text: str, bad: str, well: str, fault: str) -> None:
    assert faults(text.format(bad)) == [fault]
    assert faults(text.format(well)) == []


@examples("text")
def test_what_is_alike_or_of_nothing_known_is_not_told(text: str) -> None:
    assert faults(text) == []
