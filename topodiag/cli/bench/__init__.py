"""`topodiag bench`: one module per command."""
