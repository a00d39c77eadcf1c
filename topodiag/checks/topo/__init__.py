"""Checks that judge a topology file, alone or against a machine."""
