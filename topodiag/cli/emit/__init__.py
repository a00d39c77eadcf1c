"""`topodiag emit`: one module per artefact."""
