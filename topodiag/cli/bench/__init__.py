"""`topodiag bench`: the judgement of what was measured, and sweeps of runs that find bad links."""
