"""Ranks on the right links: which ranks form groups, what a placement costs, where it should be."""
