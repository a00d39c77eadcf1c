"""docs/collector.md says what leaves a node as the collector's own tables say it."""

from tests.shown import ROOT
from tools import build_collector_docs as tool
from topodiag_probes.registry import probes
from topodiag_probes.variables import FAMILIES, FORMS

PAGE = (ROOT / "docs" / "collector.md").read_text(encoding="utf-8")


def test_the_page_is_what_the_tables_say() -> None:
    assert tool.page() == PAGE, "run python tools/build_collector_docs.py"


def test_every_item_is_listed_with_the_fields_that_it_keeps() -> None:
    for probe in probes():
        row = next(line for line in PAGE.split("\n") if line.startswith(f"| `{probe.id}` |"))
        assert probe.keeps
        assert all(field in row for field in probe.keeps)


def test_every_variable_that_is_kept_is_listed() -> None:
    assert [name for name in FORMS if f"`{name}`" not in PAGE] == []
    assert [start for start, _ in FAMILIES if f"`{start}*`" not in PAGE] == []


def test_how_to_report_a_vulnerability_is_said() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for heading in ("## How to report", "## What is trusted", "## What is not trusted", "## What leaves a node"):
        assert heading in text
