"""Writes the list of tables into docs/api.md, from the registry of tables.

python tools/build_api_docs.py
"""

from __future__ import annotations

from pathlib import Path

from topodiag.api.tables import DTYPES, TABLES
from topodiag.report.table_files import Table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
START = "<!-- The tables below are generated: python tools/build_api_docs.py -->\n"
END = "<!-- End of the generated tables. -->\n"


def tables() -> str:
    """Every table with its columns, by the functions that return it."""
    lines = []
    for functions, by_name in TABLES.items():
        lines += ["", f"### Tables of {functions}"]
        for name, table in by_name.items():
            lines += ["", f"#### `{name}` of {functions.partition(',')[0]}", "", table.about, "", *_columns(table)]
    return "\n".join(lines) + "\n\n"


def _columns(table: Table) -> list[str]:
    head = ["| column | dtype | unit | meaning |", "|---|---|---|---|"]
    rows = (
        f"| `{column.name}` | {DTYPES[column.kind]} | {column.unit} | {column.about.replace('|', chr(92) + '|')} |"
        for column in table.columns
    )
    return [*head, *rows]


def written(page: str) -> str:
    """The page with its generated part as it should be. Raises ValueError where the page has no place for it."""
    before, start, rest = page.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError(f"{PAGE} lacks the lines {START!r} and {END!r}")
    return before + START + tables() + END + after


def main() -> None:
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
