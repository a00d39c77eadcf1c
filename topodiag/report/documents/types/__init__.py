"""What `--format json` prints, as types: one module per subject, from which the published schemas are generated.

A field's name is the key, its order the order in the output. Adding a key adds a field; no value is computed here.
"""
