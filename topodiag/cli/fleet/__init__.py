"""`topodiag fleet`: one module per command."""
