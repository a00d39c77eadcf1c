"""Checks of fleets: a node among its peers."""
