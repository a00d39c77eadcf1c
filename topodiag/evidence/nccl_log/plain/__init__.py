"""Logs read line by line: slow, simple, and what the fast reader is held against."""
