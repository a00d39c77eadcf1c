"""Checks of fleets: a node among its siblings."""
