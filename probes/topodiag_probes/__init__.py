"""The collector: captures a node's raw evidence, never interprets it. Standard library only, Python 3.6 syntax."""

__version__ = "0.1.0"

SCHEMA = "1.0"
