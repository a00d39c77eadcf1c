"""Layouts: audit, solved map, pictures."""
