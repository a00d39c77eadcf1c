"""Curves in the terminal and as SVG."""
