"""Runs of nccl-tests: table, plot, JSON."""
