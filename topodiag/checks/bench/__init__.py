"""Checks that judge measured collectives."""
