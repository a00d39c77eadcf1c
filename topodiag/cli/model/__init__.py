"""`topodiag model`: one module per question."""
