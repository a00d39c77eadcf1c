"""What an nccl.conf should say: its entries with their reasons, and what no file can do."""

from __future__ import annotations

from topodiag.lazy import dataclass


@dataclass(frozen=True, slots=True)
class ConfEntry:
    """One setting of the file. `value` None: it is taken out, and `was` is the line or setting as it stood. `why` are
    sentences; `kept` says that it stands there already and nothing is held against it."""

    name: str
    value: str | None
    why: tuple[str, ...]
    was: str = ""
    kept: bool = False


@dataclass(frozen=True, slots=True)
class ConfAdvice:
    """The entries of the file, in order, and what no file can do, one sentence each."""

    subject: str
    entries: tuple[ConfEntry, ...]
    elsewhere: tuple[str, ...] = ()

    @property
    def follows(self) -> bool:
        """Whether the file would be another one than the present."""
        return any(not entry.kept and (entry.value is not None or entry.was) for entry in self.entries)
