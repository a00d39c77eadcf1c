"""`topodiag topo`: one module per command."""
