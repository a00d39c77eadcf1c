"""`topodiag model`: its questions, and the options that say what is trained."""
