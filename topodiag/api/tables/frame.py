"""A table as a pandas DataFrame. The only module that imports pandas, and only when a table is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topodiag.api.tables.interface import DTYPES, Table

if TYPE_CHECKING:
    import pandas as pd


def frame_of(table: Table, held: Any) -> pd.DataFrame:
    """The rows as a DataFrame with the documented columns and dtypes, also where there are none."""
    import pandas as pd  # noqa: PLC0415 - 0.5 s, and only tables need it

    names = [column.name for column in table.columns]
    rows = list(table.rows(held))
    by_column = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pd.DataFrame(
        {
            column.name: pd.Series(list(values), dtype=DTYPES[column.kind])
            for column, values in zip(table.columns, by_column, strict=True)
        },
        columns=names,
    )
