"""The checks of measured runs."""
