"""The documents of `--format json`: their types, the parts that they share, their writing and published schemas."""
