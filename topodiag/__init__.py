"""topodiag: why a GPU job's communication is slower than the wires allow, where, at what cost, and what to change."""

__version__ = "0.1.0"
