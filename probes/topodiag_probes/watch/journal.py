"""The file of changes: JSON lines, rotated by size, so that it never takes more than its share of the disk."""

import json
import os
from typing import Any, Dict, Iterable, Optional

from topodiag_probes.watch.states import Value, Values

SCHEMA = 1
END = ".watch.jsonl"
LIMIT = 4 * 1024 * 1024
KEEP = 4
"""Files in all, the current one among them."""


class Journal:
    """Appends lines to `FOLDER/HOST.watch.jsonl`; older files are `HOST.1.watch.jsonl` and so on; the oldest goes.

    A file begins with all values, so that each can be read by itself. What a full disk refuses is counted, and told as
    soon as there is room.
    """

    def __init__(self, folder: str, host: str, limit: int = LIMIT, keep: int = KEEP) -> None:
        self.folder = folder
        self.host = host
        self.limit = limit
        self.keep = keep
        self.lost = 0
        self._size: Optional[int] = None

    def path(self, number: int = 0) -> str:
        return os.path.join(self.folder, "%s%s%s" % (self.host, ".%d" % number if number else "", END))

    @property
    def full(self) -> bool:
        """Whether the next lines go to a new file."""
        return self._at() >= self.limit

    def _at(self) -> int:
        if self._size is None:
            try:
                self._size = os.path.getsize(self.path())
            except OSError:
                self._size = 0
        return self._size

    def rotate(self) -> None:
        """Make room for a new file."""
        for number in range(self.keep - 1, 0, -1):
            try:
                os.replace(self.path(number - 1), self.path(number))
            except OSError:
                continue  # there are fewer files yet
        if self.keep == 1:
            try:
                os.unlink(self.path())
            except OSError:
                pass
        self._size = None

    def write(self, lines: Iterable[Dict[str, Any]]) -> None:
        """Append lines. Raises nothing for a disk that is full."""
        made = ["%s\n" % json.dumps(line, sort_keys=False, separators=(",", ":")) for line in lines]
        if self.lost:
            made.insert(0, '{"lost":%d}\n' % self.lost)
        data = "".join(made).encode("ascii")
        try:
            with open(self.path(), "ab") as handle:
                start = handle.tell()
                try:
                    handle.write(data)
                    handle.flush()
                except OSError:
                    handle.truncate(start)  # no half of a line
                    raise
        except OSError:
            self.lost += len(made) - (1 if self.lost else 0)
            return
        self.lost = 0
        self._size = self._at() + len(data)


def header(host: str, boot: str, every_s: float, sees: Dict[str, str]) -> Dict[str, Any]:
    """The first line of a file and of each start, but for its time. `sees` says what is watched, or why it is not."""
    return {"watch": SCHEMA, "host": host, "boot": boot, "every": every_s, "sees": sees}


def snapshot(values: Values) -> Iterable[Dict[str, Any]]:
    """All values, without their time."""
    for part, key in sorted(values):
        yield {"part": part, "key": key, "value": values[part, key]}


def change(
    seen_s: Optional[float], part: str, key: str, was: Optional[Value], value: Optional[Value]
) -> Dict[str, Any]:
    """A value that changed, without its time; None where there is none any more, or was none before. `seen`: when the
    old one was last there, in seconds since boot."""
    return {"part": part, "key": key, "value": value, "was": was, "seen": seen_s}
