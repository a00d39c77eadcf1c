"""Ranks on the right wires: who talks to whom, what a placement costs, where it should be."""
