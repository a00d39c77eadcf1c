"""Watches one node: samples states and error counters every few seconds and writes down what changes."""
