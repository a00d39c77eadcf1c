"""Sweeps: plans of few benchmark runs that find bad links and nodes, their running, and what the results say."""
