"""Logs as columns of bytes: many megabytes per second, for whole files. Only `fleet` starts it."""
