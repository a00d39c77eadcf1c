"""Checks that judge a layout of ranks on a cluster."""
