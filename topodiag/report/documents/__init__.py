"""The documents of `--format json`: values of the model in the keys of the published schemas, and their writing."""
