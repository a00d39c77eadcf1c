"""Runs the collector on many nodes and brings their bundles into one folder."""
