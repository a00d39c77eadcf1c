"""Checks that judge one node by its bundle or live capture, beside its peers."""
