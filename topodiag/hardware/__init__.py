"""Datasheets as data: what GPUs, NICs and whole systems are built for, each figure with its source."""
