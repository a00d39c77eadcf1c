"""Checks of a node over time."""
