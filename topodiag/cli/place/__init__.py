"""`topodiag place`: one module per command."""
