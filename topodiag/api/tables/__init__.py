"""The tables of results: names, columns with meaning and unit, and the rows behind them. Judges nothing.

`registry.TABLES` is the one list. A table is a `Table` in the file of its subject and a line there; docs/api.md and the
DataFrames follow from it.
"""
