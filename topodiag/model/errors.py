"""The errors a user can cause or meet. The command line turns them into one line and an exit code, nowhere else."""

from __future__ import annotations


class TopodiagError(Exception):
    """Something the user can act on: what happened, and what to do about it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InputError(TopodiagError):
    """An input that cannot be read: names the file, where known the line, and the remedy. Exit code 2."""

    def __init__(self, path: str, message: str, *, line: int | None = None, hint: str = "") -> None:
        place = f"{path}:{line}" if line is not None else path
        super().__init__(f"{place}: {message}", hint=hint)
        self.path = path
        self.line = line
