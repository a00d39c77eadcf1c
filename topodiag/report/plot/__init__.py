"""Curves in the terminal, as SVG and as PNG."""
