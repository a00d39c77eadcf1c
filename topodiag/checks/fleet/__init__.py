"""The checks of a node among its peers, and of its history."""
