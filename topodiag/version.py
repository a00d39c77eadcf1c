"""The version, apart from the package's own module so that every layer may name it."""

__version__ = "0.1.0"
