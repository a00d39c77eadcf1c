"""Logs as streams: packed or not, wrapped in JSON or not, one file or thousands."""
