"""Checks that judge one job by its logs and dumps."""
