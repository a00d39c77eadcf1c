"""Topology files: tree, prediction, difference, what-if."""
