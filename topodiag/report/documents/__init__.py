"""The documents of `--format json`: their types, how they are read from the model, and their writing."""
