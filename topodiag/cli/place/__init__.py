"""`topodiag place`: its commands, and the options that they share."""
