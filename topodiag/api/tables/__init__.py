"""The tables of results: names, columns with meaning and unit, and the rows behind them. Judges nothing.

tables.toml says what each table holds, `registry.TABLES` what its rows are read from. docs/api.md and the DataFrames
follow from both.
"""
