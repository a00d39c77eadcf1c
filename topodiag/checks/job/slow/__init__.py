"""Ranks, hours, kernels and steps of a job that are slow."""
